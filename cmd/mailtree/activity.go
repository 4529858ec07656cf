package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"mailtree/maildir/format"
	"mailtree/maildir/writer"
)

// activity prints the agents' operations, one per line. A line contains the time, the verb, and the subject line that
// git log shows for the operation. The subject line begins with the agent's name.
//
//	10:15:03 send     GreenCastle -> BlueLake: Plan for /api/users
type activity struct {
	out io.Writer
	now func() time.Time
}

// maxActivity is the maximum length, in bytes, of the text that describes one operation.
const maxActivity = 100

// clearLine erases a line that progressLine printed.
const clearLine = "\r\033[K"

// observe prints a line for an operation that changed something. Its parameters are those of maildir.Config.Observe. It
// writes the line with a single call, so that lines from different goroutines do not mix.
func (a *activity) observe(op writer.Op, _ time.Duration, err error) {
	if a == nil || err != nil || len(op.Paths) == 0 {
		return
	}
	what := format.Printable(op.Summary)
	if cut := format.Cut(what, maxActivity); cut != what {
		what = cut + "…"
	}
	fmt.Fprintf(a.out, clearLine+"%s  %-11s  %s\n", a.now().Format(time.TimeOnly), op.Verb, what)
}

// terminal returns standard error if it is a terminal, and nil otherwise.
func terminal(std stdio) *os.File {
	f, ok := std.err.(*os.File)
	if !ok {
		return nil
	}
	if fi, err := f.Stat(); err != nil || fi.Mode()&os.ModeCharDevice == 0 {
		return nil
	}
	return f
}
