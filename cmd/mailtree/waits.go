package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"mailtree/cmd/mailtree/cli"
	"mailtree/maildir"
	"mailtree/maildir/format"
)

// showWaits is `mailtree` without arguments. It prints what is waiting for the user in this folder's project, and the
// next commands. If the store has no projects, it returns begin's error. Outside a project, it prints the list of
// projects, and how to create one for the code base.
func (p *program) showWaits(c *cobra.Command, f *deskFlags) error {
	ctx := c.Context()
	err := p.atDesk(ctx, f, nobodys, nil, func(ctx context.Context, d *deskWork) error { // creates no agent
		return present(d, func(answer any) error { return p.waitsOf(ctx, d, answer) }, func(w *maildir.Waits) error {
			printWaits(d, w)
			return nil
		})
	})
	if errors.Is(err, errNoProject) {
		screen := cli.NewScreen(p.std.out, p.variable)
		if caller, err := hello(p.env, stdioOptions{}); err == nil && caller.WorkTree != "" && !f.json {
			for _, from := range p.movedHere(ctx, caller.WorkTree) {
				screen.Tell("%s\n", movedLine(from))
			}
			screen.Tell("%s has no mail yet: `mailtree new project` creates its project\n\n", cli.Line(caller.WorkTree))
		}
		if !f.json {
			screen.Tell("%s\n", screen.Bold("Projects"))
		}
		return p.listProjects(ctx, f.json)
	}
	return err
}

// waitGroups are the groups of threads in Waits, in their order.
func waitGroups(w *maildir.Waits) [3][]maildir.WaitingThread {
	return [...][]maildir.WaitingThread{w.Answer, w.New, w.Owed}
}

func printWaits(d *deskWork, w *maildir.Waits) {
	d.Say(d.Faint, "%s · you are %s · %s", cli.Line(filepath.Base(d.HumanKey)), cli.Line(w.Agent), amountOf(w))
	var ids, of []string
	for _, threads := range waitGroups(w) {
		for i := range threads {
			ids, of = append(ids, threads[i].Message), append(of, threads[i].Thread)
		}
	}
	names := d.number(ids, of...)
	rows := make([]cli.Row, 0, len(ids))
	for g, threads := range waitGroups(w) {
		title := [...]string{"Wants an answer", "New", "You are waiting for"}[g]
		to := [...]string{"", "", "to "}[g]
		for i := range threads {
			rows = append(rows, threadRow(d, &threads[i], title, names[len(rows)], to))
			title = ""
		}
	}
	if len(rows) > 0 {
		d.Printf("\n")
	}
	d.Table(rows)
	if w.More > 0 {
		d.Tell("%s\n", d.Faint(count(w.More, "more thread")+": mailtree inbox"))
	}
	if others := besideMail(d, w); len(others) > 0 {
		d.Printf("\n")
		d.Table(others)
	}
	if len(w.Held) > 0 {
		d.Printf("\n")
		heldLines(d, w.Held, w.Agent)
	}
	next := []string{"mailtree inbox", "search WORD", "agents", "help"}
	if len(names) > 0 {
		first := strings.TrimSpace(names[0])
		next = []string{"mailtree read " + first, "reply " + first + ` "…"`, "ack " + first, "open"}
		switch {
		case len(w.Answer)+len(w.New) == 0:
			next = []string{"mailtree read " + first, "inbox", "agents", "open"}
		case len(w.Answer) == 0:
			next[2] = "archive " + first
			if format.ServerName(w.New[0].People[0]) { // nobody reads replies to the server
				next = slices.Delete(next, 1, 2)
			}
		}
	}
	d.Printf("\n")
	d.Say(d.Faint, "next: %s", strings.Join(next, "   "))
}

// amountOf describes how much mail is waiting.
func amountOf(w *maildir.Waits) string {
	var parts []string
	if n := len(w.Answer); n > 0 {
		parts = append(parts, fmt.Sprintf("%d %s an answer", n, map[bool]string{true: "wants", false: "want"}[n == 1]))
	}
	if n := len(w.New); n > 0 {
		parts = append(parts, fmt.Sprintf("%d new", n))
	}
	return cmp.Or(strings.Join(parts, ", "), "no mail is waiting")
}

// threadRow returns a thread's row: its name, urgency, agents, subject, extent and age.
func threadRow(d *deskWork, t *maildir.WaitingThread, title, name, to string) cli.Row {
	extent := ""
	if t.Messages > 1 {
		extent = fmt.Sprint(t.Messages)
	}
	if t.Files > 0 {
		extent = strings.TrimPrefix(extent+", "+count(t.Files, "file"), ", ")
	}
	if extent != "" {
		extent = "(" + extent + ")"
	}
	subject := cli.Line(t.Subject)
	if to != "" { // for the others, the group's title says why they are waiting
		subject += " (" + t.Why + ")"
	}
	return cli.Row{Title: title, Cells: []string{
		name, urgency(d.Screen, t.Importance), d.people(to, t.People), subject, extent,
		d.Ago(t.At.Format(time.RFC3339)),
	}}
}

// urgency returns the word for a message that is more urgent than others, or "" for other messages.
func urgency(s *cli.Screen, importance string) string {
	switch importance {
	case format.Urgent:
		return s.Warn(importance)
	case format.High:
		return importance
	}
	return ""
}

// peopleColumns is the maximum width of a column of names on a terminal, as in "to GreenCastle +5".
const peopleColumns = 17

// people formats names, preceded by to, such as "to GreenCastle, BlueLake". It returns "" if there are no names. On a
// terminal, if the names need more than peopleColumns, it returns the first name and the number of the others.
func (d *deskWork) people(to string, names []string) string {
	if len(names) == 0 { // a notice, or a message with only blind copies
		return ""
	}
	text := to + listNames(names)
	if d.Width == 0 || cli.Fit(text, peopleColumns) == text {
		return text
	}
	more := ""
	if len(names) > 1 {
		more = fmt.Sprintf(" +%d", len(names)-1)
	}
	return cli.Fit(to+cli.Line(names[0]), peopleColumns-len(more)) + more
}

// once returns the names without duplicates, in their order.
func once(names []string) (all []string) {
	for _, name := range names {
		if !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return all
}

// besideMail returns what else needs the user's attention: agents that are blocked by claims, agents that cannot be
// woken, invalid files, and projects that could not be opened.
func besideMail(d *deskWork, w *maildir.Waits) (rows []cli.Row) {
	for _, s := range w.Stopped {
		var paths, holders []string
		for _, by := range s.By {
			paths, holders = append(paths, by.Paths...), append(holders, by.Claim.Agent)
		}
		text := fmt.Sprintf("%s's %s of %s, because of %s's claim",
			cmp.Or(s.Agent, "someone"), s.Doing, d.people("", once(paths)), listNames(once(holders)))
		rows = append(rows, cli.Row{Cells: []string{"Stopped", cli.Line(text), d.Ago(s.At.Format(time.RFC3339))}})
	}
	for _, u := range w.Asleep {
		rows = append(rows, cli.Row{Cells: []string{"Asleep", fmt.Sprintf("%s (%d unread): %s", cli.Line(u.Agent), u.Unread, u.Why()),
			d.Ago(u.Since.Format(time.RFC3339))}})
	}
	if n := len(w.Broken) + w.MoreBroken; n > 0 {
		rows = append(rows, cli.Row{Cells: []string{"Broken", count(n, "file") + ": mailtree problems"}})
	}
	for _, slug := range slices.Sorted(maps.Keys(w.LeftOut)) {
		rows = append(rows, cli.Row{Cells: []string{"Left out", slug + ": " + cli.Line(w.LeftOut[slug])}})
	}
	return rows
}
