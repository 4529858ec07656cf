package maildir

import (
	"cmp"
	"context"

	"mailtree/maildir/refusal"
)

// needParties refuses an unknown sender, names every unknown recipient, and refuses recipients at other
// domains to which no mail may go.
func (p *Project) needParties(ctx context.Context, d *Draft) error {
	if err := p.mail.NeedAgent(ctx, refusal.From, d.from); err != nil {
		return err
	}
	var unknown, outside strangers
	for _, list := range []struct {
		of    refusal.Field
		names []string
	}{{refusal.To, d.To}, {refusal.CC, d.CC}, {refusal.BCC, d.BCC}} {
		for _, n := range list.names {
			ok, err := p.mail.HasAgent(ctx, n)
			switch {
			case err != nil:
				return err
			case ok:
			case d.saved != nil && p.mail.Store.IsElsewhere(n):
				return &Error{What: fromFileOutside, Field: list.of, Name: n}
			case n == UnknownSender:
				return &Error{What: toUnknownSender, Field: list.of, Name: n}
			case !p.mail.Store.IsElsewhere(n):
				unknown.exclude(n, list.of)
			case !p.mail.Store.Outside.Allows(n):
				outside.exclude(n, list.of)
			}
		}
	}
	guest := d.by != nil && p.mail.Store.Guest(*d.by)
	switch {
	case len(unknown.names) == 0 && len(outside.names) == 0:
		return nil
	case len(unknown.names) == 0:
		return p.refuseOutside(ctx, guest, &outside)
	case guest:
		e, err := p.mail.NoAgent(unknown.of, unknown.names)
		if err != nil {
			return err
		}
		return e
	}
	if err := p.mail.NoBroadcast(ctx, d.from, unknown.names); err != nil {
		return err
	}
	return p.mail.UnknownAgent(ctx, unknown.of, unknown.names...)
}

// strangers are recipients that a message cannot have.
type strangers struct {
	names []string
	of    refusal.Field // the list that contains all of them
}

func (s *strangers) exclude(name string, of refusal.Field) {
	s.names = append(s.names, name)
	if s.of = cmp.Or(s.of, of); s.of != of {
		s.of = refusal.Recipients
	}
}
