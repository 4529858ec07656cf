package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"mailtree/fixtures/model"
	"mailtree/maildir"
)

// TestClientWake checks that mail wakes a session that is idle in a terminal, even after the server has been killed and
// restarted. Each message is announced once, and a burst of 100 messages is announced in one turn. The woken model
// always uses stdio to reach the server, while the models of TestClientsTogether use HTTP.
func TestClientWake(t *testing.T) {
	each(t, func(t *testing.T, k kit) {
		if k.terminal == "" {
			t.Skip("only typed text wakes this client")
		}
		d := newDesk(t, k.name)
		d.model.Script(t,
			model.Rule{When: "The other side", Text: "Listed."}, // part of GreenCastle's task, which list_agents returns
			model.Rule{When: "The (first|second|last) plan", Calls: say("list_agents", map[string]any{"project_key": d.code})},
		)
		k.prepare(d)
		d.setUp("stdio")
		screen := d.open(k.terminal)
		if k.greet != nil {
			k.greet(screen)
		}
		defer func() {
			if t.Failed() {
				t.Logf("the screen showed:\n%s", screen.Text())
				d.model.Dump(t)
			}
		}()
		screen.Submit("Begin the work.", func() bool { return len(d.turnsWith("Begin the work.")) > 0 })
		d.awaitIdle()
		agent := d.agent()

		d.wake(agent, "The first plan")
		d.restart()
		d.wake(agent, "The second plan")

		burst := d.sendBurst(agent)
		d.awaitTurn("Burst")
		d.awaitIdle()
		d.wake(agent, "The last plan")
		listed := d.turnsWith("The other side")
		if n := len(listed); n != 3 {
			t.Errorf("the woken model reached the server %d times, want 3", n)
		}
		for _, subject := range []string{"The first plan", "The second plan", "Burst", "The last plan"} {
			if subject == "Burst" && burst > maildir.DefaultSettle {
				t.Logf("a burst in one turn was not tested, because this burst took %s", burst)
				continue
			}
			n := len(d.turnsWith(subject))
			for _, turn := range listed {
				if strings.Contains(turn.Turn.Last(), subject) {
					n--
				}
			}
			if n != 1 {
				t.Errorf("%q was announced in %d turns, want one", subject, n)
			}
		}
	})
}

// TestClientWakeUnended checks that mail wakes a Claude Code session that has not completed a turn: a new session, a
// session after /clear, and a continued session. The hook that waits for mail delays none of these sessions.
func TestClientWakeUnended(t *testing.T) {
	k := claudeKit
	d := newDesk(t, k.name)
	k.prepare(d)
	d.setUp("stdio")
	began := time.Now()
	screen := d.open(k.terminal)
	defer func() {
		if t.Failed() {
			t.Logf("the screen showed:\n%s", screen.Text())
			d.model.Dump(t)
		}
	}()
	agent := d.awaitIdle()
	t.Logf("claude: %.1f s from its start to its session", time.Since(began).Seconds())
	d.wake(agent, "The plan for a fresh session")
	before := d.sessions()
	began = time.Now()
	screen.Submit("/clear", func() bool { return d.sessions() > before })
	t.Logf("claude: %.1f s from /clear to the new session", time.Since(began).Seconds())
	d.wake(agent, "The plan for a cleared session")

	screen.Submit("/exit", func() bool { return strings.Contains(screen.Text(), "Resume this session") })
	screen = d.open(k.terminal + " --continue")
	d.wake(agent, "The plan for a continued session")
	screen.Submit("Begin the work.", func() bool { return len(d.turnsWith("Begin the work.")) > 0 })
	if is := d.agent(); is != agent {
		t.Errorf("the sessions belong to the agents %s and %s, want one agent", agent, is)
	}
}

// sessions returns the number of sessions that the hooks have recorded in the store.
func (d *desk) sessions() int {
	files, _ := filepath.Glob(filepath.Join(d.home, ".mailtree/projects/*/repo/.mailtree/sessions/*"))
	return len(files)
}

// TestClientBurst checks that 100 messages that arrive during a turn are announced only once.
func TestClientBurst(t *testing.T) {
	each(t, func(t *testing.T, k kit) {
		d := newDesk(t, k.name)
		d.model.Script(t, model.Rule{When: "Begin the work", Times: 1, Calls: say(k.shell, k.shellInput(waitInTurn))})
		k.prepare(d)
		d.setUp("http")
		done := d.ask(k, "Begin the work.")
		d.awaitFile("started")
		d.sendBurst(d.agent())
		d.write("code/told", "")
		said := <-done
		told := d.turnsWith("unread")
		if len(told) != 1 || !strings.Contains(told[0].Turn.Last(), "100 unread") {
			t.Errorf("the model was notified of 100 messages in %d turns, want one\n%s", len(told), said)
			d.model.Dump(t)
		}
	})
}

// wake sends a message to an idle session, and waits for the turn that the message causes. It logs how long that took.
func (d *desk) wake(agent, subject string) {
	d.t.Helper()
	sent := time.Now()
	d.send(agent, subject)
	woken := d.awaitTurn(subject)
	d.t.Logf("%s: %.1f s from the message %q to the woken turn", d.name, woken.At.Sub(sent).Seconds(), subject)
	d.awaitIdle()
}

// sendBurst sends 100 messages concurrently, and returns how long the sending took.
func (d *desk) sendBurst(agent string) time.Duration {
	d.t.Helper()
	began := time.Now()
	var all sync.WaitGroup
	for i := range 100 {
		all.Go(func() {
			if err := d.trySend(agent, fmt.Sprintf("Burst %d", i+1)); err != nil {
				d.t.Error(err)
			}
		})
	}
	all.Wait()
	return time.Since(began)
}

// awaitIdle waits until the server has recorded that the client's session is idle, and returns the session's agent.
func (d *desk) awaitIdle() string {
	d.t.Helper()
	var seen []string
	for deadline := time.Now().Add(clientWait); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		files, _ := filepath.Glob(filepath.Join(d.home, ".mailtree/projects/*/repo/.mailtree/sessions/*"))
		seen = nil
		for _, file := range files {
			data, _ := os.ReadFile(file)
			seen = append(seen, string(data))
			var s struct {
				Client, Agent string
				Working       bool
			}
			if json.Unmarshal(data, &s) == nil && s.Client == d.name && !s.Working {
				return s.Agent
			}
		}
	}
	d.model.Dump(d.t)
	d.t.Fatalf("%s did not become idle: %s", d.name, seen)
	return ""
}
