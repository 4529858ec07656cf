package aimx

import (
	"context"
	"errors"

	"mailtree/maildir"
	"mailtree/maildir/hook"
	"mailtree/maildir/refusal"
	"mailtree/mcp/tool"
)

type hookNameShape struct {
	Name string `json:"effective_name"`
}

type hookRequest struct {
	Mailbox         string   `json:"mailbox" jsonschema:"name of your mailbox" example:"task-42"`
	Event           string   `json:"event" jsonschema:"when the command runs" enum:"on_receive,after_send"`
	Cmd             []string `json:"cmd" jsonschema:"absolute path of the program, then its arguments; no shell" example:"/usr/local/bin/wake"`
	Name            string   `json:"name,omitempty" jsonschema:"name of the hook; default: derived from the other arguments" example:"wake"`
	Timeout         int      `json:"timeout_secs,omitempty" jsonschema:"time limit, after which the command is stopped" min:"1" max:"600" default:"60"`
	FireOnUntrusted bool     `json:"fire_on_untrusted,omitempty" jsonschema:"on_receive only: also run for untrusted email"`
}

func (t *toolset) hookCreate() tool.Tool {
	return tool.Of(tool.Tool{
		Name:  "hook_create",
		Hints: tool.Marks(),
		About: "Use to run a command when your mailbox receives or sends an email. The command gets the email on standard input.",
		Out:   hookNameShape{},
	}, func(ctx context.Context, r *hookRequest) (any, error) {
		h := hook.Hook{
			Event:           r.Event,
			Cmd:             r.Cmd,
			Name:            r.Name,
			Timeout:         r.Timeout,
			FireOnUntrusted: r.FireOnUntrusted,
		}
		if reserved(t.local(r.Mailbox)) {
			return nil, tool.Invalid("catchall does not support hooks")
		}
		b, err := t.hookBox(ctx, r.Mailbox)
		if err != nil {
			return nil, err
		}
		made, err := b.CreateHook(ctx, h)
		if err != nil {
			return nil, err
		}
		return hookNameShape{made.Name}, nil
	})
}

// hookBox is like box, except that it tells every caller, not only root, if a mailbox does not exist. The contract
// requires this for hooks.
func (t *toolset) hookBox(ctx context.Context, name string) (*maildir.UserBox, error) {
	b, err := t.box(ctx, name)
	if !errors.Is(err, maildir.ErrDenied) {
		return b, err
	}
	v, perr := t.project(ctx)
	exists := false
	if perr == nil {
		exists, perr = v.Exists(ctx, t.local(name))
	}
	if errors.Is(perr, maildir.ErrNotFound) || perr == nil && !exists {
		return nil, &maildir.Error{What: refusal.UnknownMailbox, Field: refusal.Mailbox, Name: name}
	}
	return nil, err
}
