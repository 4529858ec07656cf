package maildir

import (
	"context"
	"strings"
	"sync"

	"mailtree/maildir/format"
	"mailtree/maildir/index"
)

// feed wakes callers that wait for changes. It carries no changes itself: they read from the index what was
// recorded after a mark, so a slow reader loses nothing.
type feed struct {
	mu     sync.Mutex
	all    chan struct{}
	agents map[string]chan struct{} // by slug + "/" + agent
	idle   chan struct{}
}

func newFeed() *feed {
	return &feed{all: make(chan struct{}), agents: map[string]chan struct{}{}, idle: make(chan struct{})}
}

func (f *feed) ring(changes []index.Change) {
	f.mu.Lock()
	defer f.mu.Unlock()
	close(f.all)
	f.all = make(chan struct{})
	for _, c := range changes {
		f.wake(c.Project, c.Agent)
		f.wake(c.Project, anyAgent)
		if c.Kind == format.KindCanonical && c.Op != index.Added { // any inbox may have the message, and the change does not say which
			for k := range f.agents {
				if slug, name, _ := strings.Cut(k, "/"); slug == c.Project {
					f.wake(slug, name)
				}
			}
		}
	}
}

// ringAgent wakes callers that wait for one agent's mail.
func (f *feed) ringAgent(slug, name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.wake(slug, name)
}

// ringIdle wakes callers that wait for the end of a turn.
func (f *feed) ringIdle() {
	f.mu.Lock()
	defer f.mu.Unlock()
	close(f.idle)
	f.idle = make(chan struct{})
}

// TurnEnded returns a channel that is closed when a turn ends next in a session of any project.
func (s *Store) TurnEnded() <-chan struct{} {
	s.feed.mu.Lock()
	defer s.feed.mu.Unlock()
	return s.feed.idle
}

func (f *feed) wake(slug, name string) {
	k := slug + "/" + name
	if b, ok := f.agents[k]; ok {
		close(b)
		delete(f.agents, k)
	}
}

// any returns a channel that is closed at the next change.
func (f *feed) any() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.all
}

// agent returns a channel that is closed at the next change below that agent's folder, or of an existing
// message.
func (f *feed) agent(slug, name string) <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	k := slug + "/" + name
	b, ok := f.agents[k]
	if !ok {
		b = make(chan struct{})
		f.agents[k] = b
	}
	return b
}

// anyAgent stands for all agents of a project in feed.agent.
const anyAgent = ""

// Changed returns a channel that is closed at the next change of the project.
func (p *Project) Changed() <-chan struct{} { return p.store.feed.agent(p.Slug, anyAgent) }

// Changes returns at most limit changes of all projects recorded after the mark, oldest first.
func (s *Store) Changes(ctx context.Context, after int64, limit int) ([]index.Change, error) {
	return s.index.Changes(ctx, after, limit)
}

// NewestChanges returns at most limit changes of the project, newest first: those recorded before the mark;
// 0: the newest.
func (p *Project) NewestChanges(ctx context.Context, before int64, limit int) ([]index.Change, error) {
	return p.store.index.NewestChanges(ctx, p.Slug, before, limit)
}

// WaitChanges waits until changes are recorded after the mark, and returns at most limit of them. It
// returns the cause of ctx's end if ctx ends first.
func (s *Store) WaitChanges(ctx context.Context, after int64, limit int) ([]index.Change, error) {
	for {
		bell := s.feed.any()
		changes, err := s.index.Changes(ctx, after, limit)
		if err != nil && ctx.Err() != nil { // the query was interrupted
			return nil, context.Cause(ctx)
		}
		if err != nil || len(changes) > 0 {
			return changes, err
		}
		select {
		case <-bell:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// LastChange returns the mark of the newest change.
func (s *Store) LastChange(ctx context.Context) (int64, error) { return s.index.LastChange(ctx) }
