package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"mailtree/cmd/mailtree/cli"
	fullscreen "mailtree/cmd/mailtree/desk"
	"mailtree/maildir"
	"mailtree/maildir/format"
	mcpserver "mailtree/mcp"
	"mailtree/mcp/mail"
)

// afterAnswer creates the timer after which the desk sends an answer. Only tests replace it.
var afterAnswer = time.After

func deskCommand(p *program) *cobra.Command {
	f, s := &deskFlags{}, &deskSource{program: p, place: "all projects"}
	c := &cobra.Command{
		Use:   "desk",
		Short: "Show what is waiting for you, in a full-screen view",
		Long: "Show a full-screen view of what is waiting for you in a project or, with --all, in all projects. The list updates\n" +
			"live, and the thread that you open is shown next to it. Each key works like the corresponding command; ? lists the\n" +
			"keys. An answer with y or n is sent after five seconds, or as soon as you give another answer or quit.",
		Args: cobra.NoArgs,
	}
	p.addProjectFlag(c, &f.project)
	all := c.Flags().Bool("all", false, "list all projects")
	c.MarkFlagsMutuallyExclusive("all", "project")
	c.RunE = func(c *cobra.Command, _ []string) error {
		in, _ := p.std.in.(*os.File)
		out, _ := p.std.out.(*os.File)
		if !cli.IsTerminal(in) || !cli.IsTerminal(out) || slices.Contains([]string{"", "dumb"}, p.variable("TERM")) {
			return &exitError{exitUsage, errors.New("`mailtree desk` needs a terminal that supports full-screen programs. " +
				"To print the list instead, run `mailtree`")}
		}
		if err := p.needPerson("use the desk"); err != nil {
			return err
		}
		if !*all {
			if err := p.atDesk(c.Context(), f, mine, nil, func(_ context.Context, d *deskWork) error {
				s.slug, s.place = d.Slug, cli.Line(filepath.Base(d.HumanKey))
				return nil
			}); err != nil {
				return err
			}
		}
		screen := func() *cli.Screen { return cli.NewScreen(out, p.variable) }
		return fullscreen.New(s, afterAnswer).Run(c.Context(), &cli.Terminal{In: in, Out: out}, screen)
	}
	return c
}

// deskSource implements desk.Source. It sends the same requests as the corresponding commands.
type deskSource struct {
	*program
	slug, place string // the project, and its name on the screen; slug is empty for all projects
}

// forRow calls do with a client of the server, for the project of a row. In a list that covers a single project, the
// rows do not specify the project.
func (s *deskSource) forRow(ctx context.Context, project string, do func(ctx context.Context, d *deskWork) error) error {
	if project = cmp.Or(project, s.slug); project == "" {
		return s.atStore(ctx, false, do)
	}
	return s.atDesk(ctx, &deskFlags{project: project}, mine, nil, do)
}

func (s *deskSource) List(ctx context.Context) (*fullscreen.List, error) {
	var w maildir.Waits
	var who mail.Directory
	if err := s.forRow(ctx, "", func(ctx context.Context, d *deskWork) error {
		ask := params{"project_key": d.Slug, "active_only": true, "all_projects": d.Slug == ""}
		return cmp.Or(s.waitsOf(ctx, d, false, &w), d.Call(ctx, "list_agents", ask, &who))
	}); err != nil {
		return nil, err
	}
	d := &deskWork{Screen: &cli.Screen{Width: 80, Now: time.Now}} // formats text without styles
	const actions = false                                         // the full-screen view has keys instead of commands
	l := &fullscreen.List{Title: s.place + " · " + amountOf(&w), Me: w.Agent, Quiet: quietLines(d, &w, actions)}
	l.Agents = doingNow(d, who.Agents, w.Agent)
	for _, g := range w.Groups() {
		var rows []fullscreen.Row
		for i := range g.Prompts {
			a := &g.Prompts[i]
			at := maildir.WaitingThread{Project: a.Project, At: a.Since}
			rows = append(rows, fullscreen.Row{WaitingThread: at, Mark: "asks", Who: cli.Line(a.Agent), About: promptIn(a) + ": " + s.wayTo(a)})
		}
		for i := range g.Threads {
			cells := threadRow(d, &g.Threads[i], "", map[bool]string{true: "to "}[g.ID == maildir.OwedGroup]).Cells
			about := strings.TrimPrefix(cells[3]+": "+cells[4], ": ") // in a list of all projects, cells[3] is the project
			rows = append(rows, fullscreen.Row{WaitingThread: g.Threads[i], Mark: cells[1], Who: cells[2], About: about})
		}
		l.Groups = append(l.Groups, fullscreen.Group{Title: g.Title, Total: len(g.Prompts) + g.Total, Rows: rows})
	}
	return l, nil
}

// doingNow returns a line that describes what the agents are doing, except for the user's own agent. Agents that are
// asking the user for permission come first, followed by agents on hold.
func doingNow(d *deskWork, all []mail.Listed, me string) string {
	var parts [3][]string
	for i := range all {
		a := &all[i]
		rank, state := 2, presence(a.Status, false, a.Held)
		switch {
		case a.Asks:
			rank, state = 0, "asks"
		case a.Held != nil:
			rank = 1
		case a.Editing != "":
			state += " " + path.Base(a.Editing) + " " + d.Ago(a.Edited)
		}
		if a.Name != me && state != "" && state != format.Offline {
			parts[rank] = append(parts[rank], cli.Line(cmp.Or(a.Address, a.Name)+" "+strings.TrimSpace(state)))
		}
	}
	return strings.Join(slices.Concat(parts[:]...), "  ")
}

func (s *deskSource) Thread(ctx context.Context, r fullscreen.Row) (all []fullscreen.Message, err error) {
	return all, s.forRow(ctx, r.Project, func(ctx context.Context, d *deskWork) error {
		uri := "resource://thread/" + url.PathEscape(r.Thread) + "?include_bodies=true&project=" + d.Slug
		for at := uri; at != ""; {
			var page mail.ThreadResource
			if err := d.Read(ctx, at, &page); err != nil {
				return err
			}
			for _, m := range page.Messages {
				shown := fullscreen.Message{Message: m, Head: cli.Line(fromTo(&m))}
				if !m.Verified {
					shown.Head += " (not verified)"
				}
				for _, a := range m.Attachments {
					shown.Below += "file: " + cli.Line(a.Path) + "\n"
				}
				all = append(all, shown)
			}
			if at = ""; page.Next != "" {
				at = uri + "&cursor=" + url.QueryEscape(page.Next)
			}
		}
		_ = d.Ask(ctx, cli.Of(d.Slug, "looking"), mcpserver.LookAsk{Thread: r.Thread}, &struct{}{}) // best effort
		return nil
	})
}

func (s *deskSource) Search(ctx context.Context, project, query string) (rows []fullscreen.Row, err error) {
	if cmp.Or(project, s.slug) == "" {
		return nil, errors.New("to search a project, first move to one of its rows")
	}
	var h mail.Hits
	err = s.forRow(ctx, project, func(ctx context.Context, d *deskWork) error {
		return d.Call(ctx, "search_messages", params{"project_key": d.Slug, "agent_name": d.Person, "query": query}, &h)
	})
	byThread(h.Hits)
	for i := range h.Hits {
		hit := &h.Hits[i]
		t := maildir.WaitingThread{Project: project, Thread: threadOf(hit), Message: hit.ID}
		t.At, _ = time.Parse(time.RFC3339Nano, hit.Created) // if the time is invalid, the row shows no time
		if n := len(rows); n == 0 || rows[n-1].Thread != t.Thread {
			rows = append(rows, fullscreen.Row{WaitingThread: t, Who: cli.Line(hit.From), About: cli.Line(hit.Subject)})
		}
	}
	return rows, err
}

// deskLater is how long the h key hides a thread.
const deskLater = 2 * time.Hour

func (s *deskSource) Do(ctx context.Context, key string, r fullscreen.Row, ids []string) (fullscreen.Done, error) {
	done := fullscreen.Done{Project: r.Project}
	err := s.forRow(ctx, r.Project, func(ctx context.Context, d *deskWork) error {
		did := map[string]string{"y": "Sent Yes", "n": "Sent No", "h": "Hidden for two hours", "e": "Marked as read"}
		done.Text = cmp.Or(did[key], "Replied") + ": " + r.About
		done.Verb = cmp.Or(map[string]string{"h": "later", "e": "read"}[key], "reply")
		switch key {
		case "y", "n":
			var a maildir.Decided
			ask := mcpserver.DecideAsk{Agent: d.Person, Decision: maildir.Decision{ID: r.Message, Yes: key == "y", Shown: r.Shown}}
			err := d.Ask(ctx, cli.Of(d.Slug, "decide"), ask, &a)
			done.IDs = []string{a.ID}
			return err
		case "h":
			var a maildir.Deferred
			err := d.Ask(ctx, cli.Of(d.Slug, "later"), mcpserver.LaterAsk{Agent: d.Person, Thread: r.Thread, For: deskLater}, &a)
			done.IDs = []string{a.ID}
			return err
		case "e":
			var a mcpserver.Finished
			err := d.Ask(ctx, cli.Of(d.Slug, "finish"), mcpserver.FinishAsk{Agent: d.Person, IDs: ids}, &a)
			done.IDs = a.IDs
			return err
		}
		o := &sendOptions{tool: "reply_message", sent: func(a *mail.Sent) { done.IDs = []string{a.ID} }}
		if key == "r" {
			o.audience = maildir.EveryoneInside
		}
		c := &cobra.Command{} // has no flags
		c.SetContext(ctx)
		return s.writeMessage(c, &deskFlags{project: d.Slug}, o, r.Message)
	})
	return done, err
}

func (s *deskSource) Undo(ctx context.Context, done fullscreen.Done) error {
	return s.forRow(ctx, done.Project, func(ctx context.Context, d *deskWork) error {
		for _, id := range done.IDs {
			ask := mcpserver.MessageAsk{Agent: d.Person, ID: id, Verb: done.Verb}
			if err := d.Ask(ctx, cli.Of(d.Slug, "undo"), ask, &maildir.Undone{}); err != nil {
				return err
			}
		}
		return nil
	})
}

func (s *deskSource) Watch(ctx context.Context, changed func()) error {
	var ask mcpserver.WatchAsk
	return s.follow(ctx, cli.Of(s.slug, "watch"), &ask, func(line json.RawMessage) error {
		var h maildir.Event
		err := json.Unmarshal(line, &h)
		ask.After = &h.Seq
		changed()
		return err
	})
}
