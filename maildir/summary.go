package maildir

import (
	"context"
	"slices"
	"strings"
	"time"

	"mailtree/maildir/format"
	"mailtree/maildir/markdown"
)

// Summary of a thread; every item carries the id of the message it comes from. Lists are never nil.
type Summary struct {
	ThreadID, Subject string
	Participants      []string // senders in order of appearance, then recipients
	Messages          int
	First, Last       time.Time
	KeyPoints         []SummaryItem
	Decisions         []SummaryItem
	OpenActions       []SummaryItem
	DoneActions       []SummaryItem
	Questions         []SummaryItem // without an answer
	Examples          []SummaryItem // with examples: an excerpt of each of the newest three messages
	Truncated         bool          // the thread or a body was over a limit
}

// SummaryItem is one line of a summary.
type SummaryItem struct {
	Text, MessageID, From string
	Owner                 string // of an action, "" when nobody is named
}

// Bounds of a summary: the newest messages are read, and each list keeps its newest lines.
const (
	maxSummarized   = 200             // messages
	maxSummaryItems = 50              // lines a list
	maxExamples     = 3               // messages with an excerpt
	summaryTime     = 2 * time.Second // for reading the long bodies
)

// Summarize reads the structure of a thread's bodies; deterministic. Errors: ErrNotFound.
// See docs/tools.md, "Summaries".
func (p *Project) Summarize(ctx context.Context, thread string, examples bool) (*Summary, error) {
	rows, err := p.Thread(ctx, thread, false)
	if err != nil {
		return nil, err
	}
	s := &Summary{ThreadID: thread, Subject: rows[0].Subject, Messages: len(rows), First: rows[0].Created, Last: rows[len(rows)-1].Created,
		Participants: participants(rows)}
	if len(rows) > maxSummarized {
		rows, s.Truncated = rows[len(rows)-maxSummarized:], true
	}
	limited, cancel := context.WithTimeout(ctx, summaryTime)
	defer cancel()
	for i := range rows {
		m := &rows[i].Message
		body, err := p.store.index.Body(ctx, p.slug, m.ID, 0, markdown.Limit+1) // one at a time: together they may be gigabytes
		if err != nil {
			return nil, err
		}
		reading := limited
		if len(body) <= markdown.Short { // read whole however long the machine takes
			reading = ctx
		}
		s.add(m, markdown.Parse(reading, body), answered(rows, i))
		if examples && i >= len(rows)-maxExamples {
			s.Examples = append(s.Examples, SummaryItem{Text: cutRunes(markdown.PlainText(body), 300), MessageID: m.ID, From: m.From})
		}
	}
	s.settleActions()
	for _, l := range []*[]SummaryItem{&s.KeyPoints, &s.Decisions, &s.OpenActions, &s.DoneActions, &s.Questions, &s.Examples} {
		if len(*l) > maxSummaryItems {
			*l, s.Truncated = (*l)[len(*l)-maxSummaryItems:], true
		}
		if *l == nil {
			*l = []SummaryItem{}
		}
	}
	return s, nil
}

func (s *Summary) add(m *format.Message, o markdown.Outline, answered bool) {
	item := func(text string) SummaryItem { return SummaryItem{Text: text, MessageID: m.ID, From: m.From} }
	for _, t := range o.Points {
		s.KeyPoints = append(s.KeyPoints, item(t))
	}
	for _, t := range o.Decisions {
		s.Decisions = append(s.Decisions, item(t))
	}
	for _, a := range o.Actions {
		it := item(a.Text)
		it.Owner = a.Owner
		if a.Done {
			s.DoneActions = append(s.DoneActions, it)
		} else {
			s.OpenActions = append(s.OpenActions, it)
		}
	}
	if !answered {
		for _, t := range o.Questions {
			s.Questions = append(s.Questions, item(t))
		}
	}
	s.Truncated = s.Truncated || o.Truncated
}

// settleActions keeps each action once: done where any message of the thread says so.
func (s *Summary) settleActions() {
	key := func(i SummaryItem) string { return strings.ToLower(strings.Join(strings.Fields(i.Text), " ")) }
	seen := map[string]bool{}
	keep := func(l []SummaryItem) []SummaryItem {
		return slices.DeleteFunc(l, func(i SummaryItem) bool {
			k := key(i)
			was := seen[k]
			seen[k] = true
			return was
		})
	}
	s.DoneActions = keep(s.DoneActions)
	s.OpenActions = keep(s.OpenActions)
}

// answered reports whether somebody else answered rows[i]: a later reply to it, or a later message of another
// sender that replies to nothing of the thread in particular.
func answered(rows []MessageRow, i int) bool {
	for _, m := range rows[i+1:] {
		if m.From != rows[i].From && (m.InReplyTo == rows[i].ID || m.InReplyTo == "") {
			return true
		}
	}
	return false
}

func participants(rows []MessageRow) []string {
	var names []string
	add := func(n string) {
		if !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	for _, m := range rows {
		add(m.From)
	}
	for _, m := range rows {
		for _, n := range slices.Concat(m.To, m.CC) {
			add(n)
		}
	}
	return names
}

func cutRunes(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	return string(r[:n-1]) + "…"
}
