package mail

import (
	"context"

	"mailtree/maildir/index"
	"mailtree/mcp/tool"
)

// Acked is the result of acknowledge_message.
type Acked struct {
	ID string `json:"message_id"`
	index.Marks
	Note string `json:"note,omitempty"`
}

type ackRequest struct {
	Project string `json:"project_key" jsonschema:"path of the top of the working tree" example:"/abs/path/backend"`
	Agent   string `json:"agent_name" jsonschema:"your agent name" example:"BlueLake"`
	ID      string `json:"message_id" jsonschema:"id of a message in your inbox" example:"msg_20251023_3a51c0f7b3dc3a7e"`
}

func (t *Toolset) acknowledgeMessage() tool.Tool {
	return tool.Of(tool.Tool{
		Name:  "acknowledge_message",
		Hints: tool.Marks(),
		About: "Use once you have taken note of a message with ack_required: acknowledges it and marks it as read.",
		Out:   Acked{},
	}, func(ctx context.Context, r *ackRequest) (any, error) {
		p, note, err := t.projectOf(ctx, r.Project, &r.Agent)
		if err != nil {
			return nil, err
		}
		id, err := p.FullID(ctx, r.ID)
		if err != nil {
			return nil, err
		}
		d, err := tool.Box(ctx, p, r.Agent).Acknowledge(ctx, id)
		if err != nil {
			return nil, err
		}
		return Acked{d.ID, d.Marks, note}, nil
	})
}
