package maildir

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"mailtree/maildir/core"
	"mailtree/maildir/dismissed"
	"mailtree/maildir/format"
	"mailtree/maildir/index"
	"mailtree/maildir/markdown"
)

// Waits lists what is waiting for an agent in a project, in the order in which the agent should read it. The command
// line and the page show this list. Clients' sessions instead get one notice for each message: see Tell.
type Waits struct {
	Project string `json:"project"` // its slug; "" for all projects
	Agent   string `json:"agent"`   // need not exist; if not, only Stopped and the fields below it are filled

	Prompts []Prompt `json:"prompts"` // agents whose clients ask for permission; they belong to the first group

	// Groups of threads, at most maxWaiting threads each unless the query says All. Urgent threads come first, then
	// threads of high importance, then the newest. A thread is in the first group that it fits.
	Blocked   []WaitingThread `json:"blocked_on_you"`    // urgent and important mail that needs the agent's acknowledgement
	Questions []WaitingThread `json:"questions"`         // other mail that asks for the agent's acknowledgement or answer
	New       []WaitingThread `json:"new"`               // other unread mail
	Owed      []WaitingThread `json:"waiting_on_others"` // others owe the agent an acknowledgement or an answer
	Totals    WaitTotals      `json:"totals"`

	// Threads that the agent has hidden with Later are in no group.
	Later      int       `json:"later,omitempty"`
	LaterUntil time.Time `json:"later_until,omitzero"` // when the first of them appears again

	Unread int `json:"unread"` // number of all unread messages

	// Alone means that the project has only users' agents, and that this agent has never received or sent mail.
	Alone bool `json:"alone,omitempty"`

	Stopped    []Stop           `json:"stopped"`               // other agents whose work was blocked by claims
	Asleep     []Unwoken        `json:"asleep"`                // agents with unread mail that cannot be woken
	Held       []Held           `json:"held"`                  // agents that somebody holds
	Broken     []format.Problem `json:"broken"`                // the first 50 invalid files
	MoreBroken int              `json:"more_broken,omitempty"` // number of other invalid files

	Invalid int `json:"invalid"` // number of all invalid files, dismissed or not

	LeftOut map[string]string `json:"left_out,omitempty"` // why other projects could not be opened, by slug
}

// WaitTotals counts the threads in the groups of Waits, listed or not. It considers the newest 1,000 messages of each
// kind.
type WaitTotals struct {
	Blocked   int `json:"blocked_on_you"` // without Waits.Prompts
	Questions int `json:"questions"`
	New       int `json:"new"`
	Owed      int `json:"waiting_on_others"`
}

// More returns the number of threads that are not listed.
func (w *Waits) More() (n int) {
	for _, g := range w.Groups() {
		n += g.Total - len(g.Threads)
	}
	return n
}

// BrokenFiles returns the number of invalid files that are not dismissed, listed or not.
func (w *Waits) BrokenFiles() int { return len(w.Broken) + w.MoreBroken }

// OwedGroup is the ID of the group of threads in which others owe the agent something.
const OwedGroup = "owed"

// WaitGroup is a group of Waits as commands and the page show it.
type WaitGroup struct {
	ID, Title string
	Prompts   []Prompt
	Threads   []WaitingThread
	Total     int // number of threads, listed or not
}

// Groups returns the groups in their order, including empty ones.
func (w *Waits) Groups() []WaitGroup {
	return []WaitGroup{
		{"blocked", "Blocked on you", w.Prompts, w.Blocked, w.Totals.Blocked},
		{"questions", "Questions", nil, w.Questions, w.Totals.Questions},
		{"new", "New", nil, w.New, w.Totals.New},
		{OwedGroup, "Waiting on others", nil, w.Owed, w.Totals.Owed},
	}
}

// Mail returns the threads that wait for the agent, in the order of their groups.
func (w *Waits) Mail() []WaitingThread { return slices.Concat(w.Blocked, w.Questions, w.New) }

// WaitsQuery selects what Waits lists.
type WaitsQuery struct {
	Open bool // omit the bcc recipients that the agent is waiting for, because some readers must not see them (Invariant I7)
	All  bool // list all threads of a group, not only the first maxWaiting
}

// WaitingThread is a thread with waiting messages.
type WaitingThread struct {
	Project string `json:"project,omitempty"` // in a list of all projects: the slug
	Thread  string `json:"thread_id"`
	Message string `json:"message_id"` // the most urgent, then newest, waiting message; for Owed the agent's own
	Subject string `json:"subject"`    // the subject of the thread's first message, without "Re:"

	// People are the authors of the waiting messages, newest first. The agent itself is listed only if there is no
	// other author. For Owed, People are the agents that owe an acknowledgement or an answer.
	People     []string `json:"people"`
	Importance string   `json:"importance"` // the highest importance of the waiting messages

	// Why is "needs acknowledgement", "needs an answer", "has not acknowledged" or "has not answered". The last two
	// also occur with "have" instead of "has". If an agent has archived the question, Why ends in "archived it without
	// an answer". Why is "" for mail that is merely new.
	Why string `json:"why"`

	// Decides says that Box.Decide can answer the message with yes or no.
	Decides bool `json:"yes_no,omitempty"`

	Line     string    `json:"line"`     // the beginning of the message's text, without markup, on one line
	Messages int       `json:"messages"` // in the thread
	Waiting  int       `json:"waiting"`  // how many of the messages are waiting
	Files    int       `json:"files"`    // number of attachments in the thread
	At       time.Time `json:"at"`       // when the message was created

	IDs []string `json:"waiting_ids,omitempty"` // ids of the waiting messages, at most maxIDs; nil for Owed
}

// Limits of Waits.
const (
	askedFor   = 14 * 24 * time.Hour // how long a question stays listed after it was read, or if it is the agent's own
	maxWaiting = 50                  // threads in a group, and invalid files
	maxIDs     = 50                  // WaitingThread.IDs
	maxDue     = 1000                // how many of the newest messages of each kind are checked
)

// Waits returns what is waiting for the agent. It sets no marks. No list in the result is nil.
//
// A message is waiting for an answer if it is a question to the agent, and the agent has neither acknowledged nor
// archived it, nor written in its thread since. The agent's own question is waiting until another agent has written in
// the thread.
func (b *Box) Waits(ctx context.Context, q WaitsQuery) (*Waits, error) {
	w := &Waits{Project: b.p.mail.Slug, Agent: b.agent, Prompts: b.p.Sessions.Prompts(), Stopped: []Stop{}, Asleep: []Unwoken{},
		Held: []Held{}}
	counts, err := b.Counts(ctx)
	if err != nil {
		return nil, err
	}
	w.Unread = counts.Unread
	if counts.Total+counts.Sent == 0 {
		agents, err := b.p.mail.Store.Index.AgentsAfter(ctx, b.p.mail.Slug, "", maxWaiting)
		if err != nil {
			return nil, err
		}
		w.Alone = !slices.ContainsFunc(agents, func(a index.AgentRow) bool { return a.Program != core.PersonProgram })
	}
	if err := b.listWaiting(ctx, w, q); err != nil {
		return nil, err
	}
	stopped, asleep, err := b.stuck(ctx)
	if err != nil {
		return nil, err
	}
	gone, err := dismissed.Read(b.p.mail.Tree, b.agent)
	if err != nil {
		return nil, err
	}
	w.Stopped, w.Asleep = append(w.Stopped, stopped...), append(w.Asleep, asleep...)
	if w.Held, err = b.p.Holds.List(ctx); err != nil {
		return nil, err
	}
	broken, err := b.p.mail.Store.Index.Problems(ctx, b.p.mail.Slug, maxWaiting+len(gone))
	if err != nil {
		return nil, err
	}
	listed := len(broken)
	w.Broken = slices.DeleteFunc(broken, func(p format.Problem) bool { return gone.Has(keyOfProblem(&p)) })
	w.Invalid, err = b.p.CountProblems(ctx)
	w.MoreBroken = w.Invalid - listed + max(0, len(w.Broken)-maxWaiting)
	w.Broken = w.Broken[:min(len(w.Broken), maxWaiting)]
	for slug, why := range b.p.mail.Store.Projects.LeftOut() {
		if w.LeftOut == nil {
			w.LeftOut = map[string]string{}
		}
		w.LeftOut[slug] = why.Error()
	}
	return w, err
}

// WaitsEverywhere is like Box.Waits, for all projects of the store. Each thread and each prompt has its project's slug.
func (s *Store) WaitsEverywhere(ctx context.Context, agent string, q WaitsQuery) (*Waits, error) {
	var each []*Waits
	for _, p := range s.Projects() {
		w, err := p.Box(agent, format.Origin{}).Waits(ctx, q)
		if err != nil {
			return nil, fmt.Errorf("what waits in project %s: %w", p.Slug, err)
		}
		each = append(each, w)
	}
	return WaitsTogether(agent, each, q), nil
}

// WaitsTogether makes one list of what is waiting for an agent in several projects. It does not change the lists in each.
func WaitsTogether(agent string, each []*Waits, q WaitsQuery) *Waits {
	all := &Waits{
		Agent: agent, Prompts: []Prompt{}, Blocked: []WaitingThread{}, Questions: []WaitingThread{}, New: []WaitingThread{},
		Owed: []WaitingThread{}, Stopped: []Stop{}, Asleep: []Unwoken{}, Held: []Held{}, Broken: []format.Problem{},
	}
	for _, w := range each {
		all.add(w)
	}
	for _, group := range []*[]WaitingThread{&all.Blocked, &all.Questions, &all.New, &all.Owed} {
		slices.SortStableFunc(*group, func(a, b WaitingThread) int {
			return cmp.Or(cmp.Compare(rank(b.Importance), rank(a.Importance)), b.At.Compare(a.At))
		})
		if !q.All {
			*group = (*group)[:min(len(*group), maxWaiting)]
		}
	}
	slices.SortStableFunc(all.Prompts, func(a, b Prompt) int { return a.Since.Compare(b.Since) })
	return all
}

// add adds what waits in one project to a list of all projects.
func (w *Waits) add(of *Waits) {
	for _, p := range of.Prompts {
		p.Project = of.Project
		w.Prompts = append(w.Prompts, p)
	}
	into := []*[]WaitingThread{&w.Blocked, &w.Questions, &w.New, &w.Owed}
	for i, g := range of.Groups() {
		for _, t := range g.Threads {
			t.Project = of.Project
			*into[i] = append(*into[i], t)
		}
	}
	w.Totals.Blocked += of.Totals.Blocked
	w.Totals.Questions += of.Totals.Questions
	w.Totals.New += of.Totals.New
	w.Totals.Owed += of.Totals.Owed
	w.Unread += of.Unread
	if w.Later += of.Later; of.Later > 0 && (w.LaterUntil.IsZero() || of.LaterUntil.Before(w.LaterUntil)) {
		w.LaterUntil = of.LaterUntil
	}
	for _, h := range of.Held {
		h.Project = of.Project
		w.Held = append(w.Held, h)
	}
	w.Stopped, w.Asleep, w.Broken = append(w.Stopped, of.Stopped...), append(w.Asleep, of.Asleep...), append(w.Broken, of.Broken...)
	w.MoreBroken += of.MoreBroken
	w.Invalid += of.Invalid
	w.LeftOut = of.LeftOut // the same for all projects
}

// group is the reason why a message is waiting. A thread is in the lowest group of its messages.
type group int

const (
	isBlocked group = iota
	isAsked
	isNew
	isOwed
	groups
)

// waiting describes a waiting message.
type waiting struct {
	index.Due
	group group
	why   string
	who   []string // for WaitingThread.People
}

// before compares messages by group, then by importance, then by age, newest first.
func (m *waiting) before(n *waiting) int {
	return cmp.Or(cmp.Compare(m.group, n.group), cmp.Compare(rank(n.Importance), rank(m.Importance)), cmp.Compare(n.Cursor, m.Cursor))
}

// rank returns the sort order of an importance level. Low and normal have the same rank.
func rank(importance string) int {
	return max(0, slices.Index([]string{format.High, format.Urgent}, importance)+1)
}

// listWaiting fills in the groups of threads.
func (b *Box) listWaiting(ctx context.Context, w *Waits, q WaitsQuery) error {
	all, err := b.waitingMail(ctx, q.Open)
	if err != nil {
		return err
	}
	if all, err = b.withoutHidden(ctx, w, all); err != nil {
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
		if totals[g]++; q.All || totals[g] <= maxWaiting {
			firsts[g] = append(firsts[g], i)
		}
	}
	w.Totals = WaitTotals{totals[isBlocked], totals[isAsked], totals[isNew], totals[isOwed]}
	var cursors []int64
	for _, i := range slices.Concat(firsts[:]...) {
		cursors = append(cursors, all[i].Cursor)
	}
	decides, err := b.decidable(ctx, all, slices.Concat(firsts[isBlocked], firsts[isAsked]))
	if err != nil {
		return err
	}
	outlines, err := b.p.mail.Store.Index.Outlines(ctx, b.p.mail.Slug, cursors)
	if err != nil {
		return err
	}
	for g, into := range []*[]WaitingThread{&w.Blocked, &w.Questions, &w.New, &w.Owed} {
		*into = []WaitingThread{}
		for _, i := range firsts[g] {
			if o, ok := outlines[all[i].Cursor]; ok { // otherwise it was deleted in the meantime
				t := b.waitingThread(all, threads[all[i].Thread], &o)
				t.Decides = decides[t.Message]
				*into = append(*into, t)
			}
		}
	}
	return nil
}

// decidable returns the ids of the messages at some places of all that Decide can answer.
func (b *Box) decidable(ctx context.Context, all []waiting, places []int) (map[string]bool, error) {
	ids := make([]string, len(places))
	for i, place := range places {
		ids[i] = all[place].ID
	}
	found, err := b.p.mail.Store.Index.Deliveries(ctx, b.p.mail.Slug, b.agent, ids)
	if err != nil {
		return nil, err
	}
	can := map[string]bool{}
	for i := range found {
		can[found[i].ID] = b.Decides(&found[i])
	}
	return can, nil
}

// withoutHidden removes the threads that the agent has hidden with Later and in which nothing newer is waiting. It counts
// these threads.
func (b *Box) withoutHidden(ctx context.Context, w *Waits, all []waiting) ([]waiting, error) {
	hidden, err := b.p.mail.Store.Index.Hidden(ctx, b.p.mail.Slug, b.agent, b.p.mail.Store.Now())
	if err != nil || len(hidden) == 0 {
		return all, err
	}
	newest := map[string]int64{} // by thread: the cursor of the newest waiting message
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
	return slices.DeleteFunc(all, func(m waiting) bool { return !hidden[m.Thread].Until.IsZero() }), nil
}

// waitingThread returns the row of a thread with waiting messages. The argument places holds the messages' indexes into
// all; the first message is shown.
func (b *Box) waitingThread(all []waiting, places []int, o *index.Outline) WaitingThread {
	first := &all[places[0]]
	t := WaitingThread{
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
	if others := slices.DeleteFunc(slices.Clone(t.People), func(name string) bool { return name == b.agent }); len(others) > 0 {
		t.People = others
	}
	if first.group == isOwed && len(t.People) > 1 {
		t.Why = strings.Replace(t.Why, "has", "have", 1)
	}
	return t
}

// waitingMail returns the messages that are waiting for the agent, and the messages to which the agent is waiting for
// an answer.
func (b *Box) waitingMail(ctx context.Context, open bool) (all []waiting, err error) {
	due, err := b.p.mail.Store.Index.Due(ctx, index.DueQuery{
		Project: b.p.mail.Slug,
		Agent:   b.agent,
		Since:   b.p.mail.Store.Now().Add(-askedFor),
		Most:    maxDue,
		Open:    open,
	})
	if err != nil {
		return nil, err
	}
	var questions []int64
	var own []string // ids of the agent's questions
	for i := range due {
		if d := &due[i]; b.isQuestion(d) {
			questions = append(questions, d.Cursor)
		}
		if d := &due[i]; d.Kind == index.KindSent && (d.Asks || d.Question) {
			own = append(own, d.ID)
		}
	}
	replied, err := b.p.mail.Store.Index.Replied(ctx, b.p.mail.Slug, b.agent, questions)
	if err != nil {
		return nil, err
	}
	acked, archived, err := b.settledBy(ctx, own, due)
	if err != nil {
		return nil, err
	}
	for _, d := range due {
		m := waiting{Due: d, who: []string{d.From}}
		answers, question := replied[d.Cursor], b.isQuestion(&d)
		switch {
		case d.Kind == index.KindSent && d.Asks:
			m.group, m.why, m.who = isOwed, "has not acknowledged", d.Of
		case d.Kind == index.KindSent && question && !answers.ByOthers:
			m.group, m.why, m.who = isOwed, "has not answered", b.owing(&d, acked[d.ID])
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
// acknowledgement is not treated as a question, because it is waiting for the acknowledgement. Nor is a message from the
// server, because nobody reads answers to it.
func (b *Box) isQuestion(d *index.Due) bool {
	to := d.Kind == "to" && d.From != b.agent && !format.ServerName(d.From) || d.Kind == index.KindSent
	return to && !d.Asks && d.Question
}

// whoArchived returns the reason for waiting if some of the agents that owe an answer have archived the question. It
// returns "" if none has.
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

// settledBy returns who has acknowledged the agent's messages with the given ids, and who has archived them without an
// answer, by id. Agents of other projects are listed by their addresses.
func (b *Box) settledBy(ctx context.Context, ids []string, due []index.Due) (acked, archived map[string][]string, err error) {
	store := b.p.mail.Store
	acked, archived = map[string][]string{}, map[string][]string{}
	asked := map[string][]string{b.p.mail.Slug: ids} // by project
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
				if slug != b.p.mail.Slug {
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

// owing returns the recipients from whom the agent has requested an acknowledgement but not yet received it.
func (b *Box) owing(d *index.Due, acked []string) []string {
	return slices.DeleteFunc(slices.Clone(d.Of), func(name string) bool { return name == b.agent || slices.Contains(acked, name) })
}
