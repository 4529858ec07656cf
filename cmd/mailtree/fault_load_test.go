package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mailtree/fixtures/storetest"
	"mailtree/fixtures/waits"
)

// load is a set of clients that send, acknowledge and pop messages, and keep a ledger of the responses.
type load struct {
	d       *daemon
	agents  []string
	ledger  *storetest.Ledger
	serial  atomic.Int64 // the number of the last message body
	refused atomic.Int64 // calls that returned an error
	unknown atomic.Int64 // calls whose outcome is unknown, because the disk was too slow
	// refusal handles an error from a tool. If refusal is nil, the error fails the test.
	refusal func(error)
	// meddled reports whether a user has touched a message's files. If so, a response may report a state that the call
	// did not cause. If meddled is nil, no user touches files.
	meddled func(id string) bool
	claims  bool          // some clients claim paths
	pace    time.Duration // a client's pause between two calls, so that the store of a long test stays small
	rest    sync.RWMutex  // clients make no calls while rest is locked

	mu    sync.Mutex
	boxes map[string][]string // ids of messages that are in an inbox and have not been acknowledged
	again []message           // unanswered sends, which must be repeated with their keys
}

type message struct {
	From    string   `json:"from_agent"`
	To      []string `json:"to"`
	CC      []string `json:"cc"`
	BCC     []string `json:"bcc"`
	Subject string   `json:"subject"`
	Body    string   `json:"body_md"`
	Ack     bool     `json:"ack_required,omitempty"`
	Key     string   `json:"key,omitempty"`
	Project string   `json:"project_key"`
}

// faultKey is the key of the project in the fault tests.
const faultKey = "/abs/fault"

// newLoad registers the agents with a running server.
func newLoad(t testing.TB, d *daemon) *load {
	t.Helper()
	l := &load{d: d, ledger: &storetest.Ledger{}, agents: []string{"Ann", "Bob", "Cid", "Dora", "Eve"}, boxes: map[string][]string{}}
	for _, n := range l.agents {
		var made struct{ Name string }
		err := d.call("create_agent", map[string]string{"project_key": faultKey, "program": "p", "model": "m",
			"task_description": "t", "name_hint": n}, &made)
		if err != nil || made.Name != n {
			t.Fatalf("create %s: %q, %v", n, made.Name, err)
		}
	}
	return l
}

// clients runs n clients until ctx ends or the server exits.
func (l *load) clients(ctx context.Context, n int) *sync.WaitGroup {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			for ctx.Err() == nil {
				l.rest.RLock()
				err := l.act(i)
				l.rest.RUnlock()
				if err != nil {
					return
				}
				waits.Pace(l.pace)
			}
		})
	}
	return &all
}

// act performs one action. An error means that there was no response.
func (l *load) act(client int) error {
	agent := l.agents[rand.IntN(len(l.agents))]
	switch n := rand.IntN(10); {
	case n < 5:
		return l.send(l.draft(agent))
	case n < 7:
		return l.acknowledge(agent)
	case n < 9:
		return l.pop(agent)
	case l.claims:
		return l.claim(agent, fmt.Sprintf("src/%d/**", client))
	}
	return l.check(agent)
}

// check reads an inbox.
func (l *load) check(agent string) error {
	return l.answer(l.d.call("check_my_messages", map[string]any{"project_key": faultKey, "agent_name": agent, "limit": 5,
		"include_bodies": true}, nil))
}

// answer counts err and returns nil if err is a refusal. It returns any other error unchanged. If the disk of a busy
// machine is so slow that the server gives up waiting, the server says that the outcome is unknown. answer counts such
// calls separately.
func (l *load) answer(err error) error {
	var no *toolError
	if !errors.As(err, &no) {
		return err
	}
	if l.refusal == nil && isUnknown(err) {
		l.unknown.Add(1)
		return nil
	}
	l.refused.Add(1)
	if l.refusal == nil {
		l.d.t.Errorf("refused: %v", no)
	} else {
		l.refusal(no)
	}
	return nil
}

// denied reports whether err is a refusal after which nothing has changed.
func denied(err error) bool {
	var no *toolError
	return errors.As(err, &no) && !strings.Contains(no.text, "could not undo its partial changes") && !isUnknown(err)
}

// isUnknown reports whether err says that the call may or may not take effect.
func isUnknown(err error) bool {
	var no *toolError
	return errors.As(err, &no) && strings.Contains(no.text, "it is unknown whether the operation will take effect")
}

// draft returns a new message, or a message that must be sent again because the last attempt got no response.
func (l *load) draft(from string) message {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.again); n > 0 {
		m := l.again[n-1]
		l.again = l.again[:n-1]
		return m
	}
	to := slices.DeleteFunc(slices.Clone(l.agents), func(n string) bool { return n == from })
	rand.Shuffle(len(to), func(i, j int) { to[i], to[j] = to[j], to[i] })
	serial := l.serial.Add(1)
	m := message{From: from, Project: faultKey, Subject: fmt.Sprintf("message %d", serial),
		Body: fmt.Sprintf("The body of message %d.", serial), To: to[:1], CC: []string{}, BCC: []string{}}
	if serial%3 == 0 {
		m.CC = to[1:2]
	}
	if serial%4 == 0 {
		m.BCC = to[2:3]
	}
	if serial%2 == 0 {
		m.Key = fmt.Sprintf("key-%d", serial)
	}
	return m
}

func (l *load) send(m message) error {
	l.ledger.Try(m.Body)
	var made struct{ ID string }
	err := l.d.call("send_message", m, &made)
	if err != nil {
		if m.Key != "" {
			l.mu.Lock()
			l.again = append(l.again, m)
			l.mu.Unlock()
		}
		if denied(err) {
			l.ledger.Refuse(m.Body)
		} else {
			l.ledger.Unsure(m.Body)
		}
		return l.answer(err)
	}
	l.ledger.Send(storetest.Sent{ID: made.ID, From: m.From, To: m.To, CC: m.CC, BCC: m.BCC, Body: storetest.BodyHash(m.Body)})
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, n := range slices.Concat(m.To, m.CC, m.BCC) {
		l.boxes[n] = append(l.boxes[n], made.ID)
	}
	return nil
}

// take removes the id of an unacknowledged message from an agent's list and returns the id. It chooses a random
// message, or the message that is probably being popped at the same time.
func (l *load) take(agent string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	box := l.boxes[agent]
	if len(box) == 0 {
		return ""
	}
	i := rand.IntN(len(box)) * rand.IntN(2)
	id := box[i]
	l.boxes[agent] = slices.Delete(box, i, i+1)
	return id
}

func (l *load) acknowledge(agent string) error {
	id := l.take(agent)
	if id == "" {
		return nil
	}
	l.ledger.Ask(agent, id)
	var res struct{ Acknowledged, Read bool }
	if err := l.d.call("acknowledge_message", map[string]string{"project_key": faultKey, "agent_name": agent,
		"message_id": id}, &res); err != nil {
		l.mu.Lock()
		l.boxes[agent] = append(l.boxes[agent], id)
		l.mu.Unlock()
		return l.answer(err)
	}
	if (!res.Acknowledged || !res.Read) && (l.meddled == nil || !l.meddled(id)) {
		l.d.t.Errorf("acknowledged %s: %+v", id, res)
	}
	l.ledger.Ack(agent, id)
	return nil
}

// pop pops a message if the server supports it.
func (l *load) pop(agent string) error {
	if l.d.real {
		return nil
	}
	_, err := l.popped(agent)
	return l.answer(err)
}

// popped pops a message and records the pop in the ledger.
func (l *load) popped(agent string) (id string, err error) {
	l.ledger.AskPop(agent)
	if id, err = l.d.verb("pop", "project", faultKey, "agent", agent); err == nil || denied(err) {
		l.ledger.Pop(agent, id)
	}
	return id, err
}

func (l *load) claim(agent, pattern string) error {
	pattern = agent + "/" + pattern
	var res struct {
		Granted []struct{ Path string }
		Expires string `json:"expires_ts"`
	}
	err := l.d.call("claim_paths", map[string]any{"project_key": faultKey, "agent_name": agent, "paths": []string{pattern},
		"ttl_seconds": 24 * 3600}, &res)
	if err == nil && len(res.Granted) == 1 {
		l.ledger.Claim(agent, pattern, res.Expires)
	}
	return l.answer(err)
}

// drain pops everything, so that every delivery is accounted for. No other client may call the server meanwhile. If
// Postmaster reports an edited copy after the last pop, drain begins again.
func (l *load) drain() {
	l.d.t.Helper()
	until(l.d.t, "an empty inbox to be reported as empty", time.Minute, func() bool {
		var all sync.WaitGroup
		for _, agent := range l.agents {
			all.Go(func() { l.popAll(agent) })
		}
		all.Wait()
		for _, agent := range l.agents {
			var res struct{ Unread int }
			err := l.d.call("check_my_messages", map[string]any{"project_key": faultKey, "agent_name": agent}, &res)
			if err != nil || res.Unread != 0 {
				l.d.t.Logf("%s has %d unread after the last pop, %v", agent, res.Unread, err)
				return false
			}
		}
		return true
	})
}

// popAll pops until the agent has no unread mail.
func (l *load) popAll(agent string) {
	for {
		id, err := l.popped(agent)
		if err != nil {
			l.d.t.Errorf("drain %s: %v", agent, err)
		}
		if err != nil || id == "" {
			return
		}
	}
}

func (l *load) String() string {
	tried, sent, popped, acked, lost, saved := l.ledger.Counts()
	s := fmt.Sprintf("%d of %d sends answered, %d acknowledgements, %d pops (%d without answer)", sent, tried, acked, popped, lost)
	if saved > 0 {
		s += fmt.Sprintf(", %d files saved by users", saved)
	}
	if n := l.refused.Load(); n > 0 {
		s += fmt.Sprintf(", %d calls refused", n)
	}
	if n := l.unknown.Load(); n > 0 {
		s += fmt.Sprintf(", %d calls with an unknown outcome", n)
	}
	return fmt.Sprintf("%s; %d starts, the slowest %s, the busiest %s", s, l.d.starts, l.d.slowest.Round(1e6), l.d.busiest)
}
