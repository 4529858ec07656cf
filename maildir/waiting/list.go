// Package waiting lists what is waiting for an agent, and which agents are stuck. Commands and the page show its
// lists.
package waiting

import (
	"cmp"
	"context"
	"slices"
	"time"

	"mailtree/maildir/claims"
	"mailtree/maildir/core"
	"mailtree/maildir/dismissed"
	"mailtree/maildir/format"
	"mailtree/maildir/holds"
	"mailtree/maildir/index"
	"mailtree/maildir/wake"
)

// Lister lists what is waiting for one agent in one project. It is safe for concurrent use.
type Lister struct {
	Mail     *core.Mail
	Claims   *claims.Claims
	Sessions *wake.Sessions
	Holds    *holds.Holds
	Agent    string
}

// List lists what is waiting for an agent in a project, in the order in which the agent should read it. The command
// line and the page show this list. Clients' sessions instead get one notice for each message. See Tell.
type List struct {
	Project string `json:"project"` // slug of the project; empty for all projects
	Agent   string `json:"agent"`   // name of the agent; if there is no such agent, only Stopped and the fields below it are set

	Prompts []wake.Prompt `json:"prompts"` // permission prompts of the agents' clients, which belong to the first group

	// The following are groups of threads, with at most maxWaiting threads each unless Query.All is set. Urgent threads
	// come first, then threads of high importance, then the newest. A thread is in the first group that it fits.
	Blocked   []Thread `json:"blocked_on_you"`    // urgent and important mail that needs the agent's acknowledgment
	Questions []Thread `json:"questions"`         // other mail that asks for the agent's acknowledgment or answer
	New       []Thread `json:"new"`               // other unread mail
	Owed      []Thread `json:"waiting_on_others"` // threads in which other agents owe the agent an answer
	Totals    Totals   `json:"totals"`

	// Later is the number of threads that the agent has hidden with maildir.Box.Later. They are not in the groups
	// above.
	Later      int       `json:"later,omitempty"`
	LaterUntil time.Time `json:"later_until,omitzero"` // when the first hidden thread appears again
	Hidden     []Thread  `json:"hidden"`               // the hidden threads; filled only if Query.All is set

	Unread int `json:"unread"` // number of all unread messages

	// Alone means that the project has only users' agents, and that this agent has never received or sent mail.
	Alone bool `json:"alone,omitempty"`

	Stopped    []claims.Stop    `json:"stopped"`               // other agents whose work was blocked by claims
	Asleep     []wake.Unwoken   `json:"asleep"`                // agents with unread mail that cannot be woken
	Held       []holds.Held     `json:"held"`                  // agents that are on hold
	Broken     []format.Problem `json:"broken"`                // the first 50 invalid files
	MoreBroken int              `json:"more_broken,omitempty"` // number of invalid files that are not in Broken

	Invalid int `json:"invalid"` // total number of invalid files, dismissed or not

	LeftOut map[string]string `json:"left_out,omitempty"` // why other projects could not be opened, by slug
}

// Totals counts the threads in the groups of List, including threads that are not listed. It considers the newest
// 1,000 messages of each kind.
type Totals struct {
	Blocked   int `json:"blocked_on_you"` // does not include List.Prompts
	Questions int `json:"questions"`
	New       int `json:"new"`
	Owed      int `json:"waiting_on_others"`
}

// More returns the number of threads that are not listed.
func (w *List) More() (n int) {
	for _, g := range w.Groups() {
		n += g.Total - len(g.Threads)
	}
	return n
}

// BrokenFiles returns the number of invalid files that are not dismissed, including files that are not listed.
func (w *List) BrokenFiles() int { return len(w.Broken) + w.MoreBroken }

// These are the IDs of two groups: the threads in which other agents owe the agent something, and List.Hidden.
const (
	OwedID   = "owed"
	HiddenID = "hidden"
)

// Group is one group in a List, in the form shown by commands and on the page.
type Group struct {
	ID, Title string
	Prompts   []wake.Prompt
	Threads   []Thread
	Total     int // number of threads, including threads that are not listed
}

// Groups returns the groups in order, including empty groups. It omits the group of hidden threads if there are none.
func (w *List) Groups() []Group {
	all := []Group{
		{"blocked", "Blocked on you", w.Prompts, w.Blocked, w.Totals.Blocked},
		{"questions", "Questions", nil, w.Questions, w.Totals.Questions},
		{"new", "New", nil, w.New, w.Totals.New},
		{OwedID, "Waiting on others", nil, w.Owed, w.Totals.Owed},
	}
	if len(w.Hidden) > 0 {
		all = append(all, Group{HiddenID, "Hidden until later", nil, w.Hidden, len(w.Hidden)})
	}
	return all
}

// Mail returns the threads that are waiting for the agent, in the order of their groups.
func (w *List) Mail() []Thread { return slices.Concat(w.Blocked, w.Questions, w.New) }

// Query contains the options of Lister.List.
type Query struct {
	Open bool // omit bcc recipients that the agent is waiting for, because the reader must not see them (Invariant I7)
	All  bool // list the hidden threads, and all threads of each group instead of only the first maxWaiting
}

// Thread is a thread with waiting messages.
type Thread struct {
	Project string `json:"project,omitempty"` // slug; set only in a list of all projects
	Thread  string `json:"thread_id"`
	// Message is the id of the most urgent waiting message. If several are equally urgent, it is the id of the newest
	// one. For Owed, it is the id of the agent's own message.
	Message string `json:"message_id"`
	Subject string `json:"subject"` // the subject of the thread's first message, without "Re:"

	// People are the authors of the waiting messages, newest first. The agent itself is listed only if there is no
	// other author. For Owed, People are the agents that owe an acknowledgment or an answer.
	People     []string `json:"people"`
	Importance string   `json:"importance"` // the highest importance of the waiting messages

	// Why is "needs acknowledgement", "needs an answer", "has not acknowledged" or "has not answered". The last two
	// also occur with "have" instead of "has". If an agent has archived the question, Why ends in "archived it without
	// an answer". Why is "" for mail that is merely new.
	Why string `json:"why"`

	Until time.Time `json:"until,omitzero"` // in List.Hidden: when the thread appears again

	// Decides reports whether maildir.Box.Decide can answer the message with yes or no.
	Decides bool `json:"yes_no,omitempty"`

	Line     string    `json:"line"`     // the beginning of the message's text, without markup, on one line
	Messages int       `json:"messages"` // number of messages in the thread
	Waiting  int       `json:"waiting"`  // number of waiting messages
	Files    int       `json:"files"`    // number of attachments in the thread
	At       time.Time `json:"at"`       // when the message was created

	IDs []string `json:"waiting_ids,omitempty"` // ids of the waiting messages, at most maxIDs; nil for Owed
}

// These are the limits of List.
const (
	askedFor   = 14 * 24 * time.Hour // maximum age of a listed question that the agent has read or asked
	maxWaiting = 50                  // maximum number of threads in a group, and of invalid files
	maxIDs     = 50                  // maximum length of Thread.IDs
	maxDue     = 1000                // maximum number of messages of each kind to check, newest first
)

// List returns what is waiting for the agent. It sets no marks. No list in the result is nil.
//
// A message is waiting for an answer if it is a question to the agent, and the agent has neither acknowledged nor
// archived it, nor written in its thread since. The agent's own question is waiting until another agent that
// received it, or that replies to it, has written in the thread.
func (l *Lister) List(ctx context.Context, q Query) (*List, error) {
	w := &List{Project: l.Mail.Slug, Agent: l.Agent, Prompts: l.Sessions.Prompts(), Stopped: []claims.Stop{}, Asleep: []wake.Unwoken{},
		Held: []holds.Held{}}
	counts, err := l.Mail.Store.Index.Counts(ctx, l.Mail.Slug, l.Agent)
	if err != nil {
		return nil, err
	}
	w.Unread = counts.Unread
	if counts.Total+counts.Sent == 0 {
		agents, err := l.Mail.Store.Index.AgentsAfter(ctx, l.Mail.Slug, "", maxWaiting)
		if err != nil {
			return nil, err
		}
		w.Alone = !slices.ContainsFunc(agents, func(a index.AgentRow) bool { return a.Program != core.PersonProgram })
	}
	if err := l.listWaiting(ctx, w, q); err != nil {
		return nil, err
	}
	stopped, asleep, err := l.Stuck(ctx)
	if err != nil {
		return nil, err
	}
	gone, err := dismissed.Read(l.Mail.Tree, l.Agent)
	if err != nil {
		return nil, err
	}
	w.Stopped, w.Asleep = append(w.Stopped, stopped...), append(w.Asleep, asleep...)
	if w.Held, err = l.Holds.List(ctx); err != nil {
		return nil, err
	}
	broken, err := l.Mail.Store.Problems(ctx, l.Mail.Slug, maxWaiting+len(gone))
	if err != nil {
		return nil, err
	}
	listed := len(broken)
	w.Broken = slices.DeleteFunc(broken, func(p format.Problem) bool { return gone.Has(keyOfProblem(&p)) })
	w.Invalid, err = l.Mail.Store.Index.CountProblems(ctx, l.Mail.Slug)
	w.MoreBroken = w.Invalid - listed + max(0, len(w.Broken)-maxWaiting)
	w.Broken = w.Broken[:min(len(w.Broken), maxWaiting)]
	for slug, why := range l.Mail.Store.Projects.LeftOut() {
		if w.LeftOut == nil {
			w.LeftOut = map[string]string{}
		}
		w.LeftOut[slug] = why.Error()
	}
	return w, err
}

// Together combines an agent's lists from several projects into one list. Each entry, except a broken file, gets its
// project's slug. Together does not modify its arguments.
func Together(agent string, each []*List, q Query) *List {
	all := &List{
		Agent: agent, Prompts: []wake.Prompt{}, Blocked: []Thread{}, Questions: []Thread{}, New: []Thread{},
		Owed: []Thread{}, Hidden: []Thread{}, Stopped: []claims.Stop{}, Asleep: []wake.Unwoken{}, Held: []holds.Held{},
		Broken: []format.Problem{},
	}
	for _, w := range each {
		all.add(w)
	}
	for _, group := range []*[]Thread{&all.Blocked, &all.Questions, &all.New, &all.Owed} {
		slices.SortStableFunc(*group, func(a, b Thread) int {
			return cmp.Or(cmp.Compare(rank(b.Importance), rank(a.Importance)), b.At.Compare(a.At))
		})
		if !q.All {
			*group = (*group)[:min(len(*group), maxWaiting)]
		}
	}
	slices.SortStableFunc(all.Prompts, func(a, b wake.Prompt) int { return a.Since.Compare(b.Since) })
	return all
}

// add adds one project's list to a list of all projects.
func (w *List) add(of *List) {
	for _, p := range of.Prompts {
		p.Project = of.Project
		w.Prompts = append(w.Prompts, p)
	}
	for _, h := range of.Held {
		h.Project = of.Project
		w.Held = append(w.Held, h)
	}
	into := []*[]Thread{&w.Blocked, &w.Questions, &w.New, &w.Owed, &w.Hidden}
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
	stopped, asleep := InProject(of.Project, of.Stopped, of.Asleep)
	w.Stopped, w.Asleep, w.Broken = append(w.Stopped, stopped...), append(w.Asleep, asleep...), append(w.Broken, of.Broken...)
	w.MoreBroken += of.MoreBroken
	w.Invalid += of.Invalid
	w.LeftOut = of.LeftOut // every project's list has the same LeftOut
}

// InProject returns copies of stopped and asleep in which each entry names its project, for a list of all projects.
func InProject(slug string, stopped []claims.Stop, asleep []wake.Unwoken) ([]claims.Stop, []wake.Unwoken) {
	stopped, asleep = slices.Clone(stopped), slices.Clone(asleep)
	for i := range stopped {
		stopped[i].Project = slug
	}
	for i := range asleep {
		asleep[i].Project = slug
	}
	return stopped, asleep
}
