package main

import (
	"context"
	"errors"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"mailtree/clients/event"
)

func hookCommand(p *program) *cobra.Command {
	c := &cobra.Command{
		Use:   "hook CLIENT",
		Short: "Tell the agent in a client of its mail: what the client runs at its events",
		Long: "Tell the agent in a client of its mail. `mailtree setup` has the client run this at its events, with what\n" +
			"has happened on standard input. It starts no server, and a turn never fails because of it: whatever goes\n" +
			"wrong, the exit status is 0.",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return harmless(errors.New("hook: name one client"))
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error { return harmless(p.hook(c.Context(), args[0])) },
	}
	c.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return harmless(err) })
	return c
}

// harmless is an error that is printed, and fails nothing: clients take some exit statuses for the
// wish that the turn or the edit be stopped.
func harmless(err error) error {
	var meant *exitError
	if err == nil || errors.As(err, &meant) {
		return err
	}
	return &exitError{0, err}
}

// maxEvent is how much of an event is read. Those after a tool hold what it printed.
const maxEvent = 64 << 20

// hook reads an event and answers it.
func (p *program) hook(_ context.Context, client string) error {
	if !event.Known(client) {
		return errors.New("hook: there is no client named " + strings.ToValidUTF8(client, "?"))
	}
	stdin, err := io.ReadAll(io.LimitReader(p.std.in, maxEvent))
	if err != nil {
		return err
	}
	e, err := event.Parse(client, stdin, p.variable)
	if err != nil || e.Kind == "" || e.Subagent {
		return err
	}
	return p.answerHook(e, event.Answer{})
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

// variable returns a variable of the environment, "" for none.
func (p *program) variable(name string) string {
	v, _ := lookup(p.env, name)
	return v
}
