package aimx

import (
	"context"
	"errors"

	"mailtree/maildir"
	"mailtree/maildir/hook"
	"mailtree/mcp/tool"
)

type hookShape struct {
	Name            string   `json:"name"`
	Mailbox         string   `json:"mailbox"`
	Event           string   `json:"event"` // on_receive or after_send
	Cmd             []string `json:"cmd"`
	Timeout         int      `json:"timeout_secs"`
	FireOnUntrusted bool     `json:"fire_on_untrusted"`
}

type hooksShape struct {
	Hooks []hookShape `json:"hooks"`                 // sorted by mailbox and name
	Next  int         `json:"next_offset,omitempty"` // pass this as offset to get more; absent at the end
}

type hooksRequest struct {
	Mailbox string `json:"mailbox,omitempty" jsonschema:"only hooks of this mailbox" example:"task-42"`
	pageRequest
}

func (t *toolset) hookList() tool.Tool {
	return tool.Of(tool.Tool{
		Name:  "hook_list",
		Hints: tool.Reads(),
		About: "Use to see which commands run for your mailboxes. Lists all hooks, or those of one mailbox.",
		Out:   hooksShape{},
	}, func(ctx context.Context, r *hooksRequest) (any, error) {
		if r.Mailbox != "" {
			if _, err := t.box(ctx, r.Mailbox); err != nil {
				return nil, err
			}
		}
		v, err := t.project(ctx)
		var all []hook.Hook
		if err == nil {
			all, err = v.Hooks(ctx, t.local(r.Mailbox))
		}
		if err != nil && !errors.Is(err, maildir.ErrNotFound) {
			return nil, err
		}
		page, next, err := tool.Page(ctx, t.budget, shapeHooks(all), r.Offset)
		return hooks(page, next), err
	})
}

func shapeHooks(all []hook.Hook) []hookShape {
	rows := make([]hookShape, len(all))
	for i, h := range all {
		rows[i] = hookShape{
			Name:            h.Name,
			Mailbox:         h.Mailbox,
			Event:           h.Event,
			Cmd:             tool.Listed(h.Cmd),
			Timeout:         h.Timeout,
			FireOnUntrusted: h.FireOnUntrusted,
		}
	}
	return rows
}

func hooks(rows []hookShape, next int) tool.Result {
	return tool.Result{Text: string(tool.Encode(rows)), Value: hooksShape{rows, next}, Note: goesOn(next)}
}
