package seat

import (
	"strconv"

	"mailtree/maildir/tree"
)

// The server knows which process waits to wake a session. If no server is running, the process that began to wait
// last records its number beside the session's file, and the others end.

// NoteWaiter records that a process waits to wake a session of the tree, in place of the process recorded before.
// It returns the errors of tree.WriteRun.
func NoteWaiter(t *tree.Tree, k Key, pid int) error {
	return t.WriteRun(k.waiterPath(), []byte(strconv.Itoa(pid)))
}

// Waits reports whether the process is the one recorded last by NoteWaiter.
func Waits(t *tree.Tree, k Key, pid int) bool {
	const most = 32 // bytes of a process number
	noted, _, err := t.Read(k.waiterPath(), most)
	return err == nil && string(noted) == strconv.Itoa(pid)
}

func (k Key) waiterPath() string { return k.path() + ".waiter" }
