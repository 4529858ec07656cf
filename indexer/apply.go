package indexer

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"mailtree/maildir/format"
)

// tally is what a batch adds to one agent's row.
type tally struct {
	aid                                  int64
	files, total, unread, archived, sent int
}

// oldMessage is a message as the tables hold it.
type oldMessage struct {
	row, created   int64
	thread, sender string
	urgent, asks   bool
}

// letter is one message id that a batch touches: what its files said before and say now.
type letter struct {
	id       string
	old, new message
	marks    bool            // only marks changed: files has those of their holders alone
	stored   *oldMessage     // as the tables hold it; nil where they do not
	msg      *format.Message // the new content; nil where it does not change
	row      int64           // its row after the batch
	urgent   bool
	asks     bool   // for an acknowledgement
	words    string // its facets
}

// apply writes the rows that the looks ask for.
func (b *batch) apply() error {
	letters, err := b.letters()
	if err != nil {
		return err
	}
	if err := b.agentsFirst(letters); err != nil {
		return err
	}
	for _, step := range []func([]*letter) error{b.files, b.problems, b.messages, b.deliveries, b.claims, b.agents, b.record} {
		if err := step(letters); err != nil {
			return err
		}
	}
	return nil
}

// letters collects the messages that the looks touch. It reads a file whose content the batch needs
// and has not read; if that file has changed meanwhile, the batch gets one more look.
func (b *batch) letters() ([]*letter, error) {
	// touched has the holders of changed marks by id; nil where more than marks changed.
	touched := map[string]map[string]bool{}
	for _, lk := range b.order {
		for _, f := range []*file{lk.file, b.known[lk.path]} {
			if f == nil || f.id == "" {
				continue
			}
			holders, ok := touched[f.id]
			switch {
			case !f.kind.Mark():
				touched[f.id] = nil
			case !ok:
				touched[f.id] = map[string]bool{f.agent: true}
			case holders != nil:
				holders[f.agent] = true
			}
		}
	}
	stored, err := b.loadMessages(touched)
	if err != nil {
		return nil, err
	}
	byID := map[string]map[string]bool{} // paths by id
	add := func(f *file) {
		if f != nil && f.id != "" && touchedBy(touched, f) {
			if byID[f.id] == nil {
				byID[f.id] = map[string]bool{}
			}
			byID[f.id][f.path] = true
		}
	}
	for _, f := range b.known {
		add(f)
	}
	for _, lk := range b.order {
		add(lk.file)
	}
	var all []*letter
	for _, id := range slices.Sorted(maps.Keys(byID)) {
		t := &letter{id: id, stored: stored[id], marks: touched[id] != nil}
		err := b.resolve(t, slices.Sorted(maps.Keys(byID[id])))
		var unread *unreadError
		if errors.As(err, &unread) {
			b.leaveOut(id, unread.fault)
			return b.letters()
		}
		if err != nil {
			return nil, err
		}
		all = append(all, t)
	}
	return all, nil
}

// touchedBy reports whether f helps to decide what the changed marks mean.
func touchedBy(touched map[string]map[string]bool, f *file) bool {
	holders, ok := touched[f.id]
	return ok && (holders == nil || holders[f.agent])
}

// unreadError says that a fault of the machine kept a batch from reading the content of a message.
type unreadError struct{ fault error }

func (e *unreadError) Error() string { return "content not read: " + e.fault.Error() }

// resolve derives the old and the new state of a message, and reads the content of the new one.
// Errors: *unreadError.
func (b *batch) resolve(t *letter, paths []string) error {
	for {
		var old, now []*file
		for _, p := range paths {
			k := b.known[p]
			if k != nil {
				old = append(old, k)
			}
			if lk := b.seen[p]; lk != nil && !lk.same {
				k = lk.file
			}
			if k != nil {
				now = append(now, k)
			}
		}
		t.old, t.new = derive(old), derive(now)
		s := t.new.source
		if s == nil || (t.old.source != nil && string(t.old.source.hash) == string(s.hash)) {
			return nil
		}
		if t.msg = b.l.content(s); t.msg != nil {
			return nil
		}
		lk := b.again(s.path)
		if lk.unread != nil {
			return &unreadError{lk.unread}
		}
		if lk.same && b.l.content(s) == nil {
			return fmt.Errorf("%s was read as %x and has no message in it", s.path, s.hash)
		}
	}
}

// loadMessages reads the rows of all files of the ids that the batch touches, and their messages.
func (b *batch) loadMessages(touched map[string]map[string]bool) (map[string]*oldMessage, error) {
	stored := map[string]*oldMessage{}
	if b.new || len(touched) == 0 {
		return stored, nil
	}
	const whole = "SELECT " + fileColumns + " FROM json_each(?2) j CROSS JOIN files f ON f.pid = ?1 AND f.msgid = j.value AND f.msgid <> ''"
	const held = "SELECT " + fileColumns + " FROM json_each(?2) j CROSS JOIN files f ON f.pid = ?1 AND f.msgid = j.value ->> 0 " +
		"AND f.agent = j.value ->> 1 AND f.msgid <> ''"
	const messages = "SELECT m.id, m.row, m.created, m.thread, m.sender, m.importance IN ('high', 'urgent'), m.ack FROM json_each(?2) j " +
		"CROSS JOIN messages m ON m.pid = ?1 AND m.id = j.value"
	var all, ids []string
	var pairs [][2]string
	for id, holders := range touched {
		all = append(all, id)
		if holders == nil {
			ids = append(ids, id)
		}
		for agent := range holders {
			pairs = append(pairs, [2]string{id, agent})
		}
	}
	for _, q := range []struct {
		text string
		list any
		n    int
	}{{whole, ids, len(ids)}, {held, pairs, len(pairs)}} {
		if q.n == 0 {
			continue
		}
		list, err := json.Marshal(q.list)
		if err != nil {
			return nil, err
		}
		if err := b.loadMore(q.text, string(list)); err != nil {
			return nil, err
		}
	}
	list, err := json.Marshal(all)
	if err != nil {
		return nil, err
	}
	return stored, b.w.each(messages, []any{b.p.pid, string(list)}, func(scan func(...any) error) error {
		var id string
		o := &oldMessage{}
		err := scan(&id, &o.row, &o.created, &o.thread, &o.sender, &o.urgent, &o.asks)
		stored[id] = o
		return err
	})
}

// loadMore adds rows to known, keeping those that are there.
func (b *batch) loadMore(text, list string) error {
	return b.w.each(text, []any{b.p.pid, list}, func(scan func(...any) error) error {
		f, err := scanFile(scan)
		if err == nil && b.known[f.path] == nil {
			b.known[f.path] = f
		}
		return err
	})
}

// files writes the rows of files.
func (b *batch) files([]*letter) error {
	for _, lk := range b.stats {
		if err := b.w.restat(b.known[lk.path].fid, lk.file); err != nil {
			return err
		}
	}
	var added []*file
	for _, lk := range b.order {
		k := b.known[lk.path]
		var err error
		switch {
		case lk.file == nil:
			err = b.w.deleteFile(k.fid)
		case k != nil:
			err = b.w.updateFile(k.fid, lk.file)
		default:
			added = append(added, lk.file)
		}
		if err != nil {
			return err
		}
	}
	return b.w.insertFiles(b.p.pid, added)
}

// problems writes why files do not count: for a reason of their own, or because another file has
// their id.
func (b *batch) problems(letters []*letter) error {
	var gone []string
	type problem struct {
		path, reason string
		line         int
	}
	var found []problem
	for _, lk := range b.order {
		if k := b.known[lk.path]; k != nil && k.reason != "" {
			gone = append(gone, lk.path)
		}
		if lk.file != nil && lk.file.reason != "" {
			found = append(found, problem{lk.path, lk.file.reason, lk.file.line})
		}
	}
	for _, t := range letters {
		for p, why := range t.old.twins {
			if t.new.twins[p] != why {
				gone = append(gone, p)
			}
		}
		for p, why := range t.new.twins {
			if t.old.twins[p] != why {
				found = append(found, problem{p, why, 0})
			}
		}
	}
	for _, p := range gone {
		if err := b.w.deleteProblem(b.p.pid, p); err != nil {
			return err
		}
	}
	for _, f := range found {
		if err := b.w.insertProblem(b.p.pid, f.path, f.reason, f.line); err != nil {
			return err
		}
	}
	return nil
}

// messages writes the rows of messages and the full-text index: first all deletions, then all
// insertions, each in the order of rows.
func (b *batch) messages(letters []*letter) error {
	var out []int64
	var replaced []*letter
	count := 0
	for _, t := range letters {
		switch {
		case t.stored == nil && t.msg == nil:
			continue
		case t.stored != nil && t.msg == nil && (t.marks || t.new.source != nil):
			t.row, t.urgent, t.asks = t.stored.row, t.stored.urgent, t.stored.asks
			if !t.marks && t.old.source.path != t.new.source.path {
				if err := b.w.moveSource(t.row, t.new.source.path); err != nil {
					return err
				}
			}
			continue
		}
		if t.stored != nil {
			out, count = append(out, t.stored.row), count-1
		}
		if t.msg != nil {
			replaced, count = append(replaced, t), count+1
		}
	}
	slices.Sort(out)
	if err := b.w.unsearchable(out); err != nil {
		return err
	}
	for _, row := range out {
		if err := b.w.deleteMessage(row); err != nil {
			return err
		}
	}
	slices.SortStableFunc(replaced, keepersFirst)
	for _, t := range replaced {
		if err := b.insert(t); err != nil {
			return err
		}
	}
	slices.SortFunc(replaced, func(a, b *letter) int { return cmp.Compare(a.row, b.row) })
	for _, t := range replaced {
		if err := b.w.searchable(t.row, t.msg, t.words); err != nil {
			return err
		}
	}
	if count == 0 {
		return nil
	}
	return b.w.countMessages(b.p.pid, count)
}

// keepersFirst orders messages that keep their row before those that need a free one, then by time.
func keepersFirst(a, b *letter) int {
	if ka, kb := a.keeps(), b.keeps(); ka != kb {
		if ka {
			return -1
		}
		return 1
	}
	if c := a.msg.Created.Compare(b.msg.Created); c != 0 {
		return c
	}
	return strings.Compare(a.id, b.id)
}

// keeps reports whether new content stays at its row.
func (t *letter) keeps() bool {
	return t.stored != nil && t.msg != nil && t.stored.created == t.msg.Created.UnixMicro()
}

func (b *batch) insert(t *letter) error {
	t.words = facets(b.p.pid, t.msg)
	t.asks = t.msg.AckRequired
	t.urgent = t.msg.Importance == format.High || t.msg.Importance == format.Urgent
	for try := 0; ; try++ {
		t.row = place(t.msg.Created.UnixMicro(), t.id, try)
		if try == 0 && t.keeps() {
			t.row = t.stored.row
		}
		ok, err := b.w.insertMessage(b.p.pid, t.row, t.msg, t.new.source.path, t.words)
		if ok || err != nil {
			return err
		}
	}
}
