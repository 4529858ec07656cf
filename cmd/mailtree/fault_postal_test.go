package main

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mailtree/fixtures/inmemory"
	"mailtree/fixtures/storetest"
	"mailtree/maildir"
)

// These tests check that the released program behaves as described in docs/reference/tools.md, "postal".

// post is the mail of one test, which is sent and received with postal's tools. Because postal shows the ids that
// senders chose instead of the ids in the tree, the tests identify messages by their bodies, which are unique.
type post struct {
	d      *daemon
	ledger *storetest.Ledger

	mu    sync.Mutex
	sent  map[string]string // the sender of each answered send, by body
	taken map[string]string // the id shown by each answered pop, by body
}

func newPost(t *testing.T) *post {
	d := newDaemon(t, filepath.Join(inmemory.Dir(t), "store"))
	d.real = true
	d.start()
	return &post{d: d, ledger: &storetest.Ledger{}, sent: map[string]string{}, taken: map[string]string{}}
}

// send sends a message, with the given id unless the id is empty. An error means that there was no response.
func (p *post) send(from, to, body, id string) error {
	p.ledger.Try(body)
	args, made := map[string]string{"name": to, "msg": body}, struct{ ID string }{}
	if id != "" {
		args["msg_id"] = id
	}
	if err := p.d.callAt("/agents/"+from+"/mcp", "send_to_agent", args, &made); err != nil {
		if denied(err) {
			p.d.t.Errorf("refused: %v", err)
		}
		p.ledger.Unsure(body)
		return err
	}
	if id != "" && made.ID != id {
		p.d.t.Errorf("sent under %q, answered %q", id, made.ID)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sent[body] = from
	return nil
}

// take takes the oldest message and returns its body, or "" if there is no message. An error means that there was no
// response.
func (p *post) take(agent string, wait int) (body string, err error) {
	var m struct{ ID, From, Content string }
	p.ledger.AskPop(agent)
	err = p.d.callAt("/agents/"+agent+"/mcp", "check_mail", map[string]int{"wait_seconds": wait}, &m)
	if err != nil && !denied(err) {
		return "", err
	}
	if err != nil {
		p.d.t.Errorf("refused: %v", err)
	}
	p.ledger.Pop(agent, "") // the call was answered; settle finds the delivery later
	if err != nil || m.ID == "" {
		return "", err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if was, twice := p.taken[m.Content]; twice {
		p.d.t.Errorf("%q was handed out twice, as %s and %s", m.Content, was, m.ID)
	}
	p.taken[m.Content] = m.ID
	return m.Content, nil
}

// waitSeconds is how long takers wait, in seconds. It is less than the time that the daemon's client waits.
const waitSeconds = 20

// takeSome repeats take until there is a message.
func (p *post) takeSome(agent string) (body string, err error) {
	for body == "" && err == nil {
		body, err = p.take(agent, waitSeconds)
	}
	return body, err
}

// settle reads an inbox with the mail toolset, and records its messages in the ledger. The mail toolset identifies
// messages by their ids in the tree. settle returns the number of messages that are marked as read although no client
// received them.
func (p *post) settle(agent string) (silent int) {
	p.d.t.Helper()
	for cursor, more := "", true; more; more = cursor != "" {
		var page struct {
			Messages []struct {
				ID, From string
				Body     string `json:"body_md"`
				Read     bool
			}
			Next string `json:"next_cursor"`
		}
		if err := p.d.call("check_my_messages", map[string]any{"project_key": maildir.DefaultProject, "agent_name": agent,
			"limit": 200, "include_bodies": true, "cursor": cursor}, &page); err != nil {
			p.d.t.Fatal(err)
		}
		cursor = page.Next
		for _, m := range page.Messages {
			if p.sent[m.Body] != "" {
				p.ledger.Send(storetest.Sent{ID: m.ID, From: m.From, To: []string{agent}, Body: storetest.BodyHash(m.Body)})
				delete(p.sent, m.Body)
			}
			_, taken := p.taken[m.Body]
			switch {
			case taken:
				p.ledger.AskPop(agent)
				p.ledger.Pop(agent, m.ID)
			case m.Read:
				silent++
			default:
				p.d.t.Errorf("%s has %q unread after the last pop", agent, m.Body)
			}
			delete(p.taken, m.Body)
		}
	}
	return silent
}

// check compares the answered sends and pops with the store, once all inboxes are settled.
func (p *post) check() {
	p.d.t.Helper()
	for body, from := range p.sent {
		p.d.t.Errorf("the send of %q by %s was answered, but the message is in no inbox", body, from)
	}
	for body := range p.taken {
		p.d.t.Errorf("%q was handed out, but is in no inbox", body)
	}
	p.d.check(p.ledger)
}

// TestFaultPostalLoops checks that messages arrive in the order in which they were sent while two clients reply to each
// other. No message is lost.
func TestFaultPostalLoops(t *testing.T) {
	longer(t)
	t.Parallel()
	const balls = 4                     // concurrent conversations
	total := extent(400/slower, 20_000) // a multiple of 2*balls
	p := newPost(t)
	for n := range balls {
		if err := p.send("bob", "alice", strconv.Itoa(n), ""); err != nil {
			t.Fatal(err)
		}
	}
	loop := func(me, other string, first int) {
		for k := range total / 2 {
			n := first + k/balls*2*balls + k%balls
			body, err := p.takeSome(me)
			if err != nil || body != strconv.Itoa(n) {
				t.Errorf("%s got %q, %v, want %d", me, body, err, n)
				return
			}
			if n += balls; n < total {
				if err := p.send(me, other, strconv.Itoa(n), strings.Repeat(body, n%2)); err != nil {
					t.Errorf("%s: %v", me, err)
					return
				}
			}
		}
	}
	var all sync.WaitGroup
	all.Go(func() { loop("alice", "bob", 0) })
	all.Go(func() { loop("bob", "alice", balls) })
	all.Wait()
	if silent := p.settle("alice") + p.settle("bob"); silent > 0 {
		t.Errorf("%d messages were handed out to nobody", silent)
	}
	p.check()
}

// TestFaultPostalCrowd checks that no message arrives twice and none is lost while 64 clients take messages from one
// mailbox and 64 others send to it.
func TestFaultPostalCrowd(t *testing.T) {
	longer(t)
	t.Parallel()
	c := newCrowd(t, extent(640/slower, 64_000))
	c.finish()
	if silent := c.settle("box"); silent > 0 || len(c.ledger.Pops()) != len(c.ledger.Sends()) {
		t.Errorf("%d sent, %d taken, %d handed out to nobody", len(c.ledger.Sends()), len(c.ledger.Pops()), silent)
	}
	c.check()
}

// TestFaultPostalKill is like TestFaultPostalCrowd, but the server is killed and restarted. A message that no client
// received is in the inbox, marked as read. The number of such messages is at most the number of unanswered calls.
func TestFaultPostalKill(t *testing.T) {
	longer(t)
	t.Parallel()
	kills := extent(3, 200)
	c := newCrowd(t, extent(384/slower, 20_000))
	for range kills {
		until := c.answered.Load() + 8 + rand.Int64N(96)
		senders, takers := c.clients()
		c.wait(until)
		c.d.kill()
		senders.Wait()
		takers.Wait()
		c.d.start()
	}
	c.finish()
	silent := c.settle("box")
	_, sent, taken, _, lost, _ := c.ledger.Counts()
	if silent > lost {
		t.Errorf("%d handed out to nobody, but only %d calls got no answer", silent, lost)
	}
	c.check()
	t.Logf("%d kills: %d sent, %d taken, %d handed out to nobody, %d calls without answer", kills, sent, taken, silent, lost)
}

// crowd is a group of clients that share one mailbox, "box".
type crowd struct {
	*post
	answered atomic.Int64
	ended    atomic.Bool // no more messages will be sent
	sure     bool        // the server is not killed, so every call must be answered

	left chan parcel // messages that still have to be sent, or sent again
}

type parcel struct{ from, body, id string }

// crowdSize is the number of senders, and also the number of takers.
const crowdSize = 64

func newCrowd(t *testing.T, total int) *crowd {
	c := &crowd{post: newPost(t), left: make(chan parcel, total+crowdSize)}
	for i := range total {
		m := parcel{fmt.Sprintf("sender%d", i%crowdSize), fmt.Sprintf("message %d", i), ""}
		if i%2 == 0 {
			m.id = fmt.Sprintf("id %d", i)
		}
		c.left <- m
	}
	return c
}

// clients runs all clients until the server is gone. A sender also stops when there is nothing left to send, and a
// taker also stops when it receives a stop message.
func (c *crowd) clients() (senders, takers *sync.WaitGroup) {
	senders, takers = &sync.WaitGroup{}, &sync.WaitGroup{}
	for range crowdSize {
		senders.Go(func() {
			for {
				select {
				case m := <-c.left:
					if !c.deliver(m) {
						return
					}
				default:
					return
				}
			}
		})
		takers.Go(func() {
			for {
				ended := c.ended.Load() // read before the call, because messages may arrive after an empty response
				body, err := c.take("box", waitSeconds)
				if err != nil && c.sure {
					c.d.t.Errorf("no answer from a running server: %v", err)
				}
				if err != nil || strings.HasPrefix(body, stop) || body == "" && ended {
					return
				}
				c.answered.Add(1)
			}
		})
	}
	return senders, takers
}

// deliver sends a message. If there is no response, it returns false and, if the message has an id, queues the message
// to be sent again.
func (c *crowd) deliver(m parcel) bool {
	err := c.send(m.from, "box", m.body, m.id)
	if err == nil {
		c.answered.Add(1)
	} else if m.id != "" {
		c.left <- m
	}
	return err == nil
}

// wait waits until n calls have been answered, or everything has been sent.
func (c *crowd) wait(n int64) {
	c.d.t.Helper()
	until(c.d.t, "calls are answered", time.Minute, func() bool { return c.answered.Load() >= n || len(c.left) == 0 })
}

// stop is the prefix of the messages that stop takers. Each of these messages stops one taker.
const stop = "stop "

// finish sends the remaining messages, and receives all messages.
func (c *crowd) finish() {
	c.d.t.Helper()
	c.sure = true
	senders, takers := c.clients()
	senders.Wait()
	for i := range crowdSize {
		if err := c.send("sender0", "box", stop+strconv.Itoa(i), ""); err != nil {
			c.d.t.Error(err)
			c.d.kill() // end any takers that are still waiting
			break
		}
	}
	c.ended.Store(true)
	takers.Wait()
}
