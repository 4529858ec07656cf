package aimx

import (
	"context"
	"errors"
	"math"

	"mailtree/maildir"
	"mailtree/maildir/hook"
	"mailtree/mcp/tool"
)

type hookShape struct {
	Name            string   `json:"name"`
	Mailbox         string   `json:"mailbox"`
	Event           string   `json:"event" jsonschema:"on_receive or after_send"`
	Cmd             []string `json:"cmd"`
	Timeout         int      `json:"timeout_secs"`
	FireOnUntrusted bool     `json:"fire_on_untrusted"`
}

type hooksShape struct {
	Hooks []hookShape `json:"hooks" jsonschema:"by mailbox and name"`
	Next  int         `json:"next_offset,omitempty" jsonschema:"pass as offset for more; absent at the end"`
}

func (t *toolset) hookList() tool.Tool {
	return tool.Tool{
		Name:  "hook_list",
		Hints: tool.Reads(),
		About: "List the hooks on your mailboxes, or on one of them.",
		In:    []tool.Prop{tool.May("mailbox", tool.Str("only of this mailbox", "task-42")), offsetArg("next_offset of the answer before")},
		Out:   hooksShape{},
		Run: func(ctx context.Context, a *tool.Args) (any, error) {
			offset := a.Count("offset", 0, math.MaxInt32)
			if a.Err() != nil {
				return nil, a.Err()
			}
			if a.Has("mailbox") {
				if _, err := t.box(ctx, a, "mailbox"); err != nil {
					return nil, err
				}
			}
			c := tool.CallerOf(ctx)
			p, err := t.store.ProjectFor(ctx, c.ProjectKey(), c.User())
			var all []hook.Hook
			if err == nil {
				all, err = p.Hooks(ctx, a.Text("mailbox"), c.User())
			}
			if err != nil && !errors.Is(err, maildir.ErrNotFound) {
				return nil, err
			}
			page, next, err := tool.Page(ctx, t.budget, hooksShape{Next: math.MaxInt}, shapeHooks(all), offset)
			return hooks(page, next), err
		},
	}
}

func shapeHooks(all []hook.Hook) []hookShape {
	rows := make([]hookShape, len(all))
	for i, h := range all {
		rows[i] = hookShape{
			Name:            h.Name,
			Mailbox:         h.Mailbox,
			Event:           h.Event,
			Cmd:             tool.Strs(h.Cmd),
			Timeout:         h.Timeout,
			FireOnUntrusted: h.FireOnUntrusted,
		}
	}
	return rows
}

func hooks(rows []hookShape, next int) tool.Result {
	return tool.Result{Text: string(tool.Encode(rows)), Value: hooksShape{rows, next}, Note: goesOn(next)}
}
