package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"mailtree/maildir/format"
	"mailtree/maildir/writer"
)

// activity shows who does what, a line for each operation: its time, its verb, and what git log will
// say of it, which begins with the agent.
//
//	10:15:03  send         GreenCastle -> BlueLake: Plan for /api/users
type activity struct {
	out io.Writer
	now func() time.Time
}

// maxActivity is how many bytes of an operation a line shows.
const maxActivity = 100

// clearLine takes away what progressLine has left on the line.
const clearLine = "\r\033[K"

// observe shows an operation that did something: see maildir.Config.Observe. A line is one write,
// so lines of several goroutines do not mix.
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

// terminal is standard error where it is a terminal, else nil.
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
