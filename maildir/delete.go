package maildir

import (
	"context"

	"mailtree/maildir/core"
	"mailtree/maildir/history"
	"mailtree/maildir/index"
	"mailtree/maildir/outgoing"
	"mailtree/maildir/refusal"
	"mailtree/maildir/writer"
)

// Deleted is a deleted message. Its files stay in the history.
type Deleted struct {
	ID      string   `json:"message_id"`
	From    string   `json:"from"`
	Subject string   `json:"subject"`
	Readers []string `json:"read_by"`            // agents that had read the message, except its sender
	Files   []string `json:"files"`              // paths of the removed files
	Outside []string `json:"left_for,omitempty"` // recipients at other domains, who keep their copies; see leftFor
	Queued  []string `json:"queued,omitempty"`   // other projects from which the message still has to be removed

	row *index.MessageRow // the message before the deletion, with all receipts; its BCC field lists the bcc recipients
}

// Delete removes a message for everyone. In one operation by the agent, it removes the canonical file, the copies and
// their marks. If the message was sent from this project, the copies in other projects are removed too. Attachments are
// kept, because other messages may use them. The caller must check that the user is the store's owner; the agent need
// not be the message's author. Delete returns ErrNotFound if there is no such message.
func (b *Box) Delete(ctx context.Context, id string) (*Deleted, error) {
	id = b.p.mail.Store.Domains.IDNamed(id)
	var gone *Deleted
	tx := &writer.Tx{Op: writer.Op{Verb: history.VerbDelete, Agent: b.agent, ID: id}, Alone: true}
	tx.Plan = func(g *writer.Group) (err error) {
		if err := b.p.mail.NeedAgent(g.Ctx, refusal.Agent, b.agent); err != nil {
			return err
		}
		if gone, err = b.p.planDeletion(g, tx, id); err == nil {
			tx.Summary = core.SummaryOf(&gone.row.Message)
		}
		return err
	}
	queued, err := b.p.changeEverywhere(ctx, id, nil, func() error { return b.perform(ctx, tx) })
	if err != nil {
		return nil, err
	}
	gone.Queued = queued
	return gone, nil
}

// planDeletion plans the removal of every file of a message. The operation must be the only one in its group, so that
// no other operation marks a copy before the copy is removed. planDeletion returns ErrNotFound if there is no such
// message, and any error from Group.Remove.
func (p *Project) planDeletion(g *writer.Group, tx *writer.Tx, id string) (*Deleted, error) {
	m, err := p.mail.HeadNamed(g.Ctx, refusal.Message, id)
	if err != nil {
		return nil, err
	}
	const forSender = true
	if err := p.mail.AddReceipts(g.Ctx, m, forSender); err != nil {
		return nil, err
	}
	gone := &Deleted{ID: m.ID, From: m.From, Subject: m.Subject, Readers: m.Readers(), Outside: leftFor(m), row: m}
	if gone.Files, err = p.mail.Store.Index.Files(g.Ctx, p.mail.Slug, id); err != nil {
		return nil, err
	}
	if err := g.Remove(tx, gone.Files...); err != nil {
		return nil, err
	}
	if len(tx.Writes) == 0 {
		return nil, g.Behind(m.Path)
	}
	return gone, nil
}

// leftInProjects returns the recipients in other projects that have a copy of a message, according to its receipts.
func (p *Project) leftInProjects(m *index.MessageRow) (addresses []string) {
	for _, r := range m.Receipts {
		if r.Delivered && p.mail.Store.PartyOf(r.Agent).Project != "" {
			addresses = append(addresses, r.Agent)
		}
	}
	return addresses
}

// leftFor returns the recipients at other domains that have received a message, or may have, according to its receipts.
// No operation on this server can remove their copies.
func leftFor(m *index.MessageRow) (addresses []string) {
	for _, r := range m.Receipts {
		switch outgoing.State(r.Status) {
		case outgoing.Sending, outgoing.Sent, outgoing.Unknown:
			addresses = append(addresses, r.Agent)
		}
	}
	return addresses
}
