package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"mailtree/fixtures/model"
	"mailtree/fixtures/tmuxtest"
)

// TestClientsTogether checks that three clients on one code base can send each other ten messages. The user types each
// client's first prompt and nothing more. Every message wakes its recipient. The recipient's model reads the message,
// and either replies to it or writes to the third client. Each message is announced once, and only to its recipient,
// even though the server is killed right after it receives a message.
func TestClientsTogether(t *testing.T) {
	const begin = "Begin the round."
	claude := newDesk(t, "claude")
	codex, opencode := claude.beside("codex"), claude.beside("opencode")
	desks := []*desk{claude, codex, opencode}
	names := map[*desk]string{}
	for d, k := range map[*desk]kit{codex: codexKit, opencode: opencodeKit} {
		d.start(k).Submit("Begin the work.", func() bool { return len(d.turnsWith("Begin the work.")) > 0 })
		names[d] = d.awaitIdle()
	}
	screen := claude.start(claudeKit)
	names[claude] = claude.awaitIdle()

	// Message n goes from round[n-1] to round[n]. Each client sends every other client both replies and messages that
	// start a new thread.
	round := []*desk{claude, codex, claude, opencode, codex, opencode, claude, codex, opencode, claude, opencode}
	for _, d := range desks {
		d.model.Script(t, d.rules(begin, round, names)...)
	}
	screen.Submit(begin, func() bool { return len(claude.turnsWith(begin)) > 0 })
	claude.awaitMessage(5)
	killed := time.Now()
	claude.restart()
	t.Logf("the server was down for %.1f s", time.Since(killed).Seconds())
	last := len(round) - 1
	round[last].awaitTurn(roundBody(last))
	for _, d := range desks {
		d.awaitIdle()
	}

	mail := claude.mail(names)
	if len(mail) != last {
		t.Fatalf("%d messages were delivered, want %d", len(mail), last)
	}
	took := mail[last-1].Receipt.DeliveredAt.Sub(mail[0].Receipt.DeliveredAt)
	t.Logf("%.1f s from one message to the next. The time from each message to the woken turn:", took.Seconds()/float64(last-1))
	for i, m := range mail {
		from, to := round[i], round[i+1]
		if m.From != names[from] || m.Receipt.Agent != names[to] {
			t.Errorf("message %d is from %s to %s, want it from %s to %s", i+1, m.From, m.Receipt.Agent, names[from], names[to])
		}
		if m.Receipt.AnnouncedAt.IsZero() || !m.Receipt.Read {
			t.Errorf("the receipt of message %d: %+v", i+1, m.Receipt)
		}
		for _, d := range desks {
			announcement := m.ID + " from "
			turns := d.turnsWith(announcement)
			told, want := 0, 0
			for _, turn := range turns {
				told += strings.Count(turn.Turn.Last(), announcement)
			}
			if d == to {
				want = 1
			}
			if told != want {
				t.Errorf("%s was notified %d times of message %d, want %d", d.name, told, i+1, want)
			} else if d == to {
				t.Logf("%.1f s from message %d, %s to %s, to the woken turn",
					turns[0].At.Sub(m.Receipt.DeliveredAt).Seconds(), i+1, from.name, to.name)
			}
		}
	}
}

// start sets the client up and opens it in a terminal.
func (d *desk) start(k kit) *tmuxtest.Screen {
	d.t.Helper()
	k.prepare(d)
	d.setUp("http")
	screen := d.open(k.terminal)
	d.t.Cleanup(func() {
		if d.t.Failed() {
			d.t.Logf("the screen of %s showed:\n%s", d.name, screen.Text())
			d.model.Dump(d.t)
		}
	})
	if k.greet != nil {
		k.greet(screen)
	}
	return screen
}

func roundBody(n int) string { return fmt.Sprintf("This is message %d.", n) }

// rules returns the script for a client's model in the round. When the model is notified of mail, it reads the newest
// message. After it has read message n, it sends message n+1.
func (d *desk) rules(begin string, round []*desk, names map[*desk]string) []model.Rule {
	rules := []model.Rule{{
		When: `unread messages? \(mail\)`,
		Calls: say("check_my_messages", map[string]any{
			"project_key":    d.code,
			"agent_name":     names[d],
			"include_bodies": true,
			"mark_read":      true,
			"limit":          1,
		}),
	}}
	for n, from := range round[:len(round)-1] {
		if from != d {
			continue
		}
		message := map[string]any{
			"project_key": d.code,
			"from_agent":  names[d],
			"body_md":     roundBody(n + 1),
			"key":         fmt.Sprintf("message-%d", n+1),
		}
		rule := model.Rule{When: `id\W+(msg_\w+)[^{}]*` + regexp.QuoteMeta(roundBody(n))}
		if n == 0 {
			rule.When = begin
		}
		if n > 0 && round[n+1] == round[n-1] {
			message["reply_to_message_id"] = "$1"
			rule.Calls = say("reply_message", message)
		} else {
			message["to"] = []string{names[round[n+1]]}
			message["subject"] = fmt.Sprintf("Message %d", n+1)
			rule.Calls = say("send_message", message)
		}
		rules = append(rules, rule)
	}
	return rules
}

// heldMail is a message in an agent's inbox, with its receipt.
type heldMail struct {
	ID      string `json:"message_id"`
	From    string
	Receipt struct {
		Agent       string
		DeliveredAt time.Time `json:"delivered_ts"`
		AnnouncedAt time.Time `json:"announced_ts"`
		Read        bool
	}
}

// mail returns the mail of the named agents, oldest first.
func (d *desk) mail(names map[*desk]string) []heldMail {
	d.t.Helper()
	var all []heldMail
	for _, name := range names {
		var agent struct{ Mail []heldMail }
		out := d.call("whois", map[string]any{"project_key": d.code, "agent_name": name})
		if err := json.Unmarshal([]byte(out), &agent); err != nil {
			d.t.Fatal(err)
		}
		all = append(all, agent.Mail...)
	}
	slices.SortFunc(all, func(a, b heldMail) int { return a.Receipt.DeliveredAt.Compare(b.Receipt.DeliveredAt) })
	return all
}

// awaitMessage waits until the store contains the given number of messages.
func (d *desk) awaitMessage(n int) {
	d.t.Helper()
	var files []string
	for deadline := time.Now().Add(clientWait); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		files, _ = filepath.Glob(filepath.Join(d.home, ".mailtree/projects/*/repo/messages/*/*/*/*.md"))
		if len(files) >= n {
			return
		}
	}
	d.t.Fatalf("there are %d messages, want %d", len(files), n)
}
