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
	"mailtree/mcp/protocol"
	"mailtree/mcp/tool"
	"mailtree/mcp/wake"
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
			wake.Outcome
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

// waker wakes agents for their mail: once for a caller on the socket, and as long as the server
// runs.
type waker struct {
	*wake.Waker
	log *slog.Logger
	own wake.By // the server itself: it types with NUDGE=tmux
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

// nudgeOne implements page.NudgeFunc. Nobody but a person asks: what was told already is told again.
func (w *waker) nudgeOne(ctx context.Context, project, agent string, told func(how, why string)) error {
	by := wake.By{Tmux: w.own.Tmux, Types: true, Again: true}
	return w.Nudge(ctx, by, project, agent, func(o wake.Outcome) { told(o.How, o.Why) })
}

// run watches until ctx ends.
func (w *waker) run(ctx context.Context) {
	for ctx.Err() == nil {
		err := w.Watch(ctx, w.own, func(o wake.Outcome) {
			w.log.Info("wake", "project", o.Project, "agent", o.Agent, "new", o.New, "how", o.How, "not told", o.Why)
		})
		if err == nil {
			return
		}
		w.log.Error("waking failed; it is tried again", "error", err)
		select {
		case <-time.After(wake.DefaultRetry):
		case <-ctx.Done():
		}
	}
}
