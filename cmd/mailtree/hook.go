package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"mailtree/clients"
	"mailtree/clients/event"
	"mailtree/clients/sign"
	"mailtree/maildir"
	"mailtree/maildir/seat"
	"mailtree/maildir/storedir"
	mcpserver "mailtree/mcp"
	"mailtree/mcp/tool"
)

func hookCommand(p *program) *cobra.Command {
	var wait, follow, plugin bool
	c := &cobra.Command{
		Use:   "hook CLIENT",
		Short: "Notify a client's agent of new mail (run by the client)",
		Long: "Notify the agent in a client of new mail. `mailtree setup` configures the client to run this command at certain\n" +
			"events, and the client passes the event on standard input. If no server is running, the command starts one when a\n" +
			"session begins in a project, but not on other events. The exit status is 0 even if the command fails, so that a turn\n" +
			"never fails because of it. Before the client edits a file, the command refuses the edit if another agent has claimed\n" +
			"the file; CLAIM_MODE in the environment is block, warn or off. With --wait, the command waits until mail arrives for\n" +
			"an idle session, and then exits in a way that makes the client start a turn: for Claude Code, with exit status 2.",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return harmless(errors.New("hook: specify one client"))
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			if follow {
				return harmless(p.hookFollow(c.Context()))
			}
			if wait {
				return harmless(p.hookWait(c.Context(), args[0], plugin))
			}
			return harmless(p.hook(c.Context(), args[0], plugin))
		},
	}
	c.Flags().BoolVar(&wait, "wait", false, "wait for mail and wake the session")
	c.Flags().BoolVar(&follow, "follow", false, "wait for the end of a turn, as recorded in the client's files (run by the hook itself)")
	c.Flags().BoolVar(&plugin, "plugin", false, "do nothing if `mailtree setup` has written hooks (used by plugins)")
	_ = c.Flags().MarkHidden("follow") // cannot fail: the flags exist
	_ = c.Flags().MarkHidden("plugin")
	c.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return harmless(err) })
	return c
}

// harmless gives err the exit status 0, so that err is printed but does not make the hook fail. If err already has an
// exit status, harmless returns err unchanged. Clients interpret some exit statuses as a request to stop the turn or
// the edit.
func harmless(err error) error {
	var meant *exitError
	if err == nil || errors.As(err, &meant) {
		return err
	}
	return &exitError{0, err}
}

// spareClient returns the error for running the program without a command. If standard input contains a client's event,
// the error has exit status 0 and no text. Some clients run a hook's command without its arguments, and interpret a
// failure as a refusal.
func (p *program) spareClient(err error) error {
	f, ok := p.std.in.(*os.File)
	if err == nil || !ok {
		return err
	}
	if fi, failed := f.Stat(); failed != nil || fi.Mode()&os.ModeCharDevice != 0 { // a terminal, or /dev/null
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), hookPatience)
	defer cancel()
	if e, failed := p.readEvent(ctx, "copilot"); failed != nil || e.Name == "" && e.Session == "" {
		return err
	}
	return &exitError{}
}

// maxEvent is the maximum number of bytes that are read for one event. An event that follows a tool call contains the
// tool's output.
const maxEvent = 64 << 20

// hookPatience is the time limit of a hook. It is shorter than the five seconds that `mailtree setup` allows.
// Otherwise, a client could stop the hook after the server has reported news but before the hook has printed it, and
// the news would be lost.
const hookPatience = 4 * time.Second

// hook reads an event and responds to it. It logs failures only at the debug level, because failures must not disturb
// the client.
func (p *program) hook(ctx context.Context, client string, plugin bool) (err error) {
	defer func() {
		if fault := recover(); fault != nil { // a panic would exit with status 2, which stops a turn
			err = fmt.Errorf("hook: %v", fault)
		}
	}()
	if !event.Known(client) {
		return fmt.Errorf("hook: unknown client %q", client)
	}
	ctx, cancel := context.WithTimeout(ctx, hookPatience)
	defer cancel()
	if seat.ClientProcess().Serves() {
		p.env = slices.DeleteFunc(slices.Clone(p.env), ofSession)
	}
	e, a, err := p.onEvent(ctx, client, plugin)
	if err != nil {
		p.cfg.logger(p.std).Debug("hook", "event", e.Name, "error", err)
	}
	return p.answerHook(e, a)
}

// ofSession reports whether an environment variable belongs to one session.
func ofSession(variable string) bool {
	name, _, _ := strings.Cut(variable, "=")
	return slices.Contains([]string{"AGENT_NAME", "TMUX", "TMUX_PANE"}, name)
}

// onEvent reads an event, and returns the event and the response to it.
func (p *program) onEvent(ctx context.Context, client string, plugin bool) (e event.Event, a event.Answer, err error) {
	if e, err = p.readEvent(ctx, client); err != nil {
		return event.Event{Client: client}, a, err
	}
	switch {
	case plugin && p.isSetUp(e):
		return e, a, nil
	case e.Kind == event.Edit: // this also applies to edits by subagents
		return e, p.checkEdit(e), nil
	case e.Kind == event.Tool && sign.Ended(p.signed(e)): // the turn has ended, so the model would not see a response
		return e, a, nil
	case e.Kind == "" || e.Subagent && (e.Kind != event.Tool || len(e.Paths) == 0) || !storedir.IsStore(p.cfg.Store):
		return e, a, nil
	}
	told, err := p.tellServer(ctx, e)
	a.Tell, a.Agent = told.Tell, told.Agent
	switch {
	case err != nil || a.Agent == "":
	case e.Kind == event.Start:
		err = p.exportAgent(a.Agent)
	case e.Kind == event.Prompt && !event.Waits(client):
		err = p.followTurn(e, told.Turn)
	}
	return e, a, err
}

// isSetUp reports whether the client's own files contain hooks from `mailtree setup`. The client runs these hooks in
// addition to the plugin's hooks, so the plugin's hooks must do nothing.
func (p *program) isSetUp(e event.Event) bool {
	home, err := os.UserHomeDir()
	if err != nil {
		return false
	}
	s := clients.Setup{
		Site:   clients.Site{Home: home, Dir: e.Root, Env: p.variable, Mac: runtime.GOOS == "darwin"},
		Client: clientNamed(e.Client),
	}
	if top, err := codeBase(e.Root); err == nil && s.Client.ReadsTop() {
		s.Dir = top
	}
	for _, s.Scope = range []clients.Scope{clients.User, clients.Project} {
		if h, err := s.Hooks(); err == nil && h.Some {
			return true
		}
	}
	return false
}

// readEvent reads the event that the client writes to standard input. The client may leave standard input open.
// readEvent stops when ctx ends, so that a client that writes nothing cannot block the hook.
func (p *program) readEvent(ctx context.Context, client string) (event.Event, error) {
	type read struct {
		e   event.Event
		err error
	}
	done := make(chan read, 1)
	go func() {
		e, err := p.parseEvent(client)
		done <- read{e, err}
	}()
	select {
	case r := <-done:
		return r.e, r.err
	case <-ctx.Done(): // the process is about to exit, which also ends the goroutine that reads
		return event.Event{}, fmt.Errorf("hook: no event arrived on standard input: %w", context.Cause(ctx))
	}
}

func (p *program) parseEvent(client string) (event.Event, error) {
	in := bufio.NewReader(io.LimitReader(p.std.in, maxEvent))
	if mark, _ := in.Peek(len(byteOrderMark)); string(mark) == byteOrderMark {
		_, _ = in.Discard(len(byteOrderMark))
	}
	var stdin json.RawMessage
	if err := json.NewDecoder(in).Decode(&stdin); err != nil {
		return event.Event{}, err
	}
	return event.Parse(client, stdin, p.variable)
}

// byteOrderMark is a prefix that some programs add to text.
const byteOrderMark = "\xef\xbb\xbf"

// tellServer reports an event to the server. If no server is running and the event is the start of a session in a
// project, tellServer starts a server in the background. Otherwise, it drops the event.
func (p *program) tellServer(ctx context.Context, e event.Event) (told mcpserver.HookAnswer, err error) {
	ask := mcpserver.HookEvent{
		Kind: string(e.Kind),
		SessionEvent: maildir.SessionEvent{
			SessionKey: seat.Key{Client: e.Client, ID: e.Session},
			Dir:        e.Root,
			Model:      e.Model,
			Agent:      p.variable("AGENT_NAME"),
			Pane:       maildir.Pane{Tmux: p.variable("TMUX"), Pane: p.variable("TMUX_PANE")},
			Process:    seat.ClientProcess(),
		},
		Deaf:  e.Deaf,
		Paths: e.Edited(),
		Asks:  e.Asks,
	}
	if e.Subagent { // a subagent is not notified
		ask.Kind = mcpserver.HookSubagent
	}
	err = askServer(ctx, p.cfg, "hook", ask, &told)
	if !errors.Is(err, errNoServer) {
		return told, err
	}
	if e.Kind != event.Start {
		return told, nil
	}
	t, _, err := storedir.OpenProject(p.cfg.Store, e.Root, p.cfg.Scope)
	if err != nil {
		return told, err
	}
	t.Close() // only the project's existence matters, not its content
	c, err := p.reach(ctx, p.dial, tool.Caller{})
	if err != nil {
		return told, err
	}
	err = c.Ask(ctx, "hook", ask, &told)
	return told, err
}

// exportAgent adds the agent's name to the environment of the client's shells, for use in commits. See
// docs/reference/guard.md.
func (p *program) exportAgent(agent string) error {
	file := p.variable("CLAUDE_ENV_FILE")
	if file == "" || agent == "" {
		return nil
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString("export AGENT_NAME=" + agent + "\n") // agents' names need no quoting
	return errors.Join(err, f.Close())
}

func (p *program) answerHook(e event.Event, a event.Answer) error {
	stdout, stderr, exit := a.Format(e)
	_, err := p.std.out.Write(stdout)
	if exit == 0 || err != nil {
		return err
	}
	_, _ = p.std.err.Write(stderr)
	return &exitError{code: exit}
}

// variable returns the value of an environment variable, or "" if it is not set.
func (p *program) variable(name string) string {
	v, _ := lookup(p.env, name)
	return v
}
