package maildir

import (
	"context"
	"path/filepath"

	"mailtree/maildir/format"
	"mailtree/maildir/sending"
	"mailtree/maildir/tree"
	"mailtree/maildir/writer"
)

// order returns the order to send the agent's draft as an operation with the given verb.
func (b *Box) order(verb string, d Draft) *sending.Order {
	return &sending.Order{Draft: d, Verb: verb, From: b.agent, Origin: b.origin}
}

// Send sends the agent's draft. See sending.Sender.Send.
func (b *Box) Send(ctx context.Context, d Draft) (*Sent, error) {
	return b.p.sender.Send(ctx, b.order("send", d))
}

// Reply sends a reply to the message with the given id, in the same thread. If the draft lacks recipients or a subject,
// Reply derives them from that message. A reply that requests an acknowledgment also inherits high or urgent importance
// from that message. Reply returns any error from Send, and ErrNotFound if the message does not exist. See
// docs/reference/tools.md, "Sending".
func (b *Box) Reply(ctx context.Context, id string, d Draft) (*Sent, error) {
	o := b.order("reply", d)
	if err := b.p.sender.MakeReply(ctx, id, o); err != nil {
		return nil, err
	}
	return b.p.sender.Send(ctx, o)
}

// Addressees returns the possible recipients of the agent's reply to a message. See sending.Sender.Addressees.
func (b *Box) Addressees(m *format.Message) sending.Addressees {
	return b.p.sender.Addressees(m, b.agent)
}

// Forward sends the message with the given id to the draft's recipients, with the draft's text above it. See
// sending.Sender.MakeForward. It returns any error from MakeForward and Send.
func (b *Box) Forward(ctx context.Context, id string, d Draft) (*Sent, error) {
	o := b.order("send", d)
	if err := b.p.sender.MakeForward(ctx, id, o); err != nil {
		return nil, err
	}
	return b.p.sender.Send(ctx, o)
}

// Prepare returns the draft with the recipients and the subject that Send would use or, if id is not "", that Reply
// would use. Nothing is sent. Prepare returns ErrNotFound for an unknown message, and any error that Send returns for
// the sender or the recipients.
func (b *Box) Prepare(ctx context.Context, id string, d Draft) (*Draft, error) {
	o := b.order("send", d)
	if id != "" {
		if err := b.p.sender.MakeReply(ctx, id, o); err != nil {
			return nil, err
		}
	}
	if _, err := b.p.sender.Resolve(ctx, o); err != nil {
		return nil, err
	}
	return &o.Draft, b.p.sender.NeedParties(ctx, o)
}

// NewDraft creates a file in the agent's drafts folder, for a message to the given agents. It returns the paths on disk
// of the file and of the outbox folder. The draft has no text yet; moving the file into the outbox sends it. NewDraft
// returns ErrNotFound for an unknown agent, sender or recipient. See docs/reference/tree.md, "Sending by saving".
func (b *Box) NewDraft(ctx context.Context, to []string) (file, outbox string, err error) {
	o := b.order("draft", Draft{To: to})
	if _, err := b.p.sender.Resolve(ctx, o); err != nil {
		return "", "", err
	}
	if err := b.p.sender.NeedParties(ctx, o); err != nil {
		return "", "", err
	}
	tx := &writer.Tx{Op: writer.Op{Verb: "draft", Agent: b.agent}, Facts: []string{"drafts " + b.agent}}
	tx.Plan = func(g *writer.Group) error {
		path := ""
		for n := 1; ; n++ {
			path = format.DraftPath(b.agent, g.Now, n)
			if _, err := b.p.mail.Tree.Stat(path); tree.FaultOf(err) == tree.FaultGone {
				break
			} else if err != nil {
				return err
			}
		}
		tx.Summary = b.agent + " " + path
		tx.Create(path, format.FormatDraft(o.To))
		file = filepath.Join(b.p.mail.Tree.Dir(), filepath.FromSlash(path))
		return nil
	}
	if err := b.perform(ctx, tx); err != nil {
		return "", "", err
	}
	outbox = format.AgentsDir + "/" + b.agent + "/" + format.OutboxDir
	c := b.p.mail.Tree.Changer(b.p.mail.Store.Limits.Folders())
	defer c.Close()
	err = c.MakeDir(outbox) // if the folder were missing, `mv` would rename the draft to a file called outbox
	return file, filepath.Join(b.p.mail.Tree.Dir(), filepath.FromSlash(outbox)), err
}
