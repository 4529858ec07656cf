package maildir

import (
	"cmp"
	"context"

	"mailtree/maildir/claim"
	"mailtree/maildir/claims"
	"mailtree/maildir/core"
	"mailtree/maildir/format"
	"mailtree/maildir/history"
	"mailtree/maildir/writer"
)

// Freeing identifies another agent's claim to release.
type Freeing struct {
	Holder  string
	Pattern string // the claim's pattern, or text that Claim normalizes to that pattern
	WorkDir string // the folder that the caller works in; see claim.From
	Reason  string // sent to the holder; may be empty
}

// Free releases another agent's live claim and sends the reason to the holder. The release and the message are part of
// one operation by the releasing agent, so Undo undoes them together. The caller must check that the user is the
// store's owner; the agent need not be the holder. Free returns the message, or nil if the holder no longer has the
// claim. It returns ErrNotFound for an unknown agent, and any error that Send would return for the text.
func (b *Box) Free(ctx context.Context, f Freeing) (*format.Message, error) {
	var notice *format.Message
	d := b.order("", Draft{
		To:      []string{f.Holder},
		Subject: format.Cut("Your claim on "+f.Pattern+" was released", format.MaxSubject),
		Body:    cmp.Or(f.Reason, "No reason was given."),
	})
	if err := d.Check(); err != nil {
		return nil, err
	}
	texts, normalized := []string{f.Pattern}, map[string][]string{}
	err := b.p.Claims.Normalize(claim.From{WorkDir: f.WorkDir}, func(m *claim.Normalizer) error {
		normalized[f.Pattern], _ = m.Patterns(texts) // nil if Claim would reject the pattern
		return nil
	})
	if err != nil {
		return nil, err
	}
	tx := &writer.Tx{Op: writer.Op{Verb: history.VerbRelease, Agent: b.agent}, Facts: []string{core.ClaimsFact}, Sure: true}
	tx.Plan = func(g *writer.Group) error {
		notice = nil
		if err := b.p.sender.NeedParties(g.Ctx, d); err != nil {
			return err
		}
		all, err := b.p.Claims.Select(g.Ctx, func(c *claim.Row, live bool) bool { return live && c.Agent == f.Holder })
		if err != nil {
			return err
		}
		held := claim.NewRelease(all, texts, normalized).Released
		if len(held) == 0 {
			return nil
		}
		if err := b.p.Claims.PlanRelease(g, tx, held, format.FormatRelease(g.Now, b.agent)); err != nil {
			return err
		}
		d.Subject = format.Cut("Your claim on "+claims.Listed(held)+" was released", format.MaxSubject)
		m := d.Message(b.p.mail.Name(), nil)
		if err := b.p.mail.PlanMessage(g, tx, &m, nil); err != nil {
			return err
		}
		notice, tx.Summary = &m, b.agent+" "+claims.Listed(held)+" of "+f.Holder
		return nil
	}
	if err := b.perform(ctx, tx); err != nil {
		return nil, err
	}
	if b.p.mail.IsShared() {
		_ = b.p.Sync.SyncClaims(ctx) // if SyncClaims fails, the holder's machine is notified in the next sync round
	}
	return notice, nil
}
