package maildir

import (
	"context"
	"strings"
	"sync"

	"mailtree/maildir/format"
	"mailtree/maildir/index"
)

// feed rings for those who wait. It carries no changes itself: what changed is what the index
// recorded after a mark, so a slow reader loses nothing.
type feed struct {
	mu     sync.Mutex
	all    chan struct{}
	agents map[string]chan struct{} // by slug + "/" + agent
}

func newFeed() *feed {
	return &feed{all: make(chan struct{}), agents: map[string]chan struct{}{}}
}

func (f *feed) ring(changes []index.Change) {
	f.mu.Lock()
	defer f.mu.Unlock()
	close(f.all)
	f.all = make(chan struct{})
	for _, c := range changes {
		f.wake(c.Project, c.Agent)
		f.wake(c.Project, anyAgent)
		if c.Kind == format.KindCanonical && c.Op != index.Added { // it shows in every inbox that has it, and the change does not say in which
			for k := range f.agents {
				if slug, name, _ := strings.Cut(k, "/"); slug == c.Project {
					f.wake(slug, name)
				}
			}
		}
	}
}

// ringAgent rings for those who wait for one agent's mail.
func (f *feed) ringAgent(slug, name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.wake(slug, name)
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

// agent returns a channel that is closed at the next change below that agent's folder, or of a
// message that was there.
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

// Changes returns what was recorded after the mark, at most limit changes, oldest first, of every
// project.
func (s *Store) Changes(ctx context.Context, after int64, limit int) ([]index.Change, error) {
	return s.index.Changes(ctx, after, limit)
}

// NewestChanges returns what was recorded of the project last, newest first, at most limit changes.
func (p *Project) NewestChanges(ctx context.Context, limit int) ([]index.Change, error) {
	return p.store.index.NewestChanges(ctx, p.Slug, limit)
}

// WaitChanges waits until something is recorded after the mark and returns it, at most limit
// changes; ctx's error when that ends first.
func (s *Store) WaitChanges(ctx context.Context, after int64, limit int) ([]index.Change, error) {
	for {
		bell := s.feed.any()
		changes, err := s.index.Changes(ctx, after, limit)
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

// LastChange is the mark of the newest change.
func (s *Store) LastChange(ctx context.Context) (int64, error) { return s.index.LastChange(ctx) }
