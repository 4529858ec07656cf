package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"mailtree/cmd/mailtree/cli"
	"mailtree/maildir"
	"mailtree/maildir/format"
	"mailtree/maildir/history"
	mcpserver "mailtree/mcp"
)

func logCommand(p *program) *cobra.Command {
	var ask maildir.LogQuery
	c := &cobra.Command{
		Use:   "log [AGENT|THREAD|MESSAGE|PATH]",
		Short: "Show the history: who did what, and when",
		Long: "Show who did what and when, from the Git history: newest first, one line each. Without an argument, it shows\n" +
			"everything. An argument selects the operations of one agent, the operations on one message or thread, or the\n" +
			"changes to a file or folder in the project, such as agents/BlueLake.",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: p.completeAgent,
	}
	f := p.addDeskFlags(c)
	c.Flags().BoolVar(&ask.Patch, "patch", false, "also show the changed lines")
	whole := c.Flags().BoolP("verbose", "v", false, "also show channel, commit, full id and files")
	since := c.Flags().String("since", "", "only entries after this time, such as 1d (one day ago), yesterday or 2026-01-31")
	limit := c.Flags().UintP("limit", "n", 0, "maximum number of entries (0: all)")
	c.RunE = func(c *cobra.Command, args []string) error {
		if *since != "" {
			at, err := moment(c, "since", *since)
			if err != nil {
				return err
			}
			ask.Since, _ = time.Parse(time.RFC3339Nano, at)
		}
		return p.atDesk(c.Context(), f, nobodys, nil, func(ctx context.Context, d *deskWork) error {
			ask.Of, ask.Limit = strings.Join(args, ""), int(min(*limit, math.MaxInt32))
			return d.Paged(ctx, func(s *cli.Screen) error { return p.showLog(ctx, d, &logPrinter{Screen: s, whole: *whole}, ask) })
		})
	}
	return c
}

// showLog prints the history as it arrives. Until the first entry arrives, it shows how far back the server has
// searched, but only if standard error is a terminal.
func (p *program) showLog(ctx context.Context, d *deskWork, s *logPrinter, ask maildir.LogQuery) error {
	told, progress := 0, cli.IsTerminal(p.std.err)
	err := d.Stream(ctx, cli.Of(d.Slug, "log"), ask, func(text json.RawMessage) error {
		var line mcpserver.LogLine
		if err := json.Unmarshal(text, &line); err != nil {
			return err
		}
		if line.Entry == nil {
			if progress && told == 0 {
				fmt.Fprintf(p.std.err, "%ssearching: %d commits, back to %s", clearLine, line.Looked, cli.Exact(line.Back.String()))
			}
			return nil
		}
		if progress && told == 0 {
			fmt.Fprint(p.std.err, clearLine)
		}
		told++
		if d.json {
			return s.JSON(text)
		}
		s.show(line.Entry)
		return nil
	})
	if err == nil && told == 0 {
		err = &exitError{exitNothing, errors.New(noHistory(&ask))}
	}
	return err
}

// noHistory returns the text to print if a search of the history finds nothing.
func noHistory(ask *maildir.LogQuery) string {
	text := "no history found"
	if ask.Of != "" {
		text += " for " + format.Quote(ask.Of)
	}
	if !ask.Since.IsZero() {
		text += " since " + ask.Since.Local().Format("2 Jan 2006 15:04")
	}
	return text
}

// logPrinter prints entries of the history, newest first.
type logPrinter struct {
	*cli.Screen
	whole bool   // also print the channel, the commit, the whole id and the files
	day   string // the day of the last printed entry
}

// deeds maps verbs to the past tense that the log shows. It omits verbs that the log shows unchanged.
var deeds = map[string]string{
	"send":              "sent",
	"reply":             "replied",
	"receive":           "received",
	"deliver":           "delivered",
	"pop":               "read",
	"acknowledge":       "acknowledged",
	"archive":           "archived",
	"later":             "hid",
	"unread":            "unread",
	"draft":             "drafted",
	"stamp":             "stamped",
	"withdraw":          "withdrew",
	"claim":             "claimed",
	"renew":             "renewed",
	"project":           "created",
	"register":          "registered",
	"rename":            "renamed",
	maildir.VerbAmend:   "amended",
	history.VerbEdit:    "edited",
	history.VerbRemove:  "removed",
	history.VerbCommit:  "committed",
	history.VerbDelete:  "deleted",
	history.VerbRelease: "released",
	history.VerbHold:    "held",
	history.VerbGo:      "ended hold",
}

// deed describes an operation in the past tense.
func deed(verb string) string {
	switch {
	case strings.HasPrefix(verb, history.UndoPrefix):
		return "undid"
	case strings.HasPrefix(verb, history.RedoPrefix):
		return "redid"
	}
	return cmp.Or(deeds[verb], verb)
}

// undoneDeed returns the gerund of the operation that an undo or a redo applied to, such as "archiving". It returns ""
// for any other operation.
func undoneDeed(verb string) string {
	for _, prefix := range []string{history.UndoPrefix, history.RedoPrefix} {
		if of, found := strings.CutPrefix(verb, prefix); found {
			return doing(of)
		}
	}
	return ""
}

// about returns the subject of an entry's operation. For a message, it also returns the recipients.
func about(e *history.Entry) (what, to string) {
	if e.Subject != "" {
		return e.Subject, ""
	}
	verb := strings.TrimPrefix(strings.TrimPrefix(e.Verb, history.UndoPrefix), history.RedoPrefix)
	if history.BesideMessage(verb) {
		return history.AboutBeside(verb, e.Who, e.Summary), ""
	}
	if from, rest, found := strings.Cut(e.Summary, " -> "); found && e.ID != "" {
		to, what, _ = strings.Cut(rest, ": ")
		if e.Who != from {
			to = ""
		}
		return what, to
	}
	if e.Summary == e.Who { // the entry records that an agent was created without a program or model
		return "", ""
	}
	what, found := strings.CutPrefix(e.Summary, e.Who+": ") // the message was sent only to bcc recipients
	if !found {
		what = strings.TrimSpace(strings.TrimPrefix(strings.TrimPrefix(e.Summary, e.Who+" "), e.ID))
	}
	return what, ""
}

// show prints a line for the entry. If the entry's day differs from the day of the previous entry, show first prints
// the day. The columns have fixed widths, because entries are printed as they are found.
func (s *logPrinter) show(e *history.Entry) {
	day, clock := e.At.Local().Format("Mon 2 Jan 2006"), e.At.Local().Format("15:04")
	if day != s.day {
		s.day = day
		s.Printf("%s\n", s.Bold(day))
	}
	what, to := about(e)
	if to != "" {
		to = "→ " + to
	}
	id := ""
	if e.ID != "" {
		id = s.ShortID(e.ID)
	}
	who := cli.Line(cmp.Or(e.Who, "the server"))
	if e.Verb == "project" {
		what = "the project " + what
	}
	if undone := undoneDeed(e.Verb); undone != "" {
		what = strings.TrimSpace(undone + " " + what)
	}
	s.Table([]cli.Row{{Cells: []string{
		clock, fmt.Sprintf("%-11s", who), fmt.Sprintf("%-12s", deed(e.Verb)), fmt.Sprintf("%-8s", id), cli.Line(what), cli.Line(to),
	}}})
	if s.whole {
		how := []string{cmp.Or(e.Commit[:min(10, len(e.Commit))], "not committed yet")}
		for _, text := range []string{e.Door, e.ID} {
			if text != "" {
				how = append(how, cli.Line(text))
			}
		}
		s.Tell("       %s\n", strings.Join(how, "  "))
	}
	for _, f := range e.Files {
		switch {
		case f.Lines != "":
			s.Printf("\n%s\n", cli.Text(f.Lines))
		case s.whole:
			s.Printf("       %-7s  %s\n", f.Op, cli.Line(f.Path))
		}
	}
}
