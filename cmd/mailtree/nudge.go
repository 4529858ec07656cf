package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"mailtree/cmd/mailtree/cli"
	mcpserver "mailtree/mcp"
	"mailtree/mcp/tool"
	"mailtree/mcp/wake"
)

func nudgeCommand(p *program) *cobra.Command {
	var watch bool
	c := &cobra.Command{
		Use:   "nudge",
		Short: "Notify agents in tmux windows of new mail",
		Long: "Type a notice into the tmux window of each ready agent that has new mail. An agent gets only one notice per message.\n" +
			"The command lists the agents that it notified and those that it could not notify. With --watch, it keeps running until\n" +
			"interrupted. If no server is running, the command starts one in the background.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return p.nudge(c.Context(), watch) },
	}
	c.Flags().BoolVar(&watch, "watch", false, "keep running until interrupted")
	return c
}

// nudge asks the server to notify agents about their mail, and prints for each agent whether it was notified. If watch
// is set, nudge continues until ctx ends. If a server exits, nudge then connects to the next server.
func (p *program) nudge(ctx context.Context, watch bool) error {
	said := 0
	each := func(line json.RawMessage) error {
		said++
		return p.sayNudge(line)
	}
	if watch {
		return p.follow(ctx, "nudge", mcpserver.NudgeAsk{Watch: true}, each)
	}
	err := p.asCommand(ctx, p.dial, func(ctx context.Context, c *cli.Client) error {
		return c.Stream(ctx, "nudge", mcpserver.NudgeAsk{}, each)
	})
	switch {
	case ctx.Err() != nil:
		return nil
	case err == nil && said == 0:
		fmt.Fprintln(p.std.out, "no agents to notify: no ready agent has new mail")
	}
	return err
}

// sayNudge prints one line of the response: an agent, and whether the agent was notified.
func (p *program) sayNudge(line json.RawMessage) error {
	var o wake.Outcome
	if err := json.Unmarshal(line, &o); err != nil {
		return err
	}
	if o.Why != "" {
		fmt.Fprintf(p.std.out, "%s (%s): not notified of %s, because %s\n", o.Agent, o.Project, count(o.New, "new message"), o.Why)
	} else {
		fmt.Fprintf(p.std.out, "%s (%s): notified of %s\n", o.Agent, o.Project, count(o.New, "new message"))
	}
	return nil
}

// waker wakes agents that have mail. It wakes them once for a caller on the socket, and continuously while the server
// runs.
type waker struct {
	*wake.Waker
	log *slog.Logger
	own wake.By // how the server itself wakes agents; it types into tmux windows only if NUDGE=tmux
}

func newWaker(p *program, a *app) *waker {
	w := &waker{Waker: wake.New(wake.Config{Store: a.store, Log: a.log}), log: a.log}
	w.own = wake.By{Tmux: p.variable("TMUX"), Types: p.cfg.Nudge}
	return w
}

// serve implements mcp.Config.Nudge.
func (w *waker) serve(ctx context.Context, by tool.Caller, watch bool, told func(any)) error {
	do := w.Pass
	if watch {
		do = w.Watch
	}
	return do(ctx, wake.By{Tmux: by.Tmux, Types: true}, func(o wake.Outcome) { told(o) })
}

// nudgeOne implements page.NudgeFunc. It repeats earlier notices, because the user has asked for the notice.
func (w *waker) nudgeOne(ctx context.Context, project, agent string, told func(how, why string)) error {
	by := wake.By{Tmux: w.own.Tmux, Types: true, Again: true}
	return w.Nudge(ctx, by, project, agent, func(o wake.Outcome) { told(o.How, o.Why) })
}

// run wakes agents until ctx ends. It logs errors and retries.
func (w *waker) run(ctx context.Context) {
	for ctx.Err() == nil {
		err := w.Watch(ctx, w.own, func(o wake.Outcome) {
			w.log.Info("wake", "project", o.Project, "agent", o.Agent, "new", o.New, "how", o.How, "reason", o.Why)
		})
		if err == nil {
			return
		}
		w.log.Error("failed to wake agents; will retry", "error", err)
		select {
		case <-time.After(wake.DefaultRetry):
		case <-ctx.Done():
		}
	}
}
