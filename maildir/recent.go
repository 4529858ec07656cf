package maildir

import (
	"cmp"
	"context"
	"slices"
	"time"

	"mailtree/maildir/core"
	"mailtree/maildir/index"
)

// Recent lists what users are most likely to want when they open the store.
type Recent struct {
	Agents  []RecentAgent  // the most recently active agent first
	Threads []RecentThread // the thread with the newest message first
}

// RecentAgent is a recently active agent.
type RecentAgent struct {
	Project *Project
	Name    string
	seen    time.Time // zero if the agent has not been active since this server started
}

// RecentThread is a thread that contains one of the newest messages.
type RecentThread struct {
	Project *Project
	ID      string
	Subject string // the newest message's subject
}

// recentMessages is the number of newest messages that Recent reads to find threads and senders.
const recentMessages = 200

// Recent returns up to limit agents and up to limit threads from all projects. A thread is in several projects if
// messages were sent between them; Recent lists such a thread only once. Agents that have been active since the server
// started come first, and the senders of the newest messages follow.
func (s *Store) Recent(ctx context.Context, limit int) (*Recent, error) {
	messages, err := s.core.Index.Newest(ctx, recentMessages)
	if err != nil {
		return nil, err
	}
	r := &Recent{}
	var agents []RecentAgent
	for _, p := range s.Projects() {
		agents = append(agents, p.seenHere()...)
	}
	slices.SortFunc(agents, func(a, b RecentAgent) int { return cmp.Or(b.seen.Compare(a.seen), cmp.Compare(a.Name, b.Name)) })
	same := copiedThreads(messages)
	for i := range messages {
		m := &messages[i]
		p := s.known(m.Project)
		if p == nil {
			continue
		}
		agents = append(agents, RecentAgent{Project: p, Name: m.From})
		in := same.of(threadIn{m.Project, cmp.Or(m.ThreadID, m.ID)})
		t := RecentThread{Project: s.known(in.slug), ID: in.thread, Subject: m.Subject}
		listed := slices.ContainsFunc(r.Threads, func(o RecentThread) bool { return o.Project == t.Project && o.ID == t.ID })
		if t.Project != nil && !listed && len(r.Threads) < limit {
			r.Threads = append(r.Threads, t)
		}
	}
	for _, a := range agents {
		if len(r.Agents) == limit {
			break
		}
		if slices.ContainsFunc(r.Agents, func(o RecentAgent) bool { return o.Project == a.Project && o.Name == a.Name }) {
			continue
		}
		there, err := a.Project.mail.HasAgent(ctx, a.Name)
		if err != nil {
			return nil, err
		}
		if there {
			r.Agents = append(r.Agents, a)
		}
	}
	return r, nil
}

// threadIn identifies a thread in a project.
type threadIn struct{ slug, thread string }

// copies maps a thread to the thread in another project that contains the same messages.
type copies map[threadIn]threadIn

// of returns the thread that represents t in lists. If t is not a copy, of returns t itself.
func (c copies) of(t threadIn) threadIn {
	for next, is := c[t]; is; next, is = c[t] {
		t = next
	}
	return t
}

// copiedThreads finds threads that are in several projects because one of the given messages was sent from one project
// to another. Lists show each of these threads only once, in the project from which the newest such message was sent.
func copiedThreads(messages []index.MessageRow) copies {
	home := map[string]threadIn{} // for each message, the thread in the sender's project
	at := func(m *index.MessageRow) threadIn { return threadIn{m.Project, cmp.Or(m.ThreadID, m.ID)} }
	for i := range messages {
		if m := &messages[i]; core.IsAgent(m.From) {
			home[m.ID] = at(m)
		}
	}
	same := copies{}
	for i := range messages {
		m := &messages[i]
		own, known := home[m.ID]
		if t := same.of(at(m)); known && own.thread == at(m).thread && t != same.of(own) {
			same[t] = same.of(own)
		}
	}
	return same
}

// seenHere lists the agents of the project that have been active since this server started.
func (p *Project) seenHere() (all []RecentAgent) {
	for name, last := range p.mail.SeenHere() {
		all = append(all, RecentAgent{p, name, last})
	}
	return all
}
