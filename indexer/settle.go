package indexer

import (
	"cmp"
	"maps"
	"path"
	"slices"
	"strings"

	"mailtree/maildir/format"
	"mailtree/maildir/index"
)

// numberFirst assigns numbers to the folders and agents that other rows will refer to.
func (b *batch) numberFirst(letters []*letter) error {
	names, dirs := map[string]bool{}, map[string]bool{}
	for _, lk := range b.order {
		if lk.file != nil && b.known[lk.path] == nil {
			dirs[path.Dir(lk.path)] = true
		}
		if name := cmp.Or(lk.file, b.known[lk.path]).makesAgent(); name != "" {
			names[name] = true
		}
	}
	for _, t := range letters {
		for name := range t.holders {
			if format.ValidName(name) {
				names[name] = true
			}
		}
	}
	if err := b.number(folderNumbers, slices.Sorted(maps.Keys(dirs)), b.folders); err != nil {
		return err
	}
	return b.number(agentNumbers, slices.Sorted(maps.Keys(names)), b.aids)
}

// aid returns the number of the agent whose existence a file implies, or 0.
func (b *batch) aid(f *file) int64 { return b.aids[f.makesAgent()] }

// numbered contains the queries for a table that maps names to numbers.
type numbered struct{ read, insert string }

var (
	folderNumbers = numbered{
		"SELECT o.path, o.fol FROM json_each(?2) j CROSS JOIN folders o ON o.pid = ?1 AND o.path = " + given,
		"INSERT INTO folders (pid, path) SELECT ?1, " + given + " FROM json_each(?2) j",
	}
	agentNumbers = numbered{
		"SELECT a.name, a.aid FROM json_each(?2) j CROSS JOIN agents a ON a.pid = ?1 AND a.name = " + given,
		"INSERT INTO agents (pid, name) SELECT ?1, " + given + " FROM json_each(?2) j",
	}
)

// number looks up the rows with the given names, inserts missing rows, and adds the number of each row to the map into.
func (b *batch) number(t numbered, names []string, into map[string]int64) error {
	for _, insert := range []bool{false, true} {
		missing := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return into[name] != 0 })
		if len(missing) == 0 {
			break
		}
		args := []any{b.p.pid, listed(missing)}
		if insert {
			if err := b.w.do(t.insert, args...); err != nil {
				return err
			}
		}
		err := b.w.each(t.read, args, func(scan scanner) error {
			var name string
			var number int64
			err := scan(&name, &number)
			into[name] = number
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// deliveries writes the rows of the table deliveries. If an agent's files of a message changed, it deletes the agent's
// old rows and inserts the derived rows.
func (b *batch) deliveries(letters []*letter) error {
	var all []delivery
	for _, t := range letters {
		for agent := range t.holders {
			aid := b.aids[agent]
			if t.stored != nil {
				if err := b.w.deleteDeliveries(aid, t.stored.row); err != nil {
					return err
				}
			}
			if is, ok := t.boxes[agent]; ok {
				all = append(all, delivery{aid: aid, of: t, box: is})
			}
			if t.outbox != nil && t.outbox.agent == agent {
				all = append(all, delivery{aid: aid, of: t, sent: true})
			}
		}
	}
	return b.w.insertDeliveries(all)
}

// claims writes the rows of the table claims. The mark next to a claim file records the release of the claim.
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

// agents writes profiles, statuses and holds to the table agents. An invalid file is treated as missing.
func (b *batch) agents([]*letter) error {
	for _, lk := range b.order {
		pl := locate(lk.path)
		if pl.Bad != "" {
			continue
		}
		aid := b.aids[pl.Agent]
		is := *lk
		if lk.file == nil || !lk.file.valid {
			is = observation{}
		}
		var err error
		switch pl.Kind {
		case format.KindProfile:
			err = b.w.setProfile(aid, is.profile)
		case format.KindStatus:
			err = b.w.setStatus(aid, is.status)
		case format.KindHold:
			err = b.w.setHold(aid, is.hold)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// record adds the differences that the batch found to the feed of changes.
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

// changeOf converts an observed difference to a change for the feed. The kind of an invalid file is format.KindOther.
func (b *batch) changeOf(lk *observation, letters map[string]*letter) index.Change {
	k, f := b.known[lk.path], lk.file
	pl := locate(lk.path)
	c := index.Change{
		Path:  lk.path,
		Kind:  pl.Kind,
		Agent: pl.Agent,
		ID:    pl.ID,
	}
	was, is := k != nil && k.valid, f != nil && f.valid
	switch {
	case was && is:
		c.Op = index.Changed
	case is:
		c.Op = index.Added
	case was:
		c.Op = index.Removed
	default:
		c.Kind, c.Op = format.KindOther, index.Changed
		if k == nil {
			c.Op = index.Added
		} else if f == nil {
			c.Op = index.Removed
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
			// While this file was missing or invalid, the copies kept the message in the index.
			if t.stored != nil && c.Op == index.Added {
				c.Op = index.Changed
			}
		}
	}
	return c
}

// thread returns the message's current thread or, if the message no longer exists, its last thread.
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
