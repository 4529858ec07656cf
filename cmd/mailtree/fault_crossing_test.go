package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"mailtree/fixtures/inmemory"
	"mailtree/fixtures/storetest"
)

// crossing is a store with two projects whose agents send each other mail while the server is repeatedly killed.
type crossing struct {
	d     *daemon
	slugs map[string]string // each project's slug, by the project's key

	mu    sync.Mutex
	next  int                // number of the next message
	open  []crossed          // unanswered sends, which must be repeated
	sent  map[string]string  // the id of each answered send, by message body
	asked map[string]crossed // all messages, by body
}

// crossed is a message from an agent of one project to agents of the other project.
type crossed struct {
	message
	target string // key of the other project
}

const (
	backKey  = "/abs/back"
	frontKey = "/abs/front"
)

// newCrossing starts a server, and creates the two projects and their agents.
func newCrossing(t *testing.T) *crossing {
	d := newDaemon(t, filepath.Join(inmemory.Dir(t), "store"))
	d.start()
	c := &crossing{d: d, slugs: map[string]string{}, sent: map[string]string{}, asked: map[string]crossed{}}
	for key, names := range map[string][]string{backKey: {"Ann", "Bob"}, frontKey: {"Xia", "Yan", "Zoe"}} {
		for _, n := range names {
			var made struct{ Name, Project string }
			err := d.call("create_agent", map[string]string{"project_key": key, "program": "p", "model": "m",
				"task_description": "t", "name_hint": n}, &made)
			if err != nil || made.Name != n {
				t.Fatalf("create %s: %q, %v", n, made.Name, err)
			}
			c.slugs[key] = made.Project
		}
	}
	return c
}

// draft returns a new message, or a message that must be sent again because the last attempt got no response. Every
// third message goes from front to back.
func (c *crossing) draft() crossed {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(c.open); n > 0 {
		m := c.open[n-1]
		c.open = c.open[:n-1]
		return m
	}
	c.next++
	m := crossed{message{From: "Ann", To: []string{"Bob", "Xia@front"}, CC: []string{"Yan@front"}, BCC: []string{"Zoe@front"}, Project: backKey}, frontKey}
	if c.next%3 == 0 {
		m = crossed{message{From: "Xia", To: []string{"Ann@back"}, CC: []string{}, BCC: []string{"Bob@back"}, Project: frontKey}, backKey}
	}
	m.Subject, m.Body = fmt.Sprintf("message %d", c.next), fmt.Sprintf("The body of message %d.", c.next)
	m.Key = fmt.Sprintf("key-%d", c.next)
	c.asked[m.Body] = m
	return m
}

// send sends a message. An error means that there was no response, so the message must be sent again.
func (c *crossing) send(m crossed) error {
	var made struct{ ID string }
	err := c.d.call("send_message", m.message, &made)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.open = append(c.open, m)
	} else {
		c.sent[m.Body] = made.ID
	}
	return err
}

// answered counts the answered sends.
func (c *crossing) answered() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.sent)
}

// die makes the server exit at its nth step from now. The count includes the steps in both trees and the steps that
// carry mail from one tree to the other.
func (c *crossing) die(n int) {
	if _, err := c.d.verb("die", "at", strconv.Itoa(n)); err != nil {
		c.d.t.Fatal(err)
	}
}

// restart starts the server after it has died.
func (c *crossing) restart() {
	c.d.cmd.Wait()
	c.d.gone()
	c.d.start()
}

// tree returns the folder of a project's tree.
func (c *crossing) tree(key string) string {
	return filepath.Join(c.d.store, "projects", c.slugs[key], "repo")
}

// settled waits until no mail is waiting for delivery to another project.
func (c *crossing) settled() {
	until(c.d.t, "all mail to have crossed", time.Minute, func() bool {
		left, err := filepath.Glob(filepath.Join(c.d.store, "projects", "*", "crossing", "*.json"))
		return err == nil && len(left) == 0
	})
}

// files counts the message files in a project's tree that contain text.
func (c *crossing) files(key, text string) (n int) {
	for _, pattern := range []string{"messages/*/*/*/*.md", "agents/*/*/*/*/*/*.md"} {
		all, err := filepath.Glob(filepath.Join(c.tree(key), pattern))
		if err != nil {
			c.d.t.Fatal(err)
		}
		for _, f := range all {
			data, err := os.ReadFile(f)
			if err != nil {
				c.d.t.Fatal(err)
			}
			if strings.Contains(string(data), text) {
				n++
			}
		}
	}
	return n
}

// check stops the server, checks the store against its invariants, and checks that each answered message is in both
// trees exactly once.
func (c *crossing) check() {
	c.d.t.Helper()
	c.settled()
	c.d.kill()
	c.d.real = true
	c.d.start()
	c.settled()
	c.d.interrupt()
	for _, p := range storetest.Check(c.d.t.Context(), c.d.store, nil) {
		c.d.t.Error(p)
	}
	for _, key := range []string{backKey, frontKey} {
		ids := map[string][]string{} // message ids, by body
		all, err := filepath.Glob(filepath.Join(c.tree(key), "messages/*/*/*/*.md"))
		if err != nil {
			c.d.t.Fatal(err)
		}
		more, _ := filepath.Glob(filepath.Join(c.tree(key), "messages/*/*/*/*/*.md"))
		for _, f := range append(all, more...) {
			data, err := os.ReadFile(f)
			if err != nil {
				c.d.t.Fatal(err)
			}
			_, body, _ := strings.Cut(string(data), "\n---\n\n")
			body = strings.TrimSuffix(body, "\n")
			ids[body] = append(ids[body], strings.TrimSuffix(filepath.Base(f), ".md"))
		}
		for body := range c.asked {
			if want := []string{c.sent[body]}; !slices.Equal(ids[body], want) {
				c.d.t.Errorf("%s: %q is there as %v, and was answered as %v", key, body, ids[body], want)
			}
		}
		if len(ids) != len(c.asked) {
			c.d.t.Errorf("%s has %d messages, and %d were sent", key, len(ids), len(c.asked))
		}
	}
}

// TestFaultCrossingSteps kills the server before or after each step of a send to another project: in the sender's tree,
// between the trees or in the other tree. After the next start, the message is in both trees or in neither. If the
// client received a response, the message is in both.
func TestFaultCrossingSteps(t *testing.T) {
	longer(t)
	t.Parallel()
	c := newCrossing(t)
	whole, absent := 0, 0
	for n, died := 1, true; died; n++ {
		if n > 100 {
			t.Fatal("the operation never completes")
		}
		m := c.draft()
		m.Key = "" // this message needs no key, because it is not sent again
		c.die(n)
		err := c.send(m)
		if died = err != nil; died {
			c.restart()
		} else {
			c.d.kill()
			c.d.start()
		}
		c.settled()
		here, there := c.files(m.Project, m.Body), c.files(m.target, m.Body)
		wantHere, wantThere := len(m.To)+len(m.CC)+len(m.BCC), 0
		for _, name := range slices.Concat(m.To, m.CC, m.BCC) {
			if strings.Contains(name, "@") {
				wantThere++
			}
		}
		// Apart from inbox copies, the sender's project has the canonical file and the outbox copy, and the other
		// project has the canonical file.
		wantHere, wantThere = wantHere-wantThere+2, wantThere+1
		switch {
		case here == wantHere && there == wantThere:
			whole++
			if died { // no response, but the trees show that the message was sent
				c.mu.Lock()
				c.sent[m.Body] = c.idOf(m)
				c.mu.Unlock()
			}
		case here == 0 && there == 0 && died:
			absent++
			c.mu.Lock()
			delete(c.asked, m.Body)
			c.mu.Unlock()
		default:
			t.Errorf("killed at step %d (died in it: %v): %d of %d files here, %d of %d there", n, died, here, wantHere, there, wantThere)
		}
		c.mu.Lock()
		c.open = nil
		c.mu.Unlock()
	}
	if absent < 3 || whole < 10 {
		t.Errorf("%d absent and %d whole: the server did not die at every step", absent, whole)
	}
	c.check()
	t.Logf("%d times absent, %d times whole", absent, whole)
}

// idOf looks up the id of a message in the sender's tree.
func (c *crossing) idOf(m crossed) string {
	all, err := filepath.Glob(filepath.Join(c.tree(m.Project), "messages/*/*/*/*.md"))
	if err != nil {
		c.d.t.Fatal(err)
	}
	for _, f := range all {
		if data, err := os.ReadFile(f); err == nil && strings.Contains(string(data), m.Body) {
			return strings.TrimSuffix(filepath.Base(f), ".md")
		}
	}
	return ""
}

// TestFaultCrossing checks that mail in both directions between two projects arrives even though the server is killed
// at random steps. At the end, every message is in both trees exactly once.
func TestFaultCrossing(t *testing.T) {
	longer(t)
	t.Parallel()
	c := newCrossing(t)
	total, kills := extent(200, 2000), 0
	for c.answered() < total {
		ctx, cancel := context.WithCancel(t.Context())
		c.die(1 + rand.IntN(400))
		var clients sync.WaitGroup
		for range 4 {
			clients.Go(func() {
				for ctx.Err() == nil && c.answered() < total {
					err := c.send(c.draft())
					var no *toolError
					if errors.As(err, &no) {
						t.Errorf("refused: %v", no)
					}
					if err != nil {
						return
					}
				}
			})
		}
		clients.Wait()
		cancel()
		if c.answered() >= total {
			c.d.kill()
			c.d.start()
			break
		}
		kills++
		c.restart()
		if t.Failed() {
			t.Fatalf("after kill %d", kills)
		}
	}
	for len(c.open) > 0 {
		if err := c.send(c.draft()); err != nil {
			t.Fatal(err)
		}
	}
	if kills < 3 {
		t.Errorf("the server was killed only %d times", kills)
	}
	c.check()
	t.Logf("%d messages, %d kills", c.answered(), kills)
}
