package agentmail

import (
	"context"

	"mailtree/maildir"
	"mailtree/maildir/refusal"
	"mailtree/mcp/tool"
)

// maxMessage is the maximum size of a message in bytes. See docs/reference/agentmail.md.
const maxMessage = 64 << 10

type sentShape struct {
	ID string `json:"message_id"`
}

// sendRequest is a message to send. The contract requires the tool to check the message before the recipient, so the
// schema does not mark the recipient as required.
type sendRequest struct {
	Recipient *string `json:"recipient" jsonschema:"name of the recipient" example:"BlueLake" as:"late"`
	Message   string  `json:"message" jsonschema:"text of the message, at most 65536 bytes" example:"the build is green" as:"late"`
}

func (t *toolset) send() tool.Tool {
	return tool.Of(tool.Tool{
		Name:  "send",
		Hints: tool.Adds(),
		About: "Use to write to one agent. list-recipients shows the names.",
		Out:   sentShape{},
	}, func(ctx context.Context, r *sendRequest) (any, error) {
		if err := checkSize(r.Message); err != nil {
			return nil, err
		}
		if r.Recipient == nil {
			return nil, tool.Missing[sendRequest]("recipient")
		}
		return t.deliver(ctx, *r.Recipient, r.Message)
	})
}

func checkSize(message string) error {
	switch {
	case message == "":
		return tool.Invalid("no message provided")
	case len(message) > maxMessage:
		return tool.Refused(refusal.ErrTooLarge, "message exceeds maximum size of 64KB")
	}
	return nil
}

// deliver sends text to a recipient. If the recipient is a tmux window without an agent, deliver first registers an
// agent for it. The recipient may also be the address of an agent in another project, although list-recipients does not
// list such agents.
func (t *toolset) deliver(ctx context.Context, to, text string) (any, error) {
	w, p, err := t.meet(ctx)
	if err != nil {
		return nil, err
	}
	if !t.cfg.Store.InAnotherProject(to) {
		if to, err = t.reach(ctx, p, w, to); err != nil {
			return nil, err
		}
		if err := p.Agents.EnsureAgent(ctx, to, registration()); err != nil {
			return nil, err
		}
	}
	sent, err := tool.Box(ctx, p, w.name).Send(ctx, maildir.Draft{To: []string{to}, Body: text})
	if err != nil {
		return nil, err
	}
	return sentShape{sent.ID}, nil
}
