package indexer

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"

	"mailtree/maildir/format"
)

// stored describes a message that is already in the tables.
type stored struct {
	row            int64
	thread, sender string
	src            string // path of the file with the message's content
	urgent, asks   bool
}

// letter is a message that a batch affects, with its state before and after the change.
type letter struct {
	id      string
	message                 // the message derived from its current files
	files   []*file         // the message's files
	holders map[string]bool // the agents whose deliveries the batch writes
	stored  *stored         // the message's rows in the tables; nil if there are none
	msg     *format.Message // the new content; nil if the content does not change
	row     int64           // the message's row after the batch
	urgent  bool
	asks    bool   // whether the message requests an acknowledgment
	words   string // the message's facets
}

// apply writes the rows for the observations. For each affected message, it deletes the rows that may have changed,
// and inserts the rows that derive returns.
func (b *batch) apply() error {
	letters, err := b.letters()
	if err != nil {
		return err
	}
	if err := b.numberFirst(letters); err != nil {
		return err
	}
	for _, step := range []func([]*letter) error{b.files, b.problems, b.messages, b.deliveries, b.claims, b.agents, b.record} {
		if err := step(letters); err != nil {
			return err
		}
	}
	return nil
}

// letters collects the messages whose files were observed. If a file's content is needed and has not been read yet,
// letters reads the file. If that file has changed since it was observed, letters adds an observation to the batch.
func (b *batch) letters() ([]*letter, error) {
	byID := map[string]*letter{}
	// marked lists the agents whose marks changed, by message id. If files other than marks also changed, the entry is
	// nil.
	marked := map[string]map[string]bool{}
	for _, lk := range b.order {
		f := cmp.Or(lk.file, b.known[lk.path])
		if f.id == "" {
			continue
		}
		if byID[f.id] == nil {
			byID[f.id] = &letter{id: f.id}
			marked[f.id] = map[string]bool{}
		}
		if f.kind.Mark() && marked[f.id] != nil {
			marked[f.id][f.agent] = true
		} else {
			marked[f.id] = nil
		}
	}
	if err := b.loadLetters(byID); err != nil {
		return nil, err
	}
	now := map[string][]*file{}
	for _, f := range b.known {
		t := byID[f.id]
		if t == nil || f.id == "" {
			continue
		}
		t.files = append(t.files, f)
		if lk := b.seen[f.path]; lk == nil || lk.same {
			now[f.id] = append(now[f.id], f)
		}
	}
	for _, lk := range b.order {
		if lk.file != nil && lk.file.id != "" {
			now[lk.file.id] = append(now[lk.file.id], lk.file)
		}
	}
	all := make([]*letter, 0, len(byID))
	for _, id := range slices.Sorted(maps.Keys(byID)) {
		t := byID[id]
		t.message, t.holders = derive(now[id]), marked[id]
		if t.holders == nil {
			t.holders = map[string]bool{}
			for _, f := range slices.Concat(t.files, now[id]) {
				if f.kind == format.KindInbox || f.kind == format.KindOutbox {
					t.holders[f.agent] = true
				}
			}
		}
		found, err := b.content(t)
		if err != nil {
			return nil, err
		}
		if !found {
			return b.letters()
		}
		all = append(all, t)
	}
	return all, nil
}

// content sets a message's new content if it differs from the content in the tables. It returns false if the file's
// bytes have changed since the observation or the file cannot be read. In both cases, content also updates the batch's
// observations.
func (b *batch) content(t *letter) (found bool, err error) {
	s := t.source
	if s == nil {
		return true, nil
	}
	if t.stored != nil {
		if old := b.known[t.stored.src]; old != nil && string(old.hash) == string(s.hash) {
			return true, nil
		}
	}
	if t.msg = b.l.content(s); t.msg != nil {
		return true, nil
	}
	lk := b.again(s.path)
	switch {
	case lk.unreadable != nil:
		b.leaveOut(t.id, lk.unreadable)
		return false, nil
	case !lk.same:
		return false, nil
	}
	if t.msg = b.l.content(s); t.msg == nil {
		return false, fmt.Errorf("no message found in %s (hash %x)", s.path, s.hash)
	}
	return true, nil
}

// loadLetters reads the existing rows of messages from the tables.
func (b *batch) loadLetters(byID map[string]*letter) error {
	if b.new || len(byID) == 0 {
		return nil
	}
	const messages = "SELECT m.id, m.row, m.thread, m.sender, " + messagePath + ", m.importance IN ('high', 'urgent'), m.ack " +
		"FROM json_each(?2) j CROSS JOIN messages m ON m.pid = ?1 AND m.id = " + given
	return b.w.each(messages, []any{b.p.pid, listed(slices.Collect(maps.Keys(byID)))}, func(scan scanner) error {
		var id string
		s := &stored{}
		err := scan(&id, &s.row, &s.thread, &s.sender, &s.src, &s.urgent, &s.asks)
		byID[id].stored = s
		return err
	})
}

// files writes the rows of the table files. It deletes rows last. Otherwise, a trigger could drop a folder or agent
// that gets new files in the same batch.
func (b *batch) files([]*letter) error {
	var put []*file
	for _, lk := range slices.Concat(b.stats, b.order) {
		f := lk.file
		if f == nil {
			continue
		}
		if k := b.known[lk.path]; k != nil {
			f.fol = k.fol
		} else {
			f.fol = b.folders[path.Dir(f.path)]
		}
		put = append(put, f)
	}
	if err := b.w.putFiles(b.p.pid, put, b.aid); err != nil {
		return err
	}
	for _, lk := range b.order {
		if lk.file == nil {
			if err := b.w.deleteFile(b.p.pid, b.known[lk.path]); err != nil {
				return err
			}
		}
	}
	return nil
}

// problems records the files that are ignored, either because they are invalid or because another file has the same
// id.
func (b *batch) problems(letters []*letter) error {
	var gone []string
	for _, lk := range b.order {
		if k := b.known[lk.path]; k != nil && k.reason != "" {
			gone = append(gone, lk.path)
		}
	}
	for _, t := range letters {
		if len(t.files) < 2 {
			continue // a single file has no duplicates
		}
		for _, f := range t.files {
			if f.valid && f.reason == "" {
				gone = append(gone, f.path)
			}
		}
	}
	if err := b.w.deleteProblems(b.p.pid, gone); err != nil {
		return err
	}
	for _, lk := range b.order {
		if f := lk.file; f != nil && f.reason != "" {
			if err := b.w.insertProblem(b.p.pid, f.path, f.reason, f.line); err != nil {
				return err
			}
		}
	}
	for _, t := range letters {
		for p, why := range t.twins {
			const line = 0 // the whole file
			if err := b.w.insertProblem(b.p.pid, p, why, line); err != nil {
				return err
			}
		}
	}
	return nil
}

// messages writes the rows of messages and the full-text index. All deletions come before all insertions, and both
// are in row order.
func (b *batch) messages(letters []*letter) error {
	var out []int64
	var in []*letter
	for _, t := range letters {
		if t.msg != nil {
			in = append(in, t)
		}
		if t.stored == nil {
			continue
		}
		if t.msg != nil || t.source == nil {
			out = append(out, t.stored.row)
			continue
		}
		t.row, t.urgent, t.asks = t.stored.row, t.stored.urgent, t.stored.asks
		if t.stored.src != t.source.path {
			if err := b.w.moveSource(t.row, t.source.fol); err != nil {
				return err
			}
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
	for _, t := range in {
		if err := b.insert(t); err != nil {
			return err
		}
	}
	slices.SortFunc(in, func(a, b *letter) int { return cmp.Compare(a.row, b.row) })
	for _, t := range in {
		if err := b.w.searchable(t.row, t.msg, t.words); err != nil {
			return err
		}
	}
	return nil
}

func (b *batch) insert(t *letter) error {
	t.words = facets(b.p.pid, t.msg)
	t.asks = t.msg.AckRequired
	t.urgent = t.msg.Importance == format.High || t.msg.Importance == format.Urgent
	for try := 0; ; try++ {
		t.row = place(t.msg.Created.UnixMicro(), t.id, try)
		ok, err := b.w.insertMessage(b.p.pid, t.row, t.msg, t.source.fol, t.words)
		if ok || err != nil {
			return err
		}
	}
}
