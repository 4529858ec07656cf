package maildir_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mailtree/fixtures/storetest"
	"mailtree/maildir"
	"mailtree/maildir/format"
	"mailtree/maildir/index"
	"mailtree/maildir/tree"
)

// popped is the result of a Pop.
type popped struct {
	subject string // "" if there was no mail
	err     error
}

// popLater calls Pop in a separate goroutine.
func popLater(t *testing.T, p *maildir.Project, agent string) <-chan popped {
	answer := make(chan popped, 1)
	go func() {
		d, err := p.Box(agent, format.Origin{}).Pop(t.Context())
		if d == nil {
			answer <- popped{"", err}
		} else {
			answer <- popped{d.Subject, err}
		}
	}()
	return answer
}

// isMark returns a function that reports whether a name consists of the given step and a path that ends in ".read".
func isMark(step string) func(name string) bool {
	return func(name string) bool { return strings.HasPrefix(name, step+" ") && strings.HasSuffix(name, ".read") }
}

func isStep(step string) func(name string) bool {
	return func(name string) bool { return name == step }
}

// sendToAnn sends a message to Ann, so that Bob's mail does not change.
func sendToAnn(t *testing.T, p *maildir.Project) <-chan error {
	answer := make(chan error, 1)
	go func() {
		_, err := p.Box("Ann", format.Origin{}).Send(t.Context(), maildir.Draft{To: []string{"Ann"}, Subject: "aside", Body: "b"})
		answer <- err
	}()
	return answer
}

// TestPopAfterFailedPop checks that if a pop fails, the next pop returns the delivery that the failed pop had
// selected.
func TestPopAfterFailedPop(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(t *testing.T, p *maildir.Project, h *halts, index chan error){
		"it was not indexed": func(t *testing.T, p *maildir.Project, h *halts, index chan error) {
			index <- errors.New("the disk failed")
			if a := <-popLater(t, p, "Bob"); !errors.Is(a.err, maildir.ErrUnavailable) {
				t.Errorf("got %+v, want an error", a)
			}
		},
		"it was not staged": func(t *testing.T, p *maildir.Project, h *halts, _ chan error) {
			stage := h.at(isMark("stage"))
			pop := popLater(t, p, "Bob")
			<-stage.reached
			tmp := filepath.Join(p.Dir(), tree.TmpDir)
			if err := errors.Join(os.Rename(tmp, tmp+".away"), os.WriteFile(tmp, nil, 0o600)); err != nil {
				t.Error(err)
			}
			close(stage.goOn)
			if a := <-pop; !errors.Is(a.err, maildir.ErrUnavailable) {
				t.Errorf("got %+v, want an error", a)
			}
			if err := errors.Join(os.Remove(tmp), os.Rename(tmp+".away", tmp)); err != nil {
				t.Error(err)
			}
		},
		"the copy was missing": func(t *testing.T, p *maildir.Project, h *halts, _ chan error) {
			box := filepath.Join(p.Dir(), "agents/Bob/inbox")
			if err := os.Rename(box, box+".away"); err != nil {
				t.Error(err)
			}
			if a := <-popLater(t, p, "Bob"); a != (popped{}) {
				t.Errorf("popped %+v, want nothing", a)
			}
			if err := os.Rename(box+".away", box); err != nil {
				t.Error(err)
			}
			p.Edited([]string{"agents/Bob/inbox"}, false)
			await(t, func() bool { return inbox(t, p, "Bob").Unread == 1 })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var h halts
			failing := make(chan error, 1)
			index := func(x index.Index) index.Index {
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
			send(t, p, "Ann", maildir.Draft{To: []string{"Bob"}, Subject: "one", Body: "b"})
			fail(t, p, &h, failing)
			if a := <-popLater(t, p, "Bob"); a != (popped{"one", nil}) {
				t.Errorf("the next pop: %+v", a)
			}
		})
	}
}
