package maildir

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"mailtree/maildir/format"
	"mailtree/maildir/index"
	"mailtree/maildir/notice"
	"mailtree/maildir/refusal"
	"mailtree/maildir/repo"
	"mailtree/maildir/writer"
)

// A ready agent is told of its mail: once of each message, however often somebody looks, and never
// while its status says anything else. Whoever sets work or offline (or takes the file away), by
// the tool or with echo, starts this anew: once ready again, it is told of what is unread then.
// What it was told of, and where it sits, is run-time state, which may be lost: then it is told
// once more. See docs/agentmail.md, "Waking an agent in tmux".

// Seat is the tmux pane that an agent last called from. The zero value is none.
type Seat = notice.Seat

// SetSeat notes where the agent calls from; the zero Seat that it does so from no pane. A pane has
// one agent, the last that called from it.
func (p *Project) SetSeat(agent string, at Seat) {
	p.store.seating.Lock() // of two who take one pane at once, each would take it from the other
	defer p.store.seating.Unlock()
	if !p.notices.Sit(agent, at) || at == (Seat{}) {
		return
	}
	for _, other := range p.store.Projects() {
		if other == p {
			other.notices.Vacate(at, agent)
		} else {
			other.notices.Vacate(at, "")
		}
	}
}

// CallsAs returns the program that the agent was registered as, "" where that cannot be told, and the
// pane that it last called from.
func (p *Project) CallsAs(ctx context.Context, agent string) (program string, from Seat) {
	if row, err := p.store.index.Agent(ctx, p.Slug, agent); err == nil && row != nil {
		program = row.Program
	}
	return program, p.notices.Of(agent).Seat
}

// Notice is unread mail that a ready agent has not been told of.
type Notice struct {
	Agent string
	New   int // messages that it has not been told of, at most notice.Most
	Seat  Seat

	unread []string  // ids, newest first
	oldest time.Time // of the last of them where there are more; zero where these are all
	away   int       // as notice.State.Away
}

// Notice returns what the agent is to be told now; nil when nothing: it is not ready, has read
// everything, or knows.
func (p *Project) Notice(ctx context.Context, agent string) (*Notice, error) {
	away := p.notices.Of(agent).Away // before its status is asked for: should that change later, this does
	row, err := p.store.index.Agent(ctx, p.Slug, agent)
	if err != nil || row == nil || row.Status != format.Ready || row.Unread == 0 {
		return nil, err
	}
	page, err := p.page(ctx, index.InboxQuery{Project: p.Slug, Agent: agent, UnreadOnly: true, Limit: notice.Most})
	if err != nil {
		return nil, err
	}
	told := p.notices.Of(agent)
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
func (p *Project) Told(n *Notice) bool {
	return p.notices.Tell(n.Agent, n.away, n.unread, n.oldest)
}

// Covers reports whether dir, an absolute path, lies in the code base that the project is for, or
// in another work tree of that repository.
func (p *Project) Covers(dir string) bool {
	if p.human == "" {
		return false
	}
	place, err := repo.PlaceOf(filepath.Clean(dir))
	if err != nil { // the next look tells
		return false
	}
	if inside(place.Path, p.human) {
		return true
	}
	real, err := filepath.EvalSymlinks(p.human)
	return err == nil && inside(place.Path, real)
}

func inside(path, dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") }

// CheckPresence refuses a word that is not exactly ready, work or offline. Errors: ErrInvalid.
// See docs/agentmail.md, "Presence".
func CheckPresence(status string) error {
	if status != format.Ready && status != format.Work && status != format.Offline {
		return &Error{What: refusal.StatusUnknown, Field: refusal.Status, Name: status}
	}
	return nil
}

// SetPresence writes the agent's status file: ready, work or offline. Errors: ErrNotFound,
// ErrInvalid.
func (p *Project) SetPresence(ctx context.Context, agent, status string) error {
	if err := CheckPresence(status); err != nil {
		return err
	}
	tx := &writer.Tx{Op: writer.Op{Verb: "presence", Agent: agent, Summary: agent + " is " + status}, Facts: []string{"presence " + agent}}
	tx.Plan = func(g *writer.Group) error {
		if err := p.needAgent(g.Ctx, refusal.Agent, agent); err != nil {
			return err
		}
		row, err := p.store.index.Agent(g.Ctx, p.Slug, agent)
		if err != nil {
			return err
		}
		if row != nil && row.Status == status {
			data, _, err := p.Tree.Read(format.StatusPath(agent), format.MaxSmall)
			if says, bad := format.ParseStatus(data); err == nil && bad == nil && says == status {
				return nil
			}
			return g.Behind(format.StatusPath(agent))
		}
		return g.Replace(tx, format.StatusPath(agent), []byte(status+"\n"))
	}
	defer p.noteSeen(ctx, agent)
	return p.Writer.Do(ctx, tx)
}

// noteStatus starts the notices of those anew whose status is not ready any more. It asks the
// index: the file may say something else again by now, which is a change of its own.
func (p *Project) noteStatus(changes []index.Change) {
	for _, c := range changes {
		if c.Kind != format.KindStatus {
			continue
		}
		// No caller's context: the changes are in the index, and nobody notes them a second time.
		row, err := p.store.index.Agent(context.Background(), p.Slug, c.Agent)
		if err != nil || row == nil || row.Status != format.Ready {
			p.notices.Forget(c.Agent)
		}
	}
}
