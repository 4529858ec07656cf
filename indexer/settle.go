package indexer

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"mailtree/maildir"
	"mailtree/maildir/format"
)

// agentsFirst inserts the agents whose first file appeared, and counts what the batch changes for
// each agent.
func (b *batch) agentsFirst(letters []*letter) error {
	for _, lk := range b.order {
		if k := b.known[lk.path]; k != nil && k.makesAgent() != "" {
			b.tally(k.makesAgent()).files--
		}
		if lk.file != nil && lk.file.makesAgent() != "" {
			b.tally(lk.file.makesAgent()).files++
		}
	}
	for _, t := range letters {
		b.countLetter(&t.old, -1)
		b.countLetter(&t.new, +1)
	}
	if err := b.loadAgents(); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(b.tallies)) {
		if d := b.tallies[name]; d.aid == 0 {
			aid, err := b.w.insertAgent(b.p.pid, name)
			if err != nil {
				return err
			}
			d.aid = aid
		}
	}
	return nil
}

func (b *batch) tally(agent string) *tally {
	d := b.tallies[agent]
	if d == nil {
		d = &tally{}
		b.tallies[agent] = d
	}
	return d
}

func (b *batch) countLetter(m *message, sign int) {
	for agent, box := range m.boxes {
		d := b.tally(agent)
		d.total += sign
		if box.read == nil {
			d.unread += sign
		}
		if box.archived != nil {
			d.archived += sign
		}
	}
	if s := m.sender(); s != "" {
		b.tally(s).sent += sign
	}
}

func (b *batch) loadAgents() error {
	var names []string
	for name, d := range b.tallies {
		if d.aid == 0 {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	list, err := json.Marshal(names)
	if err != nil {
		return err
	}
	return b.w.each("SELECT a.name, a.aid FROM json_each(?2) j CROSS JOIN agents a ON a.pid = ?1 AND a.name = j.value", []any{b.p.pid,
		string(list)}, func(scan func(...any) error) error {
		var name string
		var aid int64
		err := scan(&name, &aid)
		b.tallies[name].aid = aid
		return err
	})
}

// deliveries writes the rows of deliveries.
func (b *batch) deliveries(letters []*letter) error {
	for _, t := range letters {
		moved := t.stored == nil || t.stored.row != t.row
		for agent := range t.old.boxes {
			if _, stays := t.new.boxes[agent]; stays && !moved {
				continue
			}
			if err := b.w.deleteDelivery(b.tally(agent).aid, t.stored.row); err != nil {
				return err
			}
		}
		for agent, is := range t.new.boxes {
			if !moved && t.stored.urgent == t.urgent && t.stored.asks == t.asks && t.old.boxes[agent].sameRow(is) {
				continue
			}
			if err := b.w.putDelivery(b.tally(agent).aid, t, is); err != nil {
				return err
			}
		}
	}
	return nil
}

// claims writes the rows of claims; the mark beside each file tells its release.
func (b *batch) claims([]*letter) error {
	var marked []string
	for _, lk := range b.order {
		k := b.known[lk.path]
		kind := format.Locate(lk.path).Kind
		switch {
		case kind == format.KindReleased:
			marked = append(marked, strings.TrimSuffix(lk.path, format.ReleasedMark(""))+".json")
		case kind == format.KindClaim && lk.file != nil && lk.file.valid:
			if err := b.w.putClaim(b.p.pid, lk.path, lk.claim); err != nil {
				return err
			}
			marked = append(marked, lk.path)
		case kind == format.KindClaim && k != nil && k.valid:
			if err := b.w.deleteClaim(b.p.pid, lk.path); err != nil {
				return err
			}
		}
	}
	for _, p := range marked {
		if err := b.w.releaseClaim(b.p.pid, p); err != nil {
			return err
		}
	}
	return nil
}

// agents writes profiles, presence and counts, and deletes agents without files.
func (b *batch) agents([]*letter) error {
	for _, lk := range b.order {
		pl := locate(lk.path)
		if pl.Bad != "" || pl.Kind != format.KindProfile && pl.Kind != format.KindStatus {
			continue
		}
		aid := b.tally(pl.Agent).aid
		valid := lk.file != nil && lk.file.valid
		var err error
		switch {
		case pl.Kind == format.KindProfile && valid:
			err = b.w.setProfile(aid, lk.profile)
		case pl.Kind == format.KindProfile:
			err = b.w.setProfile(aid, nil)
		case valid:
			err = b.w.setStatus(aid, lk.status)
		default:
			err = b.w.setStatus(aid, "")
		}
		if err != nil {
			return err
		}
	}
	for _, d := range b.tallies {
		if d.files != 0 || d.total != 0 || d.unread != 0 || d.archived != 0 || d.sent != 0 {
			if err := b.w.countAgent(d.aid, d); err != nil {
				return err
			}
		}
		if d.files < 0 {
			if err := b.w.deleteAgent(d.aid); err != nil {
				return err
			}
		}
	}
	return nil
}

// record adds the differences to the log of changes.
func (b *batch) record(letters []*letter) error {
	if b.new {
		return nil
	}
	byID := make(map[string]*letter, len(letters))
	for _, t := range letters {
		byID[t.id] = t
	}
	now := b.x.cfg.Now()
	for _, lk := range b.order {
		c := b.changeOf(lk, byID)
		c.Project, c.At = b.p.slug, now
		b.changes = append(b.changes, c)
	}
	return b.w.addChanges(b.p.pid, b.changes)
}

// changeOf describes a difference as a change of the mail: a file that does not count is
// format.KindOther.
func (b *batch) changeOf(lk *look, letters map[string]*letter) maildir.Change {
	k, f := b.known[lk.path], lk.file
	pl := locate(lk.path)
	c := maildir.Change{
		Path:  lk.path,
		Kind:  pl.Kind,
		Agent: pl.Agent,
		ID:    pl.ID,
	}
	was, is := k != nil && k.valid, f != nil && f.valid
	switch {
	case was && is:
		c.Op = maildir.Changed
	case is:
		c.Op = maildir.Added
	case was:
		c.Op = maildir.Removed
	default:
		c.Kind, c.Op = format.KindOther, maildir.Changed
		if k == nil {
			c.Op = maildir.Added
		} else if f == nil {
			c.Op = maildir.Removed
		}
		return c
	}
	if lk.claim != nil {
		c.Agent = lk.claim.Agent
	}
	if t := letters[pl.ID]; pl.ID != "" && t != nil {
		c.Thread = t.thread()
		if pl.Kind == format.KindCanonical {
			c.Agent = t.from()
		}
	}
	return c
}

// thread is the thread of the message as it is now, or was.
func (t *letter) thread() string {
	if t.msg != nil {
		return t.msg.ThreadID
	}
	if t.stored != nil {
		return t.stored.thread
	}
	return ""
}

func (t *letter) from() string {
	if t.msg != nil {
		return t.msg.From
	}
	if t.stored != nil {
		return t.stored.sender
	}
	return ""
}
