package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"mailtree/cmd/mailtree/cli"
	"mailtree/maildir"
	"mailtree/maildir/format"
	"mailtree/maildir/storedir"
)

// waitsFlags are the flags of `mailtree` without a command.
type waitsFlags struct {
	*deskFlags
	rows string
	all  bool
}

// addWaitsFlags adds to c the flags of `mailtree` without a command.
func (p *program) addWaitsFlags(c *cobra.Command) *waitsFlags {
	f := &waitsFlags{deskFlags: p.addDeskFlags(c)}
	c.Flags().StringVar(&f.rows, "rows", "", "how many rows to print, or all (default: as many as fit in the terminal, but at least 3)")
	c.Flags().BoolVar(&f.all, "all", false, "list all projects")
	return f
}

// most returns how many rows --rows allows: -1 for all rows, or 0 for as many as fit on the terminal.
func (f *waitsFlags) most() (int, error) {
	if f.rows == "" {
		return 0, nil
	}
	if f.rows == "all" {
		return -1, nil
	}
	if n, err := strconv.Atoi(f.rows); err == nil && n > 0 {
		return n, nil
	}
	return 0, fmt.Errorf("--rows is %s, but must be a positive number or all", format.Quote(f.rows))
}

// showWaits runs `mailtree` without arguments. It prints the items that are waiting for the user in this folder's
// project, and the commands to run next. If the store has no projects, it returns the error from begin. Outside a
// project, it prints the list of projects, and the command that creates a project for the code base.
func (p *program) showWaits(c *cobra.Command, f *waitsFlags) error {
	ctx := c.Context()
	most, err := f.most()
	if err != nil {
		return usageError(c, err)
	}
	err = p.inProjects(c, f.deskFlags, f.all, func(ctx context.Context, d *deskWork) error {
		ask := func(answer any) error { return p.waitsOf(ctx, d, most != 0, answer) }
		return present(d, ask, func(w *maildir.Waits) error {
			var u maildir.CatchUp
			if err := p.catchUpOf(ctx, d, time.Time{}, &u); err != nil {
				return err
			}
			p.printWaits(d, w, sinceLine(d, &u), most)
			return nil
		})
	})
	if errors.Is(err, errNoProject) {
		screen := cli.NewScreen(p.std.out, p.variable)
		if caller, err := hello(p.env, stdioOptions{}); err == nil && caller.WorkTree != "" && !f.json {
			for _, from := range p.movedHere(ctx, caller.WorkTree) {
				screen.Tell("%s\n", movedLine(from))
			}
			screen.Tell("%s does not have a project yet. To create one: `mailtree new project`\n\n", cli.Line(caller.WorkTree))
		}
		if !f.json {
			screen.Tell("%s\n", screen.Bold("Projects"))
		}
		return p.listProjects(ctx, f.json)
	}
	return err
}

// printWaits prints the list of waiting items, with at most the given number of rows, followed by the line in since. If
// most is 0, it prints as many rows as fit on the terminal. If most is -1 or there is no terminal, it prints all rows.
func (p *program) printWaits(d *deskWork, w *maildir.Waits, since string, most int) {
	place := "all projects"
	if d.Slug != "" {
		place = cli.Line(filepath.Base(d.HumanKey))
	}
	d.Say(d.Faint, "%s · you are %s · %s", place, cli.Line(w.Agent), amountOf(w))
	if most != -1 {
		w.Hidden = nil
	}
	const actions = true
	quiet, held, hint := quietLines(d, w, actions), heldLines(d, w), ""
	if d.Slug != "" && len(w.Stopped)+len(w.Asleep)+len(w.Broken) > 0 {
		hint = "to hide these: mailtree dismiss"
	}
	if most == 0 && d.Height > 0 {
		others := 5 // the first line, two lines of commands, the number of other rows, and the shell's prompt
		if hint != "" {
			others++
		}
		if since != "" {
			others++
		}
		titles := 0
		for _, g := range w.Groups() {
			titles += min(1, len(g.Prompts)+len(g.Threads))
		}
		others += len(w.Prompts) // each prompt's row takes up two lines
		most = max(d.Height-others-titles-lineCount(d, quiet)-lineCount(d, held), 3)
	}
	rows, left := p.waitRows(d, w, most)
	d.Table(rows)
	if left > 0 {
		all := ""
		if w.Project == "" {
			all = " --all"
		}
		d.Tell("%s\n", d.Faint(fmt.Sprintf("+ %d more: mailtree%s --rows all", left, all)))
	}
	for _, line := range quiet {
		d.Tell("%s\n", d.Faint(line))
	}
	for _, line := range []string{hint, since} {
		if line != "" {
			d.Tell("%s\n", d.Faint(line))
		}
	}
	for _, line := range held {
		d.Tell("%s\n", line)
	}
	if w.Alone && len(rows) == 0 {
		d.Table([]cli.Row{
			{Cells: []string{"1.", "mailtree setup claude", d.Faint("connects a client, if none is connected (see setup --list)")}},
			{Cells: []string{"2.", "start the client in this folder", d.Faint("it becomes an agent of this project")}},
			{Cells: []string{"3.", `mailtree send AGENT "text"`, d.Faint("writes to an agent (see mailtree agents)")}},
		})
		return
	}
	d.Tell("%s\n", d.Faint("next: "+strings.Join(nextCommands(d, w), "   ")))
}

// waitRows returns up to most rows of the groups, and the number of remaining rows. If most is 0 or negative, it
// returns all rows that the server has sent.
func (p *program) waitRows(d *deskWork, w *maildir.Waits, most int) (rows []cli.Row, left int) {
	var ids []string
	var of []rowThread
	groups, limited := w.Groups(), most > 0
	for i := range groups {
		g := &groups[i]
		left += len(g.Prompts) + g.Total
		if limited {
			g.Prompts = g.Prompts[:min(len(g.Prompts), most)]
			most -= len(g.Prompts)
			g.Threads = g.Threads[:min(len(g.Threads), most)]
			most -= len(g.Threads)
		}
		left -= len(g.Prompts) + len(g.Threads)
		for _, t := range g.Threads {
			row := rowThread{ID: t.Thread, Waiting: t.IDs}
			switch {
			case g.ID == maildir.OwedGroup: // nothing in it is waiting for the user
				row.Waiting = []string{t.Message}
			case t.Waiting > len(t.IDs):
				row.Waiting = nil
			}
			ids, of = append(ids, t.Message), append(of, row)
			if d.Slug == "" {
				d.rowProjects = append(d.rowProjects, t.Project)
			}
		}
	}
	names := d.number(ids, of...)
	for _, g := range groups {
		begin := len(rows)
		for i := range g.Prompts {
			rows = append(rows, p.promptRow(d, &g.Prompts[i]))
		}
		for i := range g.Threads {
			t, to := &g.Threads[i], ""
			switch g.ID {
			case maildir.OwedGroup:
				to = "to "
			case maildir.HiddenGroup:
				t.Subject += " (returns in " + d.In(t.Until.Format(time.RFC3339)) + ")"
			}
			rows = append(rows, threadRow(d, t, names[0], to))
			names = names[1:]
		}
		if len(rows) > begin {
			rows[begin].Title = g.Title
		}
	}
	return rows, left
}

// lineCount returns how many lines the texts take up on the terminal.
func lineCount(d *deskWork, texts []string) (n int) {
	for _, text := range texts {
		n += 1 + strings.Count(cli.Fold(text, d.Width), "\n")
	}
	return n
}

// nextCommands returns the commands that the user will probably want to run next.
func nextCommands(d *deskWork, w *maildir.Waits) []string {
	name := func(t *maildir.WaitingThread) string {
		row := d.rowOf(t.Message)
		if t.Project != "" && row == d.ShortID(t.Message) { // in a list of all projects, only row numbers imply the project
			row += " --project " + t.Project
		}
		return row
	}
	if mail := w.Mail(); len(mail) > 0 {
		first := name(&mail[0])
		switch {
		case mail[0].Decides:
			return []string{"mailtree read " + first, "yes " + first, "no " + first + ` "…"`, "later " + first, "open"}
		case mail[0].Why != "":
			return []string{"mailtree read " + first, "reply " + first + ` "…"`, "ack " + first, "open"}
		case format.ServerName(mail[0].People[0]): // nobody reads replies to the server
			return []string{"mailtree read " + first, "archive " + first, "open"}
		}
		return []string{"mailtree read " + first, "reply " + first + ` "…"`, "archive " + first, "open"}
	}
	if len(w.Owed) > 0 {
		return []string{"mailtree read " + name(&w.Owed[0]), "inbox", "agents", "open"}
	}
	return []string{"mailtree inbox", "search WORD", "agents", "help"}
}

// amountOf says how many items of each kind are waiting.
func amountOf(w *maildir.Waits) string {
	var parts []string
	if n := len(w.Prompts) + w.Totals.Blocked; n > 0 {
		parts = append(parts, fmt.Sprintf("%d blocked on you", n))
	}
	if n := w.Totals.Questions; n > 0 {
		parts = append(parts, count(n, "question"))
	}
	if n := w.Totals.New; n > 0 {
		parts = append(parts, fmt.Sprintf("%d new", n))
	}
	return cmp.Or(strings.Join(parts, ", "), "no mail is waiting")
}

// promptRow returns the row of a permission prompt. The command that shows the client is printed below the row, because
// a column may be too narrow for the command. The row has no number, because the prompt is not a message.
func (p *program) promptRow(d *deskWork, a *maildir.Prompt) cli.Row {
	return cli.Row{
		Cells: []string{"", d.Warn("asks"), d.people("", []string{a.Agent}), d.Faint(storedir.SlugWord(a.Project)), promptIn(a), "",
			d.Ago(a.Since.Format(time.RFC3339))},
		Below: p.wayTo(a),
	}
}

// promptIn describes a permission prompt. The description contains the tool that needs permission or, if the client
// does not report the tool, the client's name.
func promptIn(a *maildir.Prompt) string {
	if a.Tool != "" {
		return "permission: " + cli.Line(a.Tool)
	}
	return "permission prompt in " + cli.Line(a.Client)
}

// wayTo returns the command that shows the tmux pane of a client that is asking for permission. If there is no pane, it
// returns the client's folder. The command depends on whether this terminal is in the same tmux server as the pane.
func (p *program) wayTo(a *maildir.Prompt) string {
	mine, _, inside := strings.Cut(p.variable("TMUX"), ",")
	if a.Pane.Attach() != "" && inside && mine == a.Pane.Socket() {
		return "tmux switch-client -t " + a.Pane.Pane
	}
	return cmp.Or(a.Pane.Attach(), cli.Line(a.Dir))
}

// threadRow returns the row of a thread. Its cells are the name, urgency, agents, project, subject, size and age.
func threadRow(d *deskWork, t *maildir.WaitingThread, name, to string) cli.Row {
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
	if to != "" { // in other groups, the title says why threads are waiting
		subject += " (" + t.Why + ")"
	}
	return cli.Row{Cells: []string{
		name, urgency(d.Screen, t.Importance), d.people(to, t.People), d.Faint(storedir.SlugWord(t.Project)), subject, extent,
		d.Ago(t.At.Format(time.RFC3339)),
	}}
}

// urgency returns the importance of a message if it is urgent or high, and "" otherwise.
func urgency(s *cli.Screen, importance string) string {
	switch importance {
	case format.Urgent:
		return s.Warn(importance)
	case format.High:
		return importance
	}
	return ""
}

// peopleColumns is the maximum width, on a terminal, of a column that contains names, such as "to GreenCastle +5".
const peopleColumns = 17

// people formats names with the prefix to, such as "to GreenCastle, BlueLake". It returns "" if there are no names. If
// the names need more than peopleColumns on a terminal, it returns the first name and the number of remaining names.
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

// once returns the names without duplicates, in the original order.
func once(names []string) (all []string) {
	for _, name := range names {
		if !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return all
}

// quietLines returns the lines below the list of waiting items, which may also need the user's attention. They report
// agents that were stopped by claims, agents that cannot be woken, invalid files, hidden threads, and projects that
// could not be opened. If actions is true, the lines for agents end with the commands that would resolve the problem.
func quietLines(d *deskWork, w *maildir.Waits, actions bool) (lines []string) {
	reader := ""
	if actions {
		reader = w.Agent
	}
	lines = stuckLines(d, w.Stopped, w.Asleep, reader)
	switch n := w.BrokenFiles(); {
	case n == 1:
		lines = append(lines, "1 file has errors: mailtree problems")
	case n > 1:
		lines = append(lines, fmt.Sprintf("%d files have errors: mailtree problems", n))
	}
	if w.Later > 0 && len(w.Hidden) == 0 {
		lines = append(lines, fmt.Sprintf("%s hidden for now; the next one returns in %s: mailtree --rows all",
			count(w.Later, "thread"), d.In(w.LaterUntil.Format(time.RFC3339))))
	}
	for _, slug := range slices.Sorted(maps.Keys(w.LeftOut)) {
		lines = append(lines, "skipped "+slug+": "+w.LeftOut[slug])
	}
	for i := range lines {
		lines[i] = cli.Line(lines[i])
	}
	return lines
}

// stuckLines returns a line for the agents that were stopped by claims, and a line for the agents that cannot be woken.
// Unless reader is "", each line ends with the command with which the agent named reader can resolve the problem.
func stuckLines(d *deskWork, stopped []maildir.Stop, asleep []maildir.Unwoken, reader string) (lines []string) {
	act := func(project, commands string) string {
		if reader == "" {
			return ""
		}
		if project != "" {
			commands += " --project " + project
		}
		return "   " + commands
	}
	more := func(n int) string {
		if n <= 1 {
			return ""
		}
		return fmt.Sprintf(" +%d", n-1)
	}
	in := func(project string) string {
		if project == "" {
			return ""
		}
		return " in " + storedir.SlugWord(project)
	}
	if len(stopped) > 0 {
		s := &stopped[0]
		var paths, holders []string
		for _, by := range s.By {
			paths, holders = append(paths, by.Paths...), append(holders, by.Claim.Agent)
		}
		lines = append(lines, fmt.Sprintf("A claim stopped %s's %s of %s (held by %s)%s%s  %s", cmp.Or(s.Agent, "someone"), s.Doing,
			d.people("", once(paths)), listNames(once(holders)), in(s.Project), more(len(stopped)), d.Ago(s.At.Format(time.RFC3339)))+
			act(s.Project, freeLine(d, reader, holders[0], s.By[0].Claim.Pattern)))
	}
	if len(asleep) > 0 {
		u := &asleep[0]
		lines = append(lines, fmt.Sprintf("Can't wake %s%s (%d unread, %s)%s: %s", u.Agent, in(u.Project), u.Unread,
			d.Ago(u.Since.Format(time.RFC3339)), more(len(asleep)), u.Why())+act(u.Project, "mailtree inbox "+u.Agent))
	}
	return lines
}
