package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/spf13/cobra"

	"mailtree/cmd/mailtree/cli"
	"mailtree/maildir"
	mcpserver "mailtree/mcp"
)

func watchCommand(p *program) *cobra.Command {
	var lines bool
	c := &cobra.Command{
		Use:   "watch",
		Short: "Follow a project's events, one per line",
		Long: "Follow the events of a project or, with --all, of every project, until interrupted. The command prints each event on\n" +
			"one line. The events are mail, read, ack, claim, release, hold, go, status, register and edit. If the server stops,\n" +
			"the command connects to the next one.",
		Args: cobra.NoArgs,
	}
	f := p.addDeskFlags(c)
	c.Flags().BoolVar(&lines, "lines", false, "for programs: print each event as a line of JSON; the first line contains "+
		"only the \"seq\" at which the events begin")
	all := c.Flags().Bool("all", false, "follow every project")
	after := c.Flags().Uint64("after", 0, "continue after the event with this \"seq\" (see --lines)")
	c.RunE = func(c *cobra.Command, _ []string) error {
		w := &watching{screen: cli.NewScreen(p.std.out, p.variable), lines: lines || f.json}
		var project string // empty means all projects
		if !*all {
			var err error
			if project, err = p.projectKey(f.project); err != nil {
				return err
			}
		}
		if c.Flags().Changed("after") {
			seq := int64(min(*after, math.MaxInt64))
			w.ask.After = &seq
		}
		return p.follow(c.Context(), cli.Of(project, "watch"), &w.ask, w.show)
	}
	return c
}

// watching prints the feed, and records the position of the last event that it has printed.
type watching struct {
	ask    mcpserver.WatchAsk
	screen *cli.Screen
	lines  bool
}

// follow runs a verb whose response consists of JSON lines, until ctx ends. It calls each with every line. When a
// server exits, follow connects to the next server. It returns errors from each, program.dial and cli.Client.Stream.
func (p *program) follow(ctx context.Context, verb string, ask any, each func(line json.RawMessage) error) error {
	for ctx.Err() == nil {
		err := p.asCommand(ctx, p.dial, func(ctx context.Context, c *cli.Client) error {
			return c.Stream(ctx, verb, ask, each)
		})
		if lost := (*cli.LostError)(nil); err != nil && !errors.As(err, &lost) && ctx.Err() == nil {
			return err
		}
		select { // wait, because another process may be starting a server
		case <-time.After(patience):
		case <-ctx.Done():
		}
	}
	return nil
}

// show prints an event and advances the position. The first line of a response does not contain an event, only the
// position at which watching begins.
func (w *watching) show(line json.RawMessage) error {
	var h maildir.Event
	if err := json.Unmarshal(line, &h); err != nil {
		return err
	}
	w.ask.After = &h.Seq
	switch {
	case w.lines:
		_, err := fmt.Fprintf(w.screen.Out, "%s\n", line)
		return err
	case h.What == "":
		return nil
	}
	text, who := h.Text, cli.Line(h.Agent)
	if h.What == maildir.HappenedHold {
		who = "" // the text already contains the name
	}
	if h.ID != "" {
		text = w.screen.ShortID(h.ID) + "  " + text
	}
	cells := []string{h.At.Local().Format(time.TimeOnly), fmt.Sprintf("%-8s", h.What)}
	if h.Project != "" {
		cells = append(cells, h.Project)
	}
	w.screen.Table([]cli.Row{{Cells: append(cells, who, cli.Line(text))}})
	return nil
}
