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
	Name string `json:"effective_name"` // name of the hook
}

type hookRequest struct {
	Mailbox         string   `json:"mailbox" jsonschema:"name of a mailbox of yours" example:"task-42"`
	Event           string   `json:"event" jsonschema:"what it runs for" enum:"on_receive,after_send"`
	Cmd             []string `json:"cmd" jsonschema:"program with its arguments, no shell; the program is an absolute path" example:"/usr/local/bin/wake"`
	Name            string   `json:"name,omitempty" jsonschema:"name of the hook; without one it is derived from the rest" example:"wake"`
	Timeout         int      `json:"timeout_secs,omitempty" jsonschema:"the command is ended after it" min:"1" max:"600" default:"60"`
	FireOnUntrusted bool     `json:"fire_on_untrusted,omitempty" jsonschema:"on_receive only: run for mail whose sender is not proven too"`
}

func (t *toolset) hookCreate() tool.Tool {
	return tool.Of(tool.Tool{
		Name:  "hook_create",
		Hints: tool.Marks(),
		About: "Have a command run when mail comes into a mailbox of yours or was sent from it; the email is piped to it.",
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

// hookBox works like box, but tells every caller whether a mailbox does not exist, because the contract requires
// this for hooks.
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
