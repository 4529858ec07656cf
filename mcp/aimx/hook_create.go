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
	Name string `json:"effective_name" jsonschema:"name of the hook"`
}

func (t *toolset) hookCreate() tool.Tool {
	return tool.Tool{
		Name:  "hook_create",
		Hints: tool.Marks(),
		About: "Have a command run when mail comes into a mailbox of yours or was sent from it; the email is piped to it.",
		In: []tool.Prop{
			mailboxArg(),
			tool.Need("event", tool.OneOf("what it runs for", "", hook.OnReceive, hook.AfterSend)),
			tool.Need("cmd", tool.List("program with its arguments, no shell; the program is an absolute path", "/usr/local/bin/wake")),
			tool.May("name", tool.Str("name of the hook; without one it is derived from the rest", "wake")),
			tool.May("timeout_secs", tool.Num("the command is ended after it", 1, 600, hook.DefaultTimeout)),
			tool.May("fire_on_untrusted", tool.Flag("on_receive only: run for mail whose sender is not proven too")),
		},
		Out: hookNameShape{},
		Run: func(ctx context.Context, a *tool.Args) (any, error) {
			h := hook.Hook{
				Event:           a.Choice("event"),
				Cmd:             a.Names("cmd"),
				Name:            a.Text("name"),
				Timeout:         a.Within("timeout_secs"),
				FireOnUntrusted: a.Flag("fire_on_untrusted"),
			}
			if reserved(a.Text("mailbox")) {
				a.Fail(tool.Invalid("catchall does not support hooks"))
			}
			b, err := t.hookBox(ctx, a)
			if err != nil {
				return nil, err
			}
			made, err := b.CreateHook(ctx, h)
			if err != nil {
				return nil, err
			}
			return hookNameShape{made.Name}, nil
		},
	}
}

// hookBox is box, but tells every caller when a mailbox does not exist, as the contract demands for
// hooks.
func (t *toolset) hookBox(ctx context.Context, a *tool.Args) (*maildir.Box, error) {
	b, err := t.box(ctx, a, "mailbox")
	if !errors.Is(err, maildir.ErrDenied) {
		return b, err
	}
	c := tool.CallerOf(ctx)
	p, perr := t.store.ProjectFor(ctx, c.ProjectKey(), c.User())
	if perr == nil {
		_, perr = p.Mailbox(ctx, a.Text("mailbox"), maildir.Caller{Root: true})
	}
	if errors.Is(perr, maildir.ErrNotFound) {
		return nil, &maildir.Error{What: refusal.UnknownMailbox, Field: refusal.Mailbox, Name: a.Text("mailbox")}
	}
	return nil, err
}
