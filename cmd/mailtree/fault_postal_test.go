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

// The tests of this file hold the shipped program to docs/tools.md, "postal".

// post is the mail of one test, sent and taken out with postal's tools. Postal shows the sender's
// own ids, so the tests tell messages apart by their bodies, which are unique.
type post struct {
	d      *daemon
	ledger *storetest.Ledger

	mu    sync.Mutex
	sent  map[string]string // answered: the sender, by body
	taken map[string]string // answered: the id that was shown, by body
}

func newPost(t *testing.T) *post {
	d := newDaemon(t, filepath.Join(inmemory.Dir(t), "store"))
	d.real = true
	d.start()
	return &post{d: d, ledger: &storetest.Ledger{}, sent: map[string]string{}, taken: map[string]string{}}
}

// send sends under an id, or with none. The error says that there was no answer.
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

// take takes the oldest message out, "" for none. The error says that there was no answer.
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
	p.ledger.Pop(agent, "") // it was answered; which delivery it was is told by settle
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

// waitSeconds is how long those who take wait, in seconds: less than the daemon's client does.
const waitSeconds = 20

// takeSome takes until there is something.
func (p *post) takeSome(agent string) (body string, err error) {
	for body == "" && err == nil {
		body, err = p.take(agent, waitSeconds)
	}
	return body, err
}

// settle reads an inbox with the toolset mail, which knows the messages by their ids in the tree,
// and tells the ledger. It returns how many messages are marked read that nobody was handed.
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

// check checks everything against the store once all inboxes are settled.
func (p *post) check() {
	p.d.t.Helper()
	for body, from := range p.sent {
		p.d.t.Errorf("%q of %s was answered, but is in no inbox", body, from)
	}
	for body := range p.taken {
		p.d.t.Errorf("%q was handed out, but is in no inbox", body)
	}
	p.d.check(p.ledger)
}

// TestFaultPostalLoops has two clients answer each other: every message arrives, in the order it
// was sent.
func TestFaultPostalLoops(t *testing.T) {
	longer(t)
	t.Parallel()
	const balls = 4                     // conversations at once
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

// TestFaultPostalCrowd has 64 clients take from one mailbox while 64 send to it: nothing comes
// twice, nothing is lost.
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

// TestFaultPostalKill is TestFaultPostalCrowd with a server that is killed and started again.
// Messages that nobody was handed stand in the inbox, marked read; there are no more of them than
// calls that got no answer.
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

// crowd is many clients and one mailbox, "box".
type crowd struct {
	*post
	answered atomic.Int64
	ended    atomic.Bool // nothing comes any more
	sure     bool        // nobody kills the server: every call has to be answered

	left chan parcel // to be sent (again)
}

type parcel struct{ from, body, id string }

// crowdSize is how many send, and how many take.
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

// clients runs all until the server is gone. Senders also end when nothing is left, takers at a
// message that tells them to.
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
				ended := c.ended.Load() // before it asks: what came meanwhile is not in an empty answer
				body, err := c.take("box", waitSeconds)
				if err != nil && c.sure {
					c.d.t.Errorf("no answer from a server that runs: %v", err)
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

// deliver sends a message. Where it gets no answer it returns false, and sends the message again
// later if that has an id.
func (c *crowd) deliver(m parcel) bool {
	err := c.send(m.from, "box", m.body, m.id)
	if err == nil {
		c.answered.Add(1)
	} else if m.id != "" {
		c.left <- m
	}
	return err == nil
}

// wait waits until so many calls were answered, or everything was sent.
func (c *crowd) wait(n int64) {
	c.d.t.Helper()
	until(c.d.t, "calls are answered", time.Minute, func() bool { return c.answered.Load() >= n || len(c.left) == 0 })
}

// stop begins the messages that end takers. Each message ends one.
const stop = "stop "

// finish sends what is left and has everything taken.
func (c *crowd) finish() {
	c.d.t.Helper()
	c.sure = true
	senders, takers := c.clients()
	senders.Wait()
	for i := range crowdSize {
		if err := c.send("sender0", "box", stop+strconv.Itoa(i), ""); err != nil {
			c.d.t.Error(err)
			c.d.kill() // so that nobody waits
			break
		}
	}
	c.ended.Store(true)
	takers.Wait()
}
