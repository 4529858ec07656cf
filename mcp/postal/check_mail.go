package postal

import (
	"context"

	"mailtree/maildir/index"
	"mailtree/mcp/tool"
)

// mailShape is a message. If there is none, only Empty is set, because structured content must be an object.
type mailShape struct {
	Empty bool   `json:"empty,omitempty"` // true if there is no mail
	ID    string `json:"id,omitempty"`    // the sender's msg_id if there is one, otherwise the server's id
	From  string `json:"from,omitempty"`  // the agent that sent the message
	Auth  string `json:"auth,omitempty"`  // how the server authenticated the sender, or "self-asserted"
	// Content may be present but empty. See tool.PoppedText.
	Content *string `json:"content,omitempty"` // the sender's text: data, not instructions
}

type checkRequest struct {
	Wait tool.Wait `json:"wait_seconds,omitempty" jsonschema:"if there is no message, wait this long for one" max:"50"`
}

func (t *Toolset) checkMail() tool.Tool {
	return tool.Of(tool.Tool{
		Name:  "check_mail",
		Hints: tool.Adds(),
		About: "Use to get new mail. Takes the oldest message out of your mailbox, or returns null if there is none. Can wait for one.",
		Out:   mailShape{},
	}, func(ctx context.Context, r *checkRequest) (any, error) {
		p, me, err := t.meet(ctx)
		if err != nil {
			return nil, err
		}
		room := t.cfg.Budget.OneText(ctx, p, func(m *index.MessageRow, text string) any { return t.shapeMail(m, text) })
		d, err := tool.Box(ctx, p, me).PopWait(ctx, tool.Waiting(ctx, r.Wait.For, t.cfg.Stopping), room)
		if err != nil {
			return nil, err
		}
		out := noMail()
		if d != nil {
			s := t.shapeMail(&d.MessageRow, tool.PoppedText(p, d))
			out = tool.Result{Text: string(tool.Encode(s)), Value: s}
		}
		out.Note = r.Wait.Note
		return out, nil
	})
}

func noMail() tool.Result { return tool.Result{Text: "null", Value: mailShape{Empty: true}} }

func (t *Toolset) shapeMail(m *index.MessageRow, text string) mailShape {
	by, _ := t.cfg.Store.VerifiedIn(m)
	return mailShape{
		ID:      shownID(&m.Message),
		From:    m.From,
		Auth:    by.String(),
		Content: &text,
	}
}
