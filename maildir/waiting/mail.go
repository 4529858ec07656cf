package waiting

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"mailtree/maildir/format"
	"mailtree/maildir/index"
	"mailtree/maildir/markdown"
)

// group is the reason why a message is waiting. A thread is in the lowest group of its messages.
type group int

const (
	isBlocked group = iota
	isAsked
	isNew
	isOwed
	isHidden
	groups
)

// waiting describes a waiting message.
type waiting struct {
	index.Due
	group group
	why   string
	who   []string // for Thread.People
}

// before compares messages by group, then by importance (highest first), then by age (newest first).
func (m *waiting) before(n *waiting) int {
	return cmp.Or(cmp.Compare(m.group, n.group), cmp.Compare(rank(n.Importance), rank(m.Importance)), cmp.Compare(n.Cursor, m.Cursor))
}

// rank returns the sort order of an importance level. Low and normal have the same rank.
func rank(importance string) int {
	return max(0, slices.Index([]string{format.High, format.Urgent}, importance)+1)
}

// listWaiting fills in the groups of threads.
func (l *Lister) listWaiting(ctx context.Context, w *List, q Query) error {
	all, err := l.waitingMail(ctx, q.Open)
	if err != nil {
		return err
	}
	hidden, err := l.hide(ctx, w, all)
	if err != nil {
		return err
	}
	slices.SortFunc(all, func(m, n waiting) int { return m.before(&n) })
	var firsts [groups][]int // the threads' first messages, as indexes into all
	threads, totals := map[string][]int{}, [groups]int{}
	for i := range all {
		of := all[i].Thread
		if threads[of] = append(threads[of], i); len(threads[of]) > 1 {
			continue
		}
		g := all[i].group
		if totals[g]++; q.All || g != isHidden && totals[g] <= maxWaiting {
			firsts[g] = append(firsts[g], i)
		}
	}
	w.Totals = Totals{totals[isBlocked], totals[isAsked], totals[isNew], totals[isOwed]}
	var cursors []int64
	for _, i := range slices.Concat(firsts[:]...) {
		cursors = append(cursors, all[i].Cursor)
	}
	decides, err := l.decidable(ctx, all, slices.Concat(firsts[isBlocked], firsts[isAsked]))
	if err != nil {
		return err
	}
	outlines, err := l.Mail.Store.Index.Outlines(ctx, l.Mail.Slug, cursors)
	if err != nil {
		return err
	}
	for g, into := range []*[]Thread{&w.Blocked, &w.Questions, &w.New, &w.Owed, &w.Hidden} {
		*into = []Thread{}
		for _, i := range firsts[g] {
			if o, ok := outlines[all[i].Cursor]; ok { // if there is no outline, the message has since been deleted
				t := l.waitingThread(all, threads[all[i].Thread], &o)
				t.Decides, t.Until = decides[t.Message], hidden[t.Thread].Until
				*into = append(*into, t)
			}
		}
	}
	return nil
}

// decidable reports, by message id, which messages Decide can answer. places contains the messages' indexes into all.
func (l *Lister) decidable(ctx context.Context, all []waiting, places []int) (map[string]bool, error) {
	ids := make([]string, len(places))
	for i, place := range places {
		ids[i] = all[place].ID
	}
	found, err := l.Mail.Store.Index.Deliveries(ctx, l.Mail.Slug, l.Agent, ids)
	if err != nil {
		return nil, err
	}
	can := map[string]bool{}
	for i := range found {
		can[found[i].ID] = l.Decides(&found[i])
	}
	return can, nil
}

// hide moves messages to the last group if the agent has hidden their thread with Later and no newer message is waiting
// in that thread. It counts these threads in w, and returns them.
func (l *Lister) hide(ctx context.Context, w *List, all []waiting) (map[string]index.Hidden, error) {
	hidden, err := l.Mail.Store.Index.Hidden(ctx, l.Mail.Slug, l.Agent, l.Mail.Store.Now())
	if err != nil || len(hidden) == 0 {
		return nil, err
	}
	newest := map[string]int64{} // cursor of the newest waiting message, by thread
	for i := range all {
		newest[all[i].Thread] = max(newest[all[i].Thread], all[i].Cursor)
	}
	for thread, h := range hidden {
		at, waits := newest[thread]
		if !waits || at > h.Cursor {
			delete(hidden, thread)
			continue
		}
		w.Later++
		if w.LaterUntil.IsZero() || h.Until.Before(w.LaterUntil) {
			w.LaterUntil = h.Until
		}
	}
	for i := range all {
		if _, is := hidden[all[i].Thread]; is {
			all[i].group = isHidden
		}
	}
	return hidden, nil
}

// waitingThread returns the row of a thread with waiting messages. places contains the messages' indexes into all.
// The first of these messages is shown.
func (l *Lister) waitingThread(all []waiting, places []int, o *index.Outline) Thread {
	first := &all[places[0]]
	t := Thread{
		Thread:     first.Thread,
		Message:    o.ID,
		Subject:    index.WithoutRe(o.Subject),
		Importance: first.Importance,
		Why:        first.why,
		Line:       markdown.PlainText(o.Beginning),
		Messages:   o.Messages,
		Files:      o.Files,
		At:         o.Created,
	}
	mine := slices.DeleteFunc(slices.Clone(places), func(i int) bool { return first.group != isOwed && all[i].group == isOwed })
	slices.SortFunc(mine, func(i, j int) int { return cmp.Compare(all[j].Cursor, all[i].Cursor) })
	for _, i := range mine {
		m := &all[i]
		if first.group != isOwed && len(t.IDs) < maxIDs {
			t.IDs = append(t.IDs, m.ID)
		}
		if t.Waiting++; rank(m.Importance) > rank(t.Importance) {
			t.Importance = m.Importance
		}
		for _, name := range m.who {
			if !slices.Contains(t.People, name) {
				t.People = append(t.People, name)
			}
		}
	}
	if others := slices.DeleteFunc(slices.Clone(t.People), func(name string) bool { return name == l.Agent }); len(others) > 0 {
		t.People = others
	}
	if first.group == isOwed && len(t.People) > 1 {
		t.Why = strings.Replace(t.Why, "has", "have", 1)
	}
	return t
}

// waitingMail returns the messages that are waiting for the agent, and the agent's own messages that are waiting for an
// answer.
func (l *Lister) waitingMail(ctx context.Context, open bool) (all []waiting, err error) {
	due, err := l.Mail.Store.Index.Due(ctx, index.DueQuery{
		Project: l.Mail.Slug,
		Agent:   l.Agent,
		Since:   l.Mail.Store.Now().Add(-askedFor),
		Most:    maxDue,
		Open:    open,
	})
	if err != nil {
		return nil, err
	}
	var questions []int64
	var own []string // ids of the agent's questions
	for i := range due {
		if d := &due[i]; l.isQuestion(d) {
			questions = append(questions, d.Cursor)
		}
		if d := &due[i]; d.Kind == index.KindSent && (d.Asks || d.Question) {
			own = append(own, d.ID)
		}
	}
	replied, err := l.Mail.Store.Index.Replied(ctx, l.Mail.Slug, l.Agent, questions)
	if err != nil {
		return nil, err
	}
	acked, archived, err := l.settledBy(ctx, own, due)
	if err != nil {
		return nil, err
	}
	for _, d := range due {
		m := waiting{Due: d, who: []string{d.From}}
		answers, question := replied[d.Cursor], l.isQuestion(&d)
		switch {
		case d.Kind == index.KindSent && d.Asks:
			m.group, m.why, m.who = isOwed, "has not acknowledged", d.Of
		case d.Kind == index.KindSent && question && !answers.ByOthers:
			m.group, m.why, m.who = isOwed, "has not answered", l.owing(&d, acked[d.ID])
		case d.Asks && rank(d.Importance) > 0:
			m.group, m.why = isBlocked, "needs acknowledgement"
		case d.Asks:
			m.group, m.why = isAsked, "needs acknowledgement"
		case d.Kind != index.KindSent && question && !answers.ByAgent:
			m.group, m.why = isAsked, "needs an answer"
		case d.Unread:
			m.group = isNew
		default:
			continue
		}
		if m.group == isOwed {
			m.why = cmp.Or(whoArchived(m.who, archived[d.ID]), m.why)
		}
		if len(m.who) > 0 {
			all = append(all, m)
		}
	}
	return all, nil
}

// isQuestion reports whether a message is a question to the agent or by the agent. A message that requests an
// acknowledgment is not treated as a question, because it is waiting for the acknowledgment instead. A message from the
// server is not treated as a question either, because the server does not read answers.
func (l *Lister) isQuestion(d *index.Due) bool {
	to := d.Kind == "to" && d.From != l.Agent && !format.ServerName(d.From) || d.Kind == index.KindSent
	return to && !d.Asks && d.Question
}

// whoArchived returns the reason for waiting if some of the agents that owe an answer have archived the question. It
// returns "" if none of them has.
func whoArchived(owing, archived []string) string {
	for _, name := range owing {
		switch {
		case slices.Contains(archived, name) && len(owing) == 1:
			return "archived it without an answer"
		case slices.Contains(archived, name):
			return name + " archived it without an answer"
		}
	}
	return ""
}

// settledBy returns, by message id, the agents that have acknowledged the messages with the given ids, and the agents
// that have archived them without an answer. Agents in other projects are listed by their addresses.
func (l *Lister) settledBy(ctx context.Context, ids []string, due []index.Due) (acked, archived map[string][]string, err error) {
	store := l.Mail.Store
	acked, archived = map[string][]string{}, map[string][]string{}
	asked := map[string][]string{l.Mail.Slug: ids} // by project
	for i := range due {
		for _, name := range due[i].Of {
			if slug := store.PartyOf(name).Project; slug != "" && slices.Contains(ids, due[i].ID) && !slices.Contains(asked[slug], due[i].ID) {
				asked[slug] = append(asked[slug], due[i].ID)
			}
		}
	}
	for slug, ids := range asked {
		if store.Projects.Mail(slug) == nil {
			continue
		}
		receipts, err := store.Index.Receipts(ctx, slug, ids...)
		if err != nil {
			return nil, nil, err
		}
		for id, of := range receipts {
			for _, r := range of {
				name := r.Agent
				if slug != l.Mail.Slug {
					name += "@" + slug
				}
				if r.Acked {
					acked[id] = append(acked[id], name)
				}
				if r.Unanswered {
					archived[id] = append(archived[id], name)
				}
			}
		}
	}
	return acked, archived, nil
}

// owing returns the recipients that still owe the agent an answer: all except the agent itself and those that have
// acknowledged the question.
func (l *Lister) owing(d *index.Due, acked []string) []string {
	return slices.DeleteFunc(slices.Clone(d.Of), func(name string) bool { return name == l.Agent || slices.Contains(acked, name) })
}

// Decides reports whether maildir.Box.Decide can answer a message in the agent's inbox. The message must ask for an
// answer, and must be verified mail from another agent in this store. A short answer to any other message might go to
// a sender that only pretends to be that agent.
func (l *Lister) Decides(m *index.Delivery) bool {
	voucher, ok := l.Mail.Store.VerifiedIn(&m.MessageRow)
	return ok && voucher.Machine == "" && m.Door != format.DoorGateway && m.Question && m.Kind != index.KindSent && m.From != l.Agent &&
		!format.ServerName(m.From)
}

// Asking returns the threads that ask the agent for an answer or an acknowledgment, including those that the agent has
// hidden. The keys are thread ids. It returns any error from the index.
func (l *Lister) Asking(ctx context.Context) (map[string]bool, error) {
	const open = false // the agent itself reads the result
	all, err := l.waitingMail(ctx, open)
	if err != nil {
		return nil, err
	}
	asking := map[string]bool{}
	for i := range all {
		if g := all[i].group; g == isBlocked || g == isAsked {
			asking[all[i].Thread] = true
		}
	}
	return asking, nil
}
