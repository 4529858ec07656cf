package mail

import (
	"context"

	"mailtree/mcp/tool"
)

type ackShape struct {
	ID string `json:"message_id"`
	marksShape
	Note string `json:"note,omitempty"`
}

func (t *Toolset) acknowledgeMessage() tool.Tool {
	return tool.Tool{
		Name:  "acknowledge_message",
		Hints: tool.Marks(),
		About: "Acknowledge a message in your inbox, which marks it read too.",
		In:    []tool.Prop{projectKey(), agentName(), tool.Need("message_id", tool.Str("", "msg_20251023_3a51c0f7b3dc3a7e"))},
		Out:   ackShape{},
		Run: func(ctx context.Context, a *tool.Args) (any, error) {
			agent, id := a.Text("agent_name"), a.Text("message_id")
			p, note, err := t.project(ctx, a)
			if err != nil {
				return nil, err
			}
			d, err := p.Acknowledge(ctx, agent, id)
			if err != nil {
				return nil, err
			}
			return ackShape{d.ID, shapeMarks(d.Marks), note}, nil
		},
	}
}
