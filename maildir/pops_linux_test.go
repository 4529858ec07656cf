package maildir_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mailtree/fixtures/storetest"
	"mailtree/maildir"
	"mailtree/maildir/format"
)

// popped is the answer to a Pop.
type popped struct {
	subject string // "" when there was nothing
	err     error
}

// popLater pops in a goroutine of its own.
func popLater(t *testing.T, p *maildir.Project, agent string) <-chan popped {
	answer := make(chan popped, 1)
	go func() {
		d, err := p.Pop(t.Context(), agent)
		if d == nil {
			answer <- popped{"", err}
		} else {
			answer <- popped{d.Subject, err}
		}
	}()
	return answer
}

// isMark reports whether a step concerns a read mark.
func isMark(step string) func(name string) bool {
	return func(name string) bool { return strings.HasPrefix(name, step+" ") && strings.HasSuffix(name, ".read") }
}

func isStep(step string) func(name string) bool {
	return func(name string) bool { return name == step }
}

// TestPopAfterMarks: a pop that finds what its group knew of the inbox outdated asks the index anew, and hands out the oldest that
// is still unread, however many were marked meanwhile.
func TestPopAfterMarks(t *testing.T) {
	t.Parallel()
	const first, marked = 12, 10 // pops under way; deliveries marked behind them
	var h halts
	s := &stepper{}
	step := func(name string) { s.step(name); h.pass(name) }
	p := project(t, storetest.Config{NoWatcher: true, Step: step}, "Ann", "Bob")
	for n := range first + 1 + marked + 1 {
		send(t, p, maildir.Draft{From: "Ann", To: []string{"Bob"}, Subject: fmt.Sprint(n), Body: "b"})
	}
	messages := inbox(t, p, "Bob").Messages // newest first
	s.stopAt("")                            // and count
	stagedMarks := func() int { return s.countIf(isMark("stage")) }

	// A group of pops is in the index and has not ended, so that the next pop asks for more than it needs.
	early := h.at(isStep("journal"))
	sends := []<-chan error{sendToAnn(t, p)}
	<-early.reached
	var pops []<-chan popped
	for range first {
		pops = append(pops, popLater(t, p, "Bob"))
	}
	await(t, func() bool { return stagedMarks() == first })
	ingested := h.at(isMark("tidy"))
	close(early.goOn)
	<-ingested.reached

	// The next group gathers behind one that waits.
	before := h.at(isStep("journal"))
	sends = append(sends, sendToAnn(t, p))
	<-before.reached
	next := popLater(t, p, "Bob")
	await(t, func() bool { return stagedMarks() == first+1 })
	close(ingested.goOn)
	for _, answer := range pops {
		if a := <-answer; a.subject == "" || a.err != nil {
			t.Errorf("%+v", a)
		}
	}
	for n := first + 1; n <= first+marked; n++ {
		d := messages[len(messages)-1-n]
		if err := os.WriteFile(filepath.Join(p.Tree().Dir(), format.ReadMark(d.CopyPath)), []byte("2026-01-01T00:00:00Z\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		p.Edited([]string{format.ReadMark(d.CopyPath)}, false)
	}
	await(t, func() bool { return inbox(t, p, "Bob").Unread == 2 })
	last := popLater(t, p, "Bob")
	await(t, func() bool { return stagedMarks() == first+2 || len(last) > 0 })
	close(before.goOn)
	if a := <-next; a.err != nil || a.subject != fmt.Sprint(first) {
		t.Errorf("before the marks: %+v", a)
	}
	if a := <-last; a.err != nil || a.subject != fmt.Sprint(first+1+marked) {
		t.Errorf("behind the marks: %+v", a)
	}
	for _, answer := range sends {
		if err := <-answer; err != nil {
			t.Error(err)
		}
	}
}

// sendToAnn sends beside Bob's mail.
func sendToAnn(t *testing.T, p *maildir.Project) <-chan error {
	answer := make(chan error, 1)
	go func() {
		_, err := p.Send(t.Context(), maildir.Draft{From: "Ann", To: []string{"Ann"}, Subject: "aside", Body: "b"})
		answer <- err
	}()
	return answer
}

// gather makes the writer gather a group behind one that waits, until release.
func gather(t *testing.T, p *maildir.Project, h *halts) (release func()) {
	journal := h.at(isStep("journal"))
	first := sendToAnn(t, p)
	<-journal.reached
	staged := h.at(func(name string) bool { return strings.HasPrefix(name, "stage agents/Ann/inbox/") })
	second := sendToAnn(t, p)
	<-staged.reached
	close(staged.goOn)
	return func() {
		close(journal.goOn)
		if err := errors.Join(<-first, <-second); err != nil {
			t.Error(err)
		}
	}
}

// TestPopAfterFailedPop: what a failed pop gave back is handed to the next one, also by a group that passed it over, or failed to
// hand it out itself; and so is what was away for a moment.
func TestPopAfterFailedPop(t *testing.T) {
	t.Parallel()
	failed := func(t *testing.T, answer <-chan popped) {
		if a := <-answer; !errors.Is(a.err, maildir.ErrUnavailable) {
			t.Errorf("got %+v, want an error", a)
		}
	}
	nothing := func(t *testing.T, answer <-chan popped) {
		if a := <-answer; a != (popped{}) {
			t.Errorf("popped %+v, want nothing", a)
		}
	}
	for name, fail := range map[string]func(t *testing.T, p *maildir.Project, h *halts, index chan error) (release func()){
		"an earlier group failed": func(t *testing.T, p *maildir.Project, h *halts, index chan error) (release func()) {
			ingest := h.at(isStep("ingest"))
			pop := popLater(t, p, "Bob")
			<-ingest.reached
			release = gather(t, p, h)
			nothing(t, popLater(t, p, "Bob"))
			index <- errors.New("the disk failed")
			close(ingest.goOn)
			failed(t, pop)
			return release
		},
		"it was not staged": func(t *testing.T, p *maildir.Project, h *halts, _ chan error) (release func()) {
			release = gather(t, p, h)
			stage := h.at(isMark("stage"))
			pop := popLater(t, p, "Bob")
			<-stage.reached
			box := filepath.Join(p.Tree().Dir(), "agents/Bob/inbox")
			if err := errors.Join(os.Rename(box, box+".away"), os.WriteFile(box, nil, 0o600)); err != nil {
				t.Error(err)
			}
			close(stage.goOn)
			failed(t, pop)
			if err := errors.Join(os.Remove(box), os.Rename(box+".away", box)); err != nil {
				t.Error(err)
			}
			return release
		},
		"the copy was away": func(t *testing.T, p *maildir.Project, h *halts, _ chan error) (release func()) {
			release = gather(t, p, h)
			box := filepath.Join(p.Tree().Dir(), "agents/Bob/inbox")
			if err := os.Rename(box, box+".away"); err != nil {
				t.Error(err)
			}
			nothing(t, popLater(t, p, "Bob"))
			if err := os.Rename(box+".away", box); err != nil {
				t.Error(err)
			}
			p.Edited([]string{"agents/Bob/inbox"}, false)
			await(t, func() bool { return inbox(t, p, "Bob").Unread == 1 })
			return release
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var h halts
			failing := make(chan error, 1)
			index := func(x maildir.Index) maildir.Index {
				return &watched{Index: x, ingested: func([]string) error {
					select {
					case err := <-failing:
						return err
					default:
						return nil
					}
				}}
			}
			p := project(t, storetest.Config{NoWatcher: true, Step: h.pass, Index: index}, "Ann", "Bob")
			send(t, p, maildir.Draft{From: "Ann", To: []string{"Bob"}, Subject: "one", Body: "b"})
			release := fail(t, p, &h, failing)
			stage := h.at(isMark("stage"))
			next := popLater(t, p, "Bob")
			await(t, func() bool { return reached(stage) || len(next) > 0 })
			close(stage.goOn)
			release()
			if a := <-next; a != (popped{"one", nil}) {
				t.Errorf("the next pop: %+v", a)
			}
		})
	}
}
