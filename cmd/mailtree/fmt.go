package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"mailtree/clients"
	"mailtree/maildir/format"
	"mailtree/maildir/tree"
)

func fmtCommand(p *program) *cobra.Command {
	f := &formatter{p: p}
	c := &cobra.Command{
		Use:   "fmt [FILE…]",
		Short: "Format message files",
		Long: "Rewrite message files in canonical form: the header's keys in a fixed order, one per line, and times in UTC. The\n" +
			"content of a message stays the same. Sealed files stay as they are, because a change would break their seals. The\n" +
			"command removes byte order marks and converts CRLF line endings to LF. Without FILE, it reads standard input and\n" +
			"prints the result. The exit status is 1 if a file is not a valid message or, with --check, if it is not in canonical\n" +
			"form.",
		RunE: func(c *cobra.Command, files []string) error {
			switch {
			case len(files) > 0:
				return f.formatAll(files)
			case f.json:
				return usageError(c, errors.New("fmt: --json needs a FILE"))
			}
			return f.filter()
		},
	}
	c.Flags().BoolVar(&f.check, "check", false, "list the files that would change, without changing them")
	c.Flags().BoolVar(&f.diff, "diff", false, "print what would change, without changing anything")
	c.Flags().BoolVar(&f.json, "json", false, "print the result as JSON")
	return c
}

// formatter is one run of `mailtree fmt`.
type formatter struct {
	p                 *program
	check, diff, json bool
	done              formatAnswer
	bad               int // number of files that are still not in canonical form
}

// formatAnswer is the output of `mailtree fmt --json`.
type formatAnswer struct {
	Changed  []formatChange  `json:"changed"`  // changes that fmt made; with --check or --diff, changes that it would make
	Problems []formatProblem `json:"problems"` // files that were left unchanged
}

type formatChange struct {
	File string `json:"file"`
	Diff string `json:"diff,omitempty"` // set only with --diff
}

type formatProblem struct {
	File  string `json:"file"`
	Error string `json:"error"`
}

// formatAll replaces each file with its canonical form and prints the result.
func (f *formatter) formatAll(names []string) error {
	f.done = formatAnswer{Changed: []formatChange{}, Problems: []formatProblem{}}
	for _, name := range names {
		if err := f.file(name); err != nil {
			fmt.Fprintf(f.p.std.err, "%s: %s\n", format.Printable(name), format.Printable(err.Error()))
			f.done.Problems = append(f.done.Problems, formatProblem{name, err.Error()})
			f.bad++
		}
	}
	if f.json {
		if err := f.p.printJSON(f.done); err != nil {
			return err
		}
	}
	switch {
	case f.bad > 0 && f.check:
		return &exitError{exitFailed, fmt.Errorf("not in canonical form: %s", count(f.bad, "file"))}
	case f.bad > 0:
		return &exitError{exitFailed, fmt.Errorf("cannot format %s", count(f.bad, "file"))}
	}
	return nil
}

// filter prints the canonical form of standard input. It takes the id from the text, because there is no file name that
// contains the id.
func (f *formatter) filter() error {
	data, err := io.ReadAll(f.p.std.in)
	if err != nil {
		return err
	}
	canonical, err := format.Canonical(format.IDOf(data), data)
	if err != nil {
		return &exitError{exitFailed, fmt.Errorf("standard input: %w", err)}
	}
	switch {
	case f.diff:
		_, err = f.p.std.out.Write(clients.Diff("message", data, canonical))
	case !f.check:
		_, err = f.p.std.out.Write(canonical)
	}
	if err == nil && f.check && !bytes.Equal(data, canonical) {
		err = &exitError{exitFailed, errors.New("standard input is not in canonical form")}
	}
	return err
}

// file replaces a file with its canonical form.
func (f *formatter) file(name string) error {
	st, err := os.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return errors.New("the file does not exist")
	}
	if err != nil {
		return plainCause(err)
	}
	if !st.Mode().IsRegular() {
		return tree.NotRegular(st.Mode())
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return plainCause(err)
	}
	canonical, err := format.Canonical(strings.TrimSuffix(filepath.Base(name), ".md"), data)
	if err != nil || bytes.Equal(data, canonical) {
		return err
	}
	if !f.check && !f.diff {
		if err := tree.ReplaceFile(name, canonical, st.Mode().Perm()); err != nil {
			return err
		}
	}
	change := formatChange{File: name}
	if f.diff {
		change.Diff = string(clients.Diff(name, data, canonical))
	}
	f.done.Changed = append(f.done.Changed, change)
	if f.check {
		f.bad++
	}
	return f.printChange(change)
}

// printChange prints a change. It prints the changed lines with --diff, and the file's name with --check. With --json,
// it prints nothing.
func (f *formatter) printChange(change formatChange) (err error) {
	if f.json {
		return nil
	}
	if f.diff {
		_, err = fmt.Fprint(f.p.std.out, change.Diff)
	}
	if f.check {
		fmt.Fprintln(f.p.std.out, format.Printable(change.File))
	}
	return err
}
