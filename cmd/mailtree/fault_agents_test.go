package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"mailtree/fixtures/waits"
)

// agent simulates an agent that does everything that agents can do with their own mail. It makes one call at a time,
// so that it knows the state of each of its deliveries.
type agent struct {
	*load
	name   string
	read   map[string]bool // whether each delivery is marked as read, by delivery id
	acked  map[string]bool
	claims map[string]bool // whether each pattern is claimed
}

// working runs every agent until ctx ends.
func (l *load) working(ctx context.Context) *sync.WaitGroup {
	var all sync.WaitGroup
	for _, name := range l.agents {
		a := &agent{l, name, map[string]bool{}, map[string]bool{}, map[string]bool{}}
		all.Go(func() {
			for ctx.Err() == nil {
				if err := a.work(); err != nil {
					l.d.t.Errorf("%s: %v", a.name, err)
					return
				}
				waits.Pace(5 * time.Millisecond) // the test is about edits, so most operations should be edits
			}
		})
	}
	return &all
}

func (a *agent) work() error {
	switch n := rand.IntN(16); {
	case n < 1:
		return a.send(a.draft(a.name))
	case n < 3:
		return a.look()
	case n < 6:
		return a.takeOne()
	case n < 8:
		return a.confirm()
	case n < 11:
		return a.set(true)
	case n < 14:
		return a.set(false)
	}
	return a.lease()
}

// stands records whether a delivery is read, according to a response.
func (a *agent) stands(id string, read bool) {
	a.read[id] = read
	a.ledger.Stands(a.name, id, read)
}

// look reads unread mail, which marks it as read.
func (a *agent) look() error {
	var page struct{ Messages []struct{ ID string } }
	err := a.d.call("check_my_messages", map[string]any{"project_key": faultKey, "agent_name": a.name, "limit": 5,
		"unread_only": true, "include_bodies": true, "mark_read": true}, &page)
	for _, m := range page.Messages {
		a.ledger.Ask(a.name, m.ID)
		a.stands(m.ID, true)
	}
	return a.answer(err)
}

// takeOne pops a message.
func (a *agent) takeOne() error {
	id, err := a.popped(a.name)
	if err == nil && id != "" {
		if a.read[id] {
			a.d.t.Errorf("%s popped %s, which it had read", a.name, id)
		}
		a.stands(id, true)
	}
	return a.answer(err)
}

// some returns a random delivery that satisfies ok, or "" if there is none.
func (a *agent) some(ok func(id string, read bool) bool) string {
	for id, read := range a.read { // in random order
		if ok(id, read) {
			return id
		}
	}
	return ""
}

// confirm acknowledges a delivery.
func (a *agent) confirm() error {
	id := a.some(func(id string, _ bool) bool { return !a.acked[id] })
	if id == "" {
		return nil
	}
	a.acked[id] = true // the call may take effect even if it gets no response
	a.ledger.Ask(a.name, id)
	err := a.d.call("acknowledge_message", map[string]string{"project_key": faultKey, "agent_name": a.name, "message_id": id}, nil)
	if err == nil {
		a.ledger.Ack(a.name, id)
		a.stands(id, true)
	}
	return a.answer(err)
}

// set marks a delivery as read or unread.
func (a *agent) set(read bool) error {
	id := a.some(func(id string, was bool) bool { return was != read && !a.acked[id] })
	if id == "" {
		return nil
	}
	verb := "read"
	if read {
		a.ledger.Ask(a.name, id)
	} else {
		verb = "unread"
		a.ledger.Unread(a.name, id)
	}
	_, err := a.d.verb(verb, "project", faultKey, "agent", a.name, "id", id)
	if err == nil {
		a.stands(id, read)
	}
	return a.answer(err)
}

// lease releases a random path if the agent has claimed it; otherwise it claims the path.
func (a *agent) lease() error {
	name := fmt.Sprintf("src/%d/**", rand.IntN(3))
	pattern := a.name + "/" + name
	held := a.claims[pattern]
	a.claims[pattern] = !held
	a.ledger.Unclaim(a.name, pattern)
	if !held {
		return a.claim(a.name, name)
	}
	var res struct{ Count int }
	err := a.d.call("release_claims", map[string]any{"project_key": faultKey, "agent_name": a.name, "paths": []string{pattern}}, &res)
	if err == nil {
		if res.Count != 1 {
			a.d.t.Errorf("%s released %d claims on %s", a.name, res.Count, pattern)
		}
		a.ledger.Release(a.name, pattern)
	}
	return a.answer(err)
}
