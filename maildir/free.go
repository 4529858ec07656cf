package maildir

import (
	"cmp"
	"context"

	"mailtree/maildir/claim"
	"mailtree/maildir/format"
	"mailtree/maildir/history"
	"mailtree/maildir/writer"
)

// Freeing says whose claim an agent releases.
type Freeing struct {
	Agent           string // who releases it
	Holder, Pattern string // of the claim
	Reason          string // told to its holder; "": none
	format.Origin          // of that message
}

// Free releases the live claim of another agent, and tells its holder why, in one operation of the
// releaser's, which Undo takes back together. It is for the store's owner: who asks is not held
// against whose claim it is. It returns the message; nil where the holder no longer had the claim.
// Errors: ErrNotFound for an agent; those of Send for a text.
func (p *Project) Free(ctx context.Context, f Freeing) (*format.Message, error) {
	var notice *format.Message
	d := &Draft{
		From:    f.Agent,
		To:      []string{f.Holder},
		Subject: format.Cut("Your claim of "+f.Pattern+" is released", format.MaxSubject),
		Body:    cmp.Or(f.Reason, "No reason was given."),
		Origin:  f.Origin,
	}
	if err := d.check(); err != nil {
		return nil, err
	}
	tx := &writer.Tx{Op: writer.Op{Verb: history.VerbRelease, Agent: f.Agent}, Facts: []string{claimsFact}, Sure: true}
	tx.Plan = func(g *writer.Group) error {
		notice = nil
		if err := p.needParties(g.Ctx, d); err != nil {
			return err
		}
		held, err := p.selectClaims(g.Ctx, func(c *claim.Row, live bool) bool {
			return live && c.Agent == f.Holder && c.Pattern == f.Pattern
		})
		if err != nil || len(held) == 0 {
			return err
		}
		if err := p.planRelease(g, tx, held, format.FormatRelease(g.Now, f.Agent)); err != nil {
			return err
		}
		m := d.message(p.name(), nil)
		if err := p.planMessage(g, tx, &m, nil); err != nil {
			return err
		}
		notice, tx.Summary = &m, f.Agent+" "+listed(held)+" of "+f.Holder
		return nil
	}
	defer p.noteSeen(ctx, f.Agent)
	if err := p.Writer.Do(ctx, tx); err != nil {
		return nil, err
	}
	return notice, nil
}

// ReleasedBy is who released another's claim, by the path of its mark; "" where its holder did, or
// nobody knows.
func (p *Project) ReleasedBy(mark string) string {
	data, _, err := p.Tree.Read(mark, format.MaxSmall)
	if err != nil {
		return ""
	}
	return format.ReleasedBy(data)
}
