package maildir

import (
	"cmp"
	"context"

	"mailtree/maildir/format"
	"mailtree/maildir/refusal"
	"mailtree/maildir/writer"
)

// needParties refuses an unknown sender, names every unknown recipient, and refuses recipients at other
// domains to which no mail may go.
func (p *Project) needParties(ctx context.Context, d *Draft) error {
	if err := p.needAgent(ctx, refusal.From, d.from); err != nil {
		return err
	}
	var unknown, outside strangers
	for _, list := range []struct {
		of    refusal.Field
		names []string
	}{{refusal.To, d.To}, {refusal.CC, d.CC}, {refusal.BCC, d.BCC}} {
		for _, n := range list.names {
			ok, err := p.hasAgent(ctx, n)
			switch {
			case err != nil:
				return err
			case ok:
			case d.saved != nil && p.store.isElsewhere(n):
				return &Error{What: fromFileOutside, Field: list.of, Name: n}
			case n == UnknownSender:
				return &Error{What: toUnknownSender, Field: list.of, Name: n}
			case !p.store.isElsewhere(n):
				unknown.exclude(n, list.of)
			case !p.store.cfg.Outside.allows(n):
				outside.exclude(n, list.of)
			}
		}
	}
	guest := d.by != nil && p.store.guest(*d.by)
	switch {
	case len(unknown.names) == 0 && len(outside.names) == 0:
		return nil
	case len(unknown.names) == 0:
		return p.refuseOutside(ctx, guest, &outside)
	case guest:
		e, err := p.noAgent(unknown.of, unknown.names)
		if err != nil {
			return err
		}
		return e
	}
	if err := p.noBroadcast(ctx, d.from, unknown.names); err != nil {
		return err
	}
	return p.unknownAgent(ctx, unknown.of, unknown.names...)
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

// needRoom refuses with refusal.MailboxFull if a mailbox has no room for another unread message. coming counts
// the messages that are about to be written below a folder.
func (p *Project) needRoom(ctx context.Context, coming func(folder string) int, names []string) error {
	for _, n := range names {
		if !isAgent(n) {
			continue
		}
		counts, err := p.store.index.Counts(ctx, p.Slug, n)
		if err != nil {
			return err
		}
		unread, most := counts.Unread, p.store.cfg.MailboxDepth
		if unread+writer.MaxGroup >= most { // otherwise there is room in any case
			unread += coming(format.AgentsDir + "/" + n + "/" + format.InboxDir)
		}
		if unread >= most {
			return &Error{
				What:   refusal.MailboxFull,
				Name:   n,
				Counts: []int{unread},
				Limit:  most,
			}
		}
	}
	return nil
}
