package core

import (
	"strings"
	"sync"

	"mailtree/maildir/format"
	"mailtree/maildir/index"
)

// feed wakes callers that are waiting for changes, but does not deliver the changes. Each caller remembers its position
// and reads all later changes from the index, so a slow caller misses nothing.
type feed struct {
	mu     sync.Mutex
	all    chan struct{}
	agents map[string]chan struct{} // by slug + "/" + agent
	idle   chan struct{}
}

func newFeed() *feed {
	return &feed{all: make(chan struct{}), agents: map[string]chan struct{}{}, idle: make(chan struct{})}
}

// Ring wakes every caller that is waiting for any change. For each agent whose files are in changes, it also wakes
// the callers that are waiting for changes to that agent's files.
func (f *feed) Ring(changes []index.Change) {
	f.mu.Lock()
	defer f.mu.Unlock()
	close(f.all)
	f.all = make(chan struct{})
	for _, c := range changes {
		f.wake(c.Project, c.Agent)
		f.wake(c.Project, AnyAgent)
		if c.Kind == format.KindCanonical && c.Op != index.Added { // the message may be in any inbox
			for k := range f.agents {
				if slug, name, _ := strings.Cut(k, "/"); slug == c.Project {
					f.wake(slug, name)
				}
			}
		}
	}
}

// RingAgent wakes callers that are waiting for one agent's mail.
func (f *feed) RingAgent(slug, name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.wake(slug, name)
}

// RingIdle wakes callers that are waiting for a turn to end.
func (f *feed) RingIdle() {
	f.mu.Lock()
	defer f.mu.Unlock()
	close(f.idle)
	f.idle = make(chan struct{})
}

// TurnEnded returns a channel that is closed the next time a turn ends in a session of any project.
func (f *feed) TurnEnded() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.idle
}

func (f *feed) wake(slug, name string) {
	k := slug + "/" + name
	if b, ok := f.agents[k]; ok {
		close(b)
		delete(f.agents, k)
	}
}

// Any returns a channel that is closed at the next change.
func (f *feed) Any() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.all
}

// Agent returns a channel that is closed at the next change in the agent's folder or to an existing message.
func (f *feed) Agent(slug, name string) <-chan struct{} {
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

// AnyAgent is the name to pass to feed.Agent to wait for any agent of a project.
const AnyAgent = ""
