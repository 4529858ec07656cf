package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	mcpserver "mailtree/mcp"
	"mailtree/mcp/agentmail/nudge"
	"mailtree/mcp/protocol"
	"mailtree/mcp/tool"
)

func nudgeCommand(p *program) *cobra.Command {
	var watch bool
	var idle time.Duration
	c := &cobra.Command{
		Use:   "nudge",
		Short: "Tell agents in tmux windows of new mail",
		Long: "Type a notice into the tmux window of each agent whose status is ready and who has mail that it was not told\n" +
			"of, once for each message. With --watch until interrupted. Prints whom it told, and who could not be told. Works\n" +
			"through the server of the store; where none runs, one is started in the background.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return p.nudge(c.Context(), watch, idle) },
	}
	c.Flags().BoolVar(&watch, "watch", false, "go on until interrupted")
	c.Flags().DurationVar(&idle, "idle", 5*time.Minute, "how long a server that is started here stays when nobody is connected")
	_ = c.Flags().MarkHidden("idle")
	return c
}

// nudge asks the server to tell agents of their mail, and prints whom it told. With watch it goes
// on, also with the next server when one has ended.
func (p *program) nudge(ctx context.Context, watch bool, idle time.Duration) error {
	for {
		err := p.nudgeOnce(ctx, watch, idle)
		if ctx.Err() != nil {
			return nil
		}
		if !errors.Is(err, errServerEnded) {
			return err
		}
		select { // somebody may start another server
		case <-time.After(patience):
		case <-ctx.Done():
			return nil
		}
	}
}

var errServerEnded = errors.New("the server has ended")

func (p *program) nudgeOnce(ctx context.Context, watch bool, idle time.Duration) error {
	url := "http://mailtree/nudge"
	if watch {
		url += "?watch=1"
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, nil)
	if err != nil {
		return err
	}
	caller, err := hello(p.env, stdioOptions{})
	if err != nil {
		return err
	}
	r.Header.Set(protocol.HelloHeader, string(tool.Encode(caller)))
	var unreached error
	const start = true // a server, where none runs
	dial := func(ctx context.Context, _, _ string) (c net.Conn, err error) {
		c, err = p.dial(ctx, start, idle)
		unreached = err
		return c, err
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: dial}}
	res, err := client.Do(r)
	for range nudgeTries {
		if err == nil || ctx.Err() != nil || unreached != nil {
			break
		}
		select { // the server took the connection and is ending: wait until it has
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
		}
		res, err = client.Do(r) // asks the next server: a message is announced once, however often anybody asks
	}
	if err != nil {
		return errors.Unwrap(err) // the cause within the *url.Error
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("the server answers %s: is it of this version, and yours?", res.Status)
	}
	said, err := p.sayNudges(res.Body)
	switch {
	case watch && (err == nil || errors.Is(err, io.ErrUnexpectedEOF)):
		return errServerEnded
	case err == nil && said == 0:
		fmt.Fprintln(p.std.out, "nobody to tell: no agent is ready and has mail that it was not told of")
	}
	return err
}

// nudgeTries is how often nudge asks another server when one in the background ends at that very
// moment.
const nudgeTries = 5

// sayNudges prints the answer and returns how many agents it names.
func (p *program) sayNudges(answer io.Reader) (said int, err error) {
	for lines := json.NewDecoder(answer); ; said++ {
		var o struct {
			nudge.Outcome
			mcpserver.NudgeError
		}
		switch err := lines.Decode(&o); {
		case errors.Is(err, io.EOF):
			return said, nil
		case err != nil:
			return said, err
		case o.Error != "":
			return said, errors.New(o.Error)
		case o.Why != "":
			fmt.Fprintf(p.std.out, "%s (%s): %s not told: %s\n", o.Agent, o.Project, count(o.New, "new message"), o.Why)
		default:
			fmt.Fprintf(p.std.out, "%s (%s): told of %s\n", o.Agent, o.Project, count(o.New, "new message"))
		}
	}
}

// nudger tells agents of mail: once for a caller on the socket, and with NUDGE=tmux for as long as
// the server runs.
type nudger struct {
	*nudge.Nudger
	log *slog.Logger
	own string // $TMUX of the server; used when it watches by itself
	on  bool
}

func newNudger(p *program, a *app) *nudger {
	n := &nudger{Nudger: nudge.New(nudge.Config{Store: a.store, Log: a.log}), log: a.log, on: p.cfg.Nudge}
	n.own, _ = lookup(p.env, "TMUX")
	return n
}

// serve implements mcp.Config.Nudge.
func (n *nudger) serve(ctx context.Context, by tool.Caller, watch bool, told func(any)) error {
	do := n.Pass
	if watch {
		do = n.Watch
	}
	return do(ctx, by.Tmux, func(o nudge.Outcome) { told(o) })
}

// run watches until ctx ends, if NUDGE says so.
func (n *nudger) run(ctx context.Context) {
	if !n.on {
		return
	}
	for ctx.Err() == nil {
		err := n.Watch(ctx, n.own, func(o nudge.Outcome) {
			n.log.Info("nudge", "project", o.Project, "agent", o.Agent, "new", o.New, "not told", o.Why)
		})
		if err == nil {
			return
		}
		n.log.Error("nudge failed; it is tried again", "error", err)
		select {
		case <-time.After(nudge.DefaultRetry):
		case <-ctx.Done():
		}
	}
}
