package maildir

import (
	"context"
	"encoding/json"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"mailtree/maildir/format"
	"mailtree/maildir/repo"
)

// A ready agent is told of its mail: once of each message, however often somebody looks, and never while its status says
// anything else. Whoever sets work or offline (or takes the file away), by the tool or with echo, starts this anew: once
// ready again, it is told of what is unread then. What it was told of, and where it sits, is run-time state, which may be
// lost: then it is told once more.
// See docs/agentmail.md, "Waking an agent in tmux".

// Seat is the tmux pane that an agent last called from. The zero value is none.
type Seat struct {
	Tmux   string `json:"tmux"`             // its $TMUX: socket, pid of the tmux server, session
	Pane   string `json:"pane"`             // its $TMUX_PANE
	Window string `json:"window,omitempty"` // the window's name, where the agent goes by that; "" where it has a name of its own
}

// SetSeat notes where the agent calls from; the zero Seat that it does so from no pane. A pane has
// one agent, the last that called from it.
func (p *Project) SetSeat(agent string, at Seat) {
	p.store.seating.Lock() // of two who take one pane at once, each would take it from the other
	defer p.store.seating.Unlock()
	if p.notices.sit(p, agent, at) && at != (Seat{}) {
		for _, other := range p.store.Projects() {
			other.notices.leaveSeat(other, at, p, agent)
		}
	}
}

// Notice is unread mail that a ready agent has not been told of.
type Notice struct {
	Agent string
	New   int // messages that it has not been told of, at most maxTold
	Seat  Seat

	unread []string  // ids, newest first
	oldest time.Time // of the last of them where there are more; zero where these are all
	away   int       // as notified.away
}

// maxTold is how many messages an agent's state names. Where there are more, those older than the
// last of them count as told.
const maxTold = MaxPage

// Notice returns what the agent is to be told now; nil when nothing: it is not ready, has read
// everything, or knows.
func (p *Project) Notice(ctx context.Context, agent string) (*Notice, error) {
	away := p.notices.of(p, agent).away // before its status is asked for: should that change later, this does
	row, err := p.store.index.Agent(ctx, p.slug, agent)
	if err != nil || row == nil || row.Status != format.Ready || row.Unread == 0 {
		return nil, err
	}
	page, err := p.page(ctx, InboxQuery{Project: p.slug, Agent: agent, UnreadOnly: true, Limit: maxTold})
	if err != nil {
		return nil, err
	}
	told := p.notices.of(p, agent)
	n := &Notice{Agent: agent, Seat: told.Seat, away: away}
	for _, d := range page.Messages {
		n.unread = append(n.unread, d.ID)
		if !slices.Contains(told.Told, d.ID) && !d.Created.Before(told.Before) {
			n.New++
		}
		if page.Next != 0 {
			n.oldest = d.Created
		}
	}
	if n.New == 0 {
		return nil, nil
	}
	return n, nil
}

// Told notes that the agent is told of what the notice says; false, and it is not to be told, where
// its status has been another than ready since.
func (p *Project) Told(n *Notice) bool { return p.notices.told(p, n) }

// Covers reports whether dir, an absolute path, lies in the code base that the project is for, or
// in another work tree of that repository.
func (p *Project) Covers(dir string) bool {
	if p.human == "" {
		return false
	}
	dir, err := repo.MainPath(filepath.Clean(dir))
	if err != nil { // the next look tells
		return false
	}
	if inside(dir, p.human) {
		return true
	}
	real, err := filepath.EvalSymlinks(p.human)
	return err == nil && inside(dir, real)
}

func inside(path, dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") }

// notified is what the run-time state says of one agent.
type notified struct {
	Seat
	Told   []string  `json:"told"`   // ids of messages that it was told of
	Before time.Time `json:"before"` // what was created earlier counts as told too

	away int // how often its status was set to another than ready, in this process
}

// notices is the run-time state of a project's agents: in memory, each change also in its file.
// Safe for concurrent use.
type notices struct {
	mu sync.Mutex
	by map[string]notified // nil: not read yet
}

func (n *notices) of(p *Project, agent string) notified {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.loadNotified(p)[agent]
}

func (n *notices) sit(p *Project, agent string, at Seat) (moved bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	s := n.loadNotified(p)[agent]
	if s.Seat == at {
		return false
	}
	s.Seat = at
	n.save(p, agent, s)
	return true
}

// leaveSeat takes the seat from everybody but the agent of project owner.
func (n *notices) leaveSeat(p *Project, at Seat, owner *Project, agent string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for name, s := range n.loadNotified(p) {
		if s.Tmux == at.Tmux && s.Pane == at.Pane && (p != owner || name != agent) {
			s.Seat = Seat{}
			n.save(p, name, s)
		}
	}
}

func (n *notices) told(p *Project, of *Notice) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	s := n.loadNotified(p)[of.Agent]
	if s.away != of.away {
		return false
	}
	for _, id := range s.Told { // what was read meanwhile may be marked unread again
		if len(of.unread) < maxTold && !slices.Contains(of.unread, id) {
			of.unread = append(of.unread, id)
		}
	}
	s.Told, s.Before = of.unread, of.oldest
	n.save(p, of.Agent, s)
	return true
}

// forget starts the agent's notices anew.
func (n *notices) forget(p *Project, agent string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	s := n.loadNotified(p)[agent]
	s.away++
	n.by[agent] = s
	if s.Told != nil {
		s.Told, s.Before = nil, time.Time{}
		n.save(p, agent, s)
	}
}

// loadNotified returns what is known, reading it once. What is damaged is as lost.
func (n *notices) loadNotified(p *Project) map[string]notified {
	if n.by != nil {
		return n.by
	}
	n.by = map[string]notified{}
	_ = p.tree.Walk(context.Background(), format.NotifiedDir, func(file string, d fs.DirEntry) error {
		var s notified
		if data, _, err := p.tree.Read(file, format.MaxSmall); err == nil && json.Unmarshal(data, &s) == nil && format.ValidName(d.Name()) {
			n.by[d.Name()] = s
		}
		return nil
	})
	return n.by
}

func (n *notices) save(p *Project, agent string, s notified) {
	if !format.ValidName(agent) {
		return
	}
	n.by[agent] = s
	data, err := json.Marshal(s)
	if err == nil {
		err = p.tree.WriteRun(format.NotifiedDir+"/"+agent, data)
	}
	if err != nil {
		p.store.cfg.Log.Warn("what an agent was told of is not on disk: it may be told again after the next start",
			"project", p.slug, "agent", agent, "error", err)
	}
}

// noteStatus starts the notices of those anew whose status is not ready any more. It asks the
// index: the file may say something else again by now, which is a change of its own.
func (p *Project) noteStatus(changes []Change) {
	for _, c := range changes {
		if c.Kind != format.KindStatus {
			continue
		}
		row, err := p.store.index.Agent(context.Background(), p.slug, c.Agent)
		if err != nil || row == nil || row.Status != format.Ready {
			p.notices.forget(p, c.Agent)
		}
	}
}
