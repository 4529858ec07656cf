package seat

import (
	"strconv"

	"mailtree/maildir/tree"
)

// The server keeps track of which process is waiting to wake a session. If no server is running, the process that
// started waiting last records its PID next to the session's file, and all earlier processes exit.

// NoteWaiter records that a process is waiting to wake one of the tree's sessions. It replaces the process recorded
// before. It returns any error from tree.WriteRun.
func NoteWaiter(t *tree.Tree, k Key, pid int) error {
	return t.WriteRun(k.waiterPath(), []byte(strconv.Itoa(pid)))
}

// Waits reports whether the process is the one that NoteWaiter recorded last.
func Waits(t *tree.Tree, k Key, pid int) bool {
	const most = 32 // maximum length of a PID, in bytes
	noted, _, err := t.Read(k.waiterPath(), most)
	return err == nil && string(noted) == strconv.Itoa(pid)
}

func (k Key) waiterPath() string { return k.path() + ".waiter" }
