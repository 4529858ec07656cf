package postal

import (
	"context"
	"strings"

	"mailtree/maildir"
	"mailtree/maildir/format"
	"mailtree/mcp/tool"
)

type sentShape struct {
	ID string `json:"id"` // the msg_id or a generated id
}

type sendRequest struct {
	Name string `json:"name" jsonschema:"name of the recipient, which is created if it is new" example:"bob"`
	Text string `json:"msg" jsonschema:"text of the message" example:"ping"`
	ID   string `json:"msg_id,omitempty" jsonschema:"idempotency key: resending with the same key delivers once" example:"ping-1"`
}

func (t *Toolset) sendToAgent() tool.Tool {
	return tool.Of(tool.Tool{
		Name:  "send_to_agent",
		Hints: tool.Adds(),
		About: "Use to write to another agent. Puts a message into its mailbox. With msg_id, resending is safe.",
		Out:   sentShape{},
	}, func(ctx context.Context, r *sendRequest) (any, error) {
		d := maildir.Draft{
			To:      []string{r.Name},
			Body:    r.Text,
			Key:     r.ID,
			Bounded: true,
		}
		p, me, err := t.meet(ctx, d.To...)
		if err != nil {
			return nil, err
		}
		sent, err := tool.Box(ctx, p, me).Send(ctx, d)
		if err != nil {
			return nil, err
		}
		id := shownID(&sent.Message)
		var notes []string
		for _, n := range sent.Notes {
			notes = append(notes, words.Say(n))
		}
		return tool.Result{Text: id, Value: sentShape{id}, Note: strings.Join(notes, "\n")}, nil
	})
}

// maxKey is the maximum length in bytes of a msg_id in a call. A msg_id in a file may be longer.
const maxKey = 256

// shownID returns the id that postal shows for a message. This is the sender's msg_id (m.Key) if there is one with at
// most maxKey bytes, and otherwise the server's own id. For mail from another domain, it is always the server's own id,
// because the server itself has set m.Key. See docs/reference/tools.md, "Sending".
func shownID(m *format.Message) string {
	if m.Key != "" && len(m.Key) <= maxKey && m.Door != format.DoorGateway {
		return m.Key
	}
	return m.ID
}
