package agentmail

import (
	"context"

	"mailtree/maildir"
	"mailtree/mcp/tool"
)

type statusShape struct {
	Status string `json:"status"` // always "ok"
}

type statusRequest struct {
	Status string `json:"status" jsonschema:"your new status" enum:"ready,work,offline" as:"given"`
}

func (t *toolset) status() tool.Tool {
	return tool.Of(tool.Tool{
		Name:  "status",
		Hints: tool.Marks(),
		About: "Use when your activity changes: sets your status to ready (notify me of new mail), work (do not disturb) or offline.",
		Out:   statusShape{},
	}, func(ctx context.Context, r *statusRequest) (any, error) {
		if err := maildir.CheckPresence(r.Status); err != nil {
			return nil, err
		}
		w, p, err := t.meet(ctx)
		if err != nil {
			return nil, err
		}
		if err := p.Agents.SetPresence(ctx, w.name, r.Status); err != nil {
			return nil, err
		}
		return statusShape{"ok"}, nil
	})
}
