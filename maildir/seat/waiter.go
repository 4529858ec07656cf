package seat

import (
	"strconv"

	"mailtree/maildir/tree"
)

// Who waits to wake a session is known to the server. While none runs, the last one to come notes
// its process beside the session's file, and the others end.

// NoteWaiter notes that a process waits now to wake a session of the tree, in place of whoever did.
// Errors: as tree.WriteRun.
func NoteWaiter(t *tree.Tree, k Key, pid int) error {
	return t.WriteRun(k.waiterPath(), []byte(strconv.Itoa(pid)))
}

// Waits reports whether a process is the one that waits, as NoteWaiter noted last.
func Waits(t *tree.Tree, k Key, pid int) bool {
	const most = 32 // bytes of a number
	noted, _, err := t.Read(k.waiterPath(), most)
	return err == nil && string(noted) == strconv.Itoa(pid)
}

func (k Key) waiterPath() string { return k.path() + ".waiter" }
