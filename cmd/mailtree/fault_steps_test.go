package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"mailtree/fixtures/inmemory"
	"mailtree/fixtures/storetest"
	"mailtree/maildir/format"
)

// stepped is one kind of operation. TestFaultSteps kills the server at each of its steps.
type stepped struct {
	name string
	// prepare brings the store into a state in which the operation has something to do.
	prepare func(s *steps)
	do      func(s *steps) error
	// look returns how much of the operation is in the tree: 0 for nothing, or whole for everything. Any other number
	// means that the operation is incomplete.
	look  func(s *steps) int
	whole int
	told  func(s *steps) // adds an answered operation to the ledger
	slow  bool           // a try takes seconds, so the short form tries fewer steps
}

// stride returns how many more steps the server completes in each try than in the previous try.
func (op *stepped) stride() int {
	if op.slow {
		return extent(5, 1)
	}
	return 1
}

// steps is a series of tries of one kind of operation.
type steps struct {
	*load
	n    int    // the current try
	body string // the body of the current message
	ids  []string
	old  string // the previous content of the claim's file

	takesAway bool // the operation removes messages, so git log contains messages that are missing from the tree
}

// TestFaultSteps kills the server before or after each step of each operation: staging of each file, journal, sync,
// each rename, ingest, tidying, record, response. After the next start, the operation is complete or absent. If the
// client received a response, the operation is complete.
func TestFaultSteps(t *testing.T) {
	longer(t)
	t.Parallel()
	for _, op := range []stepped{
		{"send", nothing, sendThree, lookSent, 5, nothing, false},
		{"send to another domain", emptyQueue, sendOutside, lookQueued, 5, nothing, false},
		{"reply", oneAsking, answer, lookAnswer, 5, nothing, false},
		{"acknowledge", oneMessage, acknowledge, lookAck, 2, toldAck, false},
		{"mark read", threeMessages, markRead, countMarks(".read"), 3, nothing, false},
		{"pop", oneMessage, popOne, countMarks(".read"), 1, nothing, false},
		{"pop and acknowledge", oneMessage, popAndAcknowledge, lookBoth, 2, toldAck, false},
		{"unread", oneRead, unread, lookUnread, 1, nothing, false},
		{"claim", nothing, claimStep, lookClaim, 1, nothing, false},
		{"renew", oneClaim, claimStep, lookClaim, 1, nothing, false},
		{"claim again", releasedClaim, claimStep, lookClaim, 1, nothing, false},
		{"release", oneClaim, release, lookReleased, 1, nothing, false},
		{"delete", oneKnown, onKnown("delete"), lookDeleted, 5, nothing, false},
		{"amend", oneKnown, onKnown("amend"), lookAmended, 7, nothing, false},
		{"undo a send", oneKnown, onKnown("undo"), lookWithdrawn, 8, nothing, false},
		{"undo a reply", oneAnswered, undoAnswer, lookUnanswered, 5, nothing, false},
		{"redo a send", oneWithdrawn, onKnown("redo"), lookRestored, 5, nothing, false},
		{"undo a deletion", oneDeleted, onKnown("undo"), lookRestored, 5, nothing, false},
		{"claim on shared mail", onShared, claimStep, lookClaim, 1, nothing, false},
		{"sync", pushed, syncStep, lookSynced, 4, nothing, false},
		{"send by saving", sentBefore, saveStep, lookSent, 3, nothing, true},
	} {
		t.Run(op.name, func(t *testing.T) {
			t.Parallel()
			op.run(t)
		})
	}
}

func nothing(*steps) {}

// run repeats the operation until the server survives it. In each try, the server dies at a later step.
func (op *stepped) run(t *testing.T) {
	d := newDaemon(t, filepath.Join(inmemory.Dir(t), "store"))
	d.env = []string{"GATEWAY_ALLOW=example.invalid", "SYNC_INTERVAL=1h"}
	d.start()
	s := &steps{load: newLoad(t, d)}
	whole, absent := 0, 0
	for died := true; died; {
		s.n += op.stride()
		op.prepare(s)
		if _, err := d.verb("die", "at", strconv.Itoa(s.n)); err != nil {
			t.Fatal(err)
		}
		err := op.do(s)
		if died = err != nil; died {
			d.cmd.Wait()
			d.gone()
		} else {
			op.told(s)
			d.kill() // an answered operation must survive this kill, too
		}
		d.start()
		switch got := op.look(s); {
		case got == op.whole:
			whole++
		case got == 0 && died:
			absent++
		default:
			t.Errorf("killed at step %d (died in it: %v): %d of %d parts are there", s.n, died, got, op.whole)
		}
		if s.n > 60 {
			t.Fatal("the operation never completes")
		}
	}
	emptyQueue(s) // otherwise, the released program would send the queued emails
	least := 2
	if op.stride() > 1 { // not every step is tried
		least = 1
	}
	if absent < least || whole < 2 { // the last try, which the server survives, is always complete
		t.Errorf("%d absent and %d whole: the server did not die at every step", absent, whole)
	}
	s.finish()
	t.Logf("%s: killed at each of %d steps, %d times absent, %d times whole", op.name, s.n-1, absent, whole)
}

// finish stops the server, and checks the store against its invariants.
func (s *steps) finish() {
	if !s.takesAway {
		s.d.check(s.ledger)
		return
	}
	s.d.stop()
	for _, p := range storetest.CheckEdited(s.d.t.Context(), s.d.store) {
		s.d.t.Error(p)
	}
}

func (s *steps) must(err error) {
	s.d.t.Helper()
	if err != nil {
		s.d.t.Fatal(err)
	}
}

// files returns the files in the tree that match a pattern.
func (s *steps) files(pattern string) []string {
	all, err := filepath.Glob(filepath.Join(s.d.tree(), pattern))
	s.must(err)
	return all
}

const someDay = "*/*/*/"

func sendThree(s *steps) error {
	s.body = fmt.Sprintf("Body of try %d.", s.n)
	return s.send(message{From: "Ann", To: []string{"Bob"}, CC: []string{"Cid"}, BCC: []string{"Dora"}, Subject: "s",
		Body: s.body, Project: faultKey})
}

// emptyQueue removes the emails that would be sent to other domains. The fault program sends none.
func emptyQueue(s *steps) { s.must(os.RemoveAll(filepath.Join(s.d.tree(), format.QueueDir))) }

// sendOutside sends a message to an agent and to two recipients at another domain.
func sendOutside(s *steps) error {
	s.body = fmt.Sprintf("Body of try %d.", s.n)
	return s.send(message{From: "Ann", To: []string{"Bob", "cat@example.invalid"}, CC: []string{}, BCC: []string{"dan@example.invalid"},
		Subject: "s", Body: s.body, Project: faultKey})
}

// lookQueued counts the files of the message and the complete files in the queue.
func lookQueued(s *steps) int {
	n := lookSent(s)
	for _, f := range s.files(format.QueueDir + "/*.json") {
		data, err := os.ReadFile(f)
		s.must(err)
		if strings.HasSuffix(string(data), "}\n") {
			n++
		}
	}
	return n
}

// lookSent counts the files that contain the body of the current try's message.
func lookSent(s *steps) (n int) {
	for _, f := range append(s.files("messages/"+someDay+"*.md"), s.files("agents/*/*/"+someDay+"*.md")...) {
		data, err := os.ReadFile(f)
		s.must(err)
		if strings.Contains(string(data), s.body) {
			n++
		}
	}
	return n
}

// sentBefore waits until the message that was saved in the previous try has been sent, regardless of how that try
// ended. It checks that the message is sent exactly once.
func sentBefore(s *steps) {
	s.d.t.Helper()
	if s.body == "" {
		return
	}
	until(s.d.t, "the saved message to be sent", time.Minute, func() bool {
		return len(s.files("agents/Ann/outbox/*.md")) == 0 && lookSent(s) == 3 && s.listed()
	})
	if n := lookSent(s); n != 3 {
		s.d.t.Errorf("what was saved before try %d is in %d files, not 3", s.n, n)
	}
}

// saveStep saves a message to Bob in Ann's outbox, and returns when it is sent.
func saveStep(s *steps) error {
	s.body = fmt.Sprintf("Body of try %d.", s.n)
	s.ledger.Try(s.body)
	s.ledger.Unsure(s.body)
	name := filepath.Join(s.d.tree(), "agents", "Ann", "outbox", fmt.Sprintf("try %d.md", s.n))
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(name, []byte("---json\n{\"to\": [\"Bob\"]}\n---\n\n"+s.body+"\n"), 0o600); err != nil {
		return err
	}
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if _, err := s.d.verb("flush", "project", faultKey); err != nil {
			return err
		}
		if s.listed() {
			_, err := s.d.verb("flush", "project", faultKey)
			return err
		}
	}
	return errors.New("not sent in a minute")
}

// listed reports whether the newest message in Bob's inbox belongs to the current try.
func (s *steps) listed() bool {
	var page struct{ Messages []struct{ Subject string } }
	err := s.d.call("check_my_messages", map[string]any{"project_key": faultKey, "agent_name": "Bob", "limit": 1}, &page)
	return err == nil && len(page.Messages) == 1 && page.Messages[0].Subject == s.body
}

// deliver sends n messages to Bob.
func (s *steps) deliver(n int) {
	s.ids = nil
	for i := range n {
		m := message{From: "Ann", To: []string{"Bob"}, CC: []string{}, BCC: []string{}, Subject: "s",
			Body: fmt.Sprintf("Body %d of try %d.", i, s.n), Project: faultKey}
		s.must(s.send(m))
		s.ids = append(s.ids, s.boxes["Bob"][len(s.boxes["Bob"])-1])
	}
}

func oneMessage(s *steps) {
	popAll(s)
	s.deliver(1)
}

func threeMessages(s *steps) {
	popAll(s)
	s.deliver(3)
}

func popAll(s *steps) {
	for {
		id, err := s.popped("Bob")
		s.must(err)
		if id == "" {
			return
		}
	}
}

func oneRead(s *steps) {
	s.deliver(1)
	s.ledger.Ask("Bob", s.ids[0])
	_, err := s.d.verb("read", "project", faultKey, "agent", "Bob", "id", s.ids[0])
	s.must(err)
}

func acknowledge(s *steps) error {
	s.ledger.Ask("Bob", s.ids[0])
	return s.d.call("acknowledge_message", map[string]string{"project_key": faultKey, "agent_name": "Bob", "message_id": s.ids[0]}, nil)
}

func toldAck(s *steps) { s.ledger.Ack("Bob", s.ids[0]) }

func lookAck(s *steps) int { return countMarks(".read")(s) + countMarks(".ack")(s) }

func countMarks(ext string) func(s *steps) int {
	return func(s *steps) (n int) {
		for _, id := range s.ids {
			n += len(s.files("agents/Bob/inbox/" + someDay + id + ext))
		}
		return n
	}
}

func markRead(s *steps) error {
	for _, id := range s.ids {
		s.ledger.Ask("Bob", id)
	}
	return s.d.call("check_my_messages", map[string]any{"project_key": faultKey, "agent_name": "Bob", "mark_read": true,
		"unread_only": true}, nil)
}

func popOne(s *steps) error {
	id, err := s.popped("Bob")
	if err == nil && id != s.ids[0] {
		s.d.t.Errorf("popped %q, not %q", id, s.ids[0])
	}
	return err
}

// popAndAcknowledge pops and acknowledges a message in one group, because both create the same mark.
func popAndAcknowledge(s *steps) error {
	s.ledger.Ask("Bob", s.ids[0])
	_, err := s.d.verb("both", "project", faultKey, "agent", "Bob", "id", s.ids[0])
	return err
}

// lookBoth returns 0 for a pop without an acknowledgment. An acknowledgment without a read mark is incomplete.
func lookBoth(s *steps) int {
	switch read, ack := countMarks(".read")(s), countMarks(".ack")(s); {
	case read+ack == 2:
		return 2
	case ack == 0:
		return 0
	}
	return -1
}

func unread(s *steps) error {
	s.ledger.Unread("Bob", s.ids[0])
	_, err := s.d.verb("unread", "project", faultKey, "agent", "Bob", "id", s.ids[0])
	return err
}

func lookUnread(s *steps) int { return 1 - countMarks(".read")(s) }

func claimStep(s *steps) error { return s.claim("Ann", s.pattern()) }

// pattern returns a new pattern for each try.
func (s *steps) pattern() string { return fmt.Sprintf("src/%d", s.n) }

func oneClaim(s *steps) {
	s.must(claimStep(s))
	s.old = s.claimText()
}

func releasedClaim(s *steps) {
	oneClaim(s)
	s.must(release(s))
	s.old = s.claimText()
}

// claimText returns the content of the claim's file and whether the claim is released, or "" if there is no claim.
func (s *steps) claimText() string {
	for _, f := range s.files("claims/*.json") {
		data, err := os.ReadFile(f)
		s.must(err)
		if strings.Contains(string(data), `"Ann/`+s.pattern()+`"`) {
			_, err := os.Stat(strings.TrimSuffix(f, ".json") + ".released")
			return fmt.Sprintf("%s released: %v", data, err == nil)
		}
	}
	return ""
}

// lookClaim returns 0 for the old claim, and 1 for a new claim that is not released. Anything else is incomplete.
func lookClaim(s *steps) int {
	switch now := s.claimText(); {
	case now == s.old:
		return 0
	case strings.HasSuffix(now, "released: false") && !strings.Contains(now, expiry(s.old)):
		return 1
	}
	return -1
}

// expiry returns the line of a claim's file that contains the expiry.
func expiry(text string) string {
	for line := range strings.Lines(text) {
		if strings.Contains(line, `"expires"`) {
			return line
		}
	}
	return "none"
}

func release(s *steps) error {
	s.ledger.Unclaim("Ann", "Ann/"+s.pattern())
	return s.d.call("release_claims", map[string]any{"project_key": faultKey, "agent_name": "Ann",
		"paths": []string{"Ann/" + s.pattern()}}, nil)
}

func lookReleased(s *steps) int {
	switch s.claimText() {
	case s.old:
		return 0
	case strings.Replace(s.old, "released: false", "released: true", 1):
		return 1
	}
	return -1
}
