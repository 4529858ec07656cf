package main

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"mailtree/maildir/writer"
)

// TestActivity checks that an operation that changed something is shown on one line, even if its text contains line
// breaks or control characters.
func TestActivity(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	at := time.Date(2026, 11, 23, 10, 15, 3, 0, time.UTC)
	a := &activity{out: &out, now: func() time.Time { return at }}
	paths := []string{"messages/x.md"}
	for _, o := range []struct {
		op  writer.Op
		err error
	}{
		{writer.Op{Verb: "send", Summary: "Ann -> Bob: Plan", Paths: paths}, nil},
		{writer.Op{Verb: "send", Summary: "Ann -> Bob: \x1b[2Jgone\nnext", Paths: paths}, nil},
		{writer.Op{Verb: "read", Summary: "Ann msg_1"}, nil}, // the message had already been read
		{writer.Op{Verb: "claim", Paths: paths}, errors.New("refused")},
		{writer.Op{Verb: "acknowledge", Summary: strings.Repeat("é", maxActivity), Paths: paths}, nil},
	} {
		a.observe(o.op, time.Second, o.err)
	}
	want := clearLine + "10:15:03  send         Ann -> Bob: Plan\n" +
		clearLine + "10:15:03  send         \"Ann -> Bob: \\x1b[2Jgone\\nnext\"\n" +
		clearLine + "10:15:03  acknowledge  " + strings.Repeat("é", maxActivity/2) + "…\n"
	if out.String() != want {
		t.Errorf("shown:\n%s\nwant:\n%s", out.String(), want)
	}
}

// TestTerminal checks that a file and a pipe are not treated as terminals.
func TestTerminal(t *testing.T) {
	t.Parallel()
	f, err := os.Create(t.TempDir() + "/log")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if terminal(stdio{err: f}) != nil || terminal(stdio{err: &bytes.Buffer{}}) != nil {
		t.Error("a file or a buffer is treated as a terminal")
	}
}
