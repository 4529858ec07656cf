package indexer

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"mailtree/maildir/format"
)

// message is the result of applying the rules in docs/reference/tree.md, "Copies", to all files with the same message
// id. The result depends only on the rows of these files.
type message struct {
	source *file             // the file with the content; nil if there is no message
	outbox *file             // the sender's copy; nil if there is none
	boxes  map[string]box    // deliveries, by holder
	twins  map[string]string // reasons why valid duplicate files are ignored, by path
}

// box is the delivery of a message to one agent.
type box struct {
	copy, ack, archived, later *file
	read                       *file // the mark that records that the message was read; described in docs/reference/tree.md, "Marks"
}

// derive returns the message that results from the files, which all have the same id and may be in any order.
func derive(files []*file) message {
	slices.SortFunc(files, func(a, b *file) int { return strings.Compare(a.path, b.path) })
	m := message{boxes: map[string]box{}, twins: map[string]string{}}
	marks := map[string]*file{}
	var canonical, inbox *file
	for _, f := range files {
		if !f.valid {
			continue
		}
		switch f.kind {
		case format.KindRead, format.KindAck, format.KindArchived, format.KindLater:
			marks[f.path] = f
		case format.KindCanonical:
			m.first(&canonical, f)
		case format.KindOutbox:
			m.first(&m.outbox, f)
		case format.KindInbox:
			own := m.boxes[f.agent].copy
			m.first(&own, f)
			m.boxes[f.agent] = box{copy: own}
			if inbox == nil {
				inbox = f
			}
		}
	}
	for agent, b := range m.boxes {
		b.ack = marks[format.AckMark(b.copy.path)]
		b.archived = marks[format.ArchivedMark(b.copy.path)]
		b.later = marks[format.LaterMark(b.copy.path)]
		b.read = cmp.Or(marks[format.ReadMark(b.copy.path)], b.ack, b.archived)
		m.boxes[agent] = b
	}
	switch {
	case canonical != nil:
		m.source = canonical
	case m.outbox != nil:
		m.source = m.outbox
	default:
		m.source = inbox
	}
	return m
}

// first assigns the role to f if no earlier file has that role. Otherwise, it reports f as a problem.
func (m *message) first(role **file, f *file) {
	if *role == nil {
		*role = f
		return
	}
	m.twins[f.path] = fmt.Sprintf("the id %s is already used by %q, which takes precedence. Remove "+
		"one of the two files, or give one a different id and name", f.id, (*role).path)
}
