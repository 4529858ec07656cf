package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/spf13/cobra"

	"mailtree/cli"
	"mailtree/maildir"
	"mailtree/maildir/history"
	mcpserver "mailtree/mcp"
)

func logCommand(p *program) *cobra.Command {
	var ask maildir.LogQuery
	c := &cobra.Command{
		Use:   "log [AGENT|THREAD|MESSAGE|PATH]",
		Short: "Show who did what, and when",
		Long: "Show from Git who did what, when, and through which door, newest first: everything, what an agent did, what was\n" +
			"done with a message or in a thread, or what became of a file or folder of the mail, such as agents/BlueLake.",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: p.completeAgent,
	}
	f := p.addDeskFlags(c)
	c.Flags().BoolVar(&ask.Patch, "patch", false, "show the lines that changed, too")
	limit := c.Flags().UintP("limit", "n", 0, "at most this many entries (0: all)")
	c.RunE = func(c *cobra.Command, args []string) error {
		return p.atDesk(c.Context(), f, nobodys, nil, func(ctx context.Context, d *deskWork) error {
			ask.Of, ask.Limit = strings.Join(args, ""), int(min(*limit, math.MaxInt32))
			return d.Paged(ctx, func(s *cli.Screen) error { return p.showLog(ctx, d, s, ask) })
		})
	}
	return c
}

// showLog prints the history as it arrives. If standard error is a terminal, it also shows there how far
// back the search has come while nothing is found.
func (p *program) showLog(ctx context.Context, d *deskWork, s *cli.Screen, ask maildir.LogQuery) error {
	told, progress := 0, cli.IsTerminal(p.std.err)
	err := d.Stream(ctx, cli.Of(d.Slug, "log"), ask, func(text json.RawMessage) error {
		var line mcpserver.LogLine
		if err := json.Unmarshal(text, &line); err != nil {
			return err
		}
		if line.Entry == nil {
			if progress && told == 0 {
				fmt.Fprintf(p.std.err, "%slooking: %d commits, back to %s", clearLine, line.Looked, cli.Exact(line.Back.String()))
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
		return showEntry(s, line.Entry)
	})
	if err == nil && told == 0 {
		err = &exitError{exitNothing, errors.New("the history has nothing of that")}
	}
	return err
}

func showEntry(s *cli.Screen, e *history.Entry) error {
	who := e.Who
	if who == "" {
		who = "the server"
	}
	how := ""
	if e.Door != "" {
		how = " (" + e.Door + ")"
	}
	commit := e.Commit[:min(10, len(e.Commit))]
	s.Printf("%s  %s  %s %s%s\n", s.Faint(commit), cli.Exact(e.At.String()), s.Bold(cli.Line(who)), cli.Line(maildir.Deed(e.Verb)), how)
	if about := strings.TrimSpace(strings.TrimPrefix(e.Summary, e.Who+" "+e.ID)); about != "" {
		s.Printf("    %s\n", cli.Line(about))
	}
	if e.ID != "" {
		s.Printf("    %s\n", cli.Line(e.ID))
	}
	var err error
	for _, f := range e.Files {
		if f.Lines != "" {
			s.Printf("\n%s", cli.Text(f.Lines))
			continue
		}
		_, err = fmt.Fprintf(s.Out, "    %-7s %s\n", f.Op, cli.Line(f.Path))
	}
	s.Printf("\n")
	return err
}
