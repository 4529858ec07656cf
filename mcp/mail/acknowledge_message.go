package mail

import "context"

type ackShape struct {
	ID     string `json:"message_id"`
	Acked  bool   `json:"acknowledged"`
	AckAt  string `json:"ack_ts,omitempty"`
	Read   bool   `json:"read"`
	ReadAt string `json:"read_ts,omitempty"`
}

func acknowledgeMessage() tool {
	return tool{
		name: "acknowledge_message", title: "Acknowledge message", hints: marks(),
		about: "Mark a message in your inbox as acknowledged, and with that as read; the first time stays.",
		in:    []prop{projectKey(), agentName(), need("message_id", str("id of the message", "msg_20251023_3a51c0f7b3dc3a7e"))},
		out: []prop{
			need("message_id", text("")), need("acknowledged", truth("")), may("ack_ts", text("")),
			need("read", truth("")), may("read_ts", text("")),
		},
		run: func(ctx context.Context, t *Toolset, a *args) (any, error) {
			agent, id := a.text("agent_name"), a.text("message_id")
			p, err := t.project(ctx, a)
			if err != nil {
				return nil, err
			}
			d, err := p.Acknowledge(ctx, agent, id)
			if err != nil {
				return nil, err
			}
			return ackShape{d.ID, d.Acked, stamp(d.AckedAt), d.Read, stamp(d.ReadAt)}, nil
		},
	}
}
