package maildir_test

import (
	"errors"
	"fmt"
	"testing"

	"mailtree/fixtures/storetest"
	"mailtree/maildir"
	"mailtree/maildir/format"
)

// together makes the calls while the writer is stopped at a step, so that all of them are in the same group. It
// returns their errors.
func together(t *testing.T, p *maildir.Project, h *halts, calls ...func() error) (errs []error) {
	t.Helper()
	journal := h.at(isStep("journal"))
	aside := sendToAnn(t, p)
	<-journal.reached
	answers := make(chan error, len(calls))
	for _, call := range calls {
		go func() { answers <- call() }()
	}
	await(t, func() bool { return maildir.Queued(p) == len(calls) })
	close(journal.goOn)
	if err := <-aside; err != nil {
		t.Error(err)
	}
	for range calls {
		errs = append(errs, <-answers)
	}
	return errs
}

// TestGroupDecidesOnce checks several queued operations that depend on the same name, key, mailbox or claim. The plan
// of each operation must take the results of the earlier operations into account.
func TestGroupDecidesOnce(t *testing.T) {
	t.Parallel()
	const n = 8
	var h halts
	p := project(t, storetest.Config{NoWatcher: true, Step: h.pass, Depth: n}, "Ann", "Bob", "Cy")
	names, ids := make(chan string, n), make(chan string, n)
	var registers, keyed, bounded, pops []func() error
	for i := range n {
		registers = append(registers, func() error {
			r, err := p.Agents.Register(t.Context(), maildir.Registration{NameHint: "Eve"})
			if err == nil {
				names <- r.Name
			}
			return err
		})
		keyed = append(keyed, func() error {
			s, err := p.Box("Ann", format.Origin{}).Send(t.Context(), maildir.Draft{To: []string{"Bob"}, Subject: "s", Body: "b", Key: "k"})
			if err == nil {
				ids <- s.ID
			}
			return err
		})
		for _, half := range []int{0, 1} {
			bounded = append(bounded, func() error {
				_, err := p.Box("Ann", format.Origin{}).Send(t.Context(), maildir.Draft{To: []string{"Cy"}, Body: fmt.Sprint(half, i), Bounded: true})
				return err
			})
		}
	}
	if err := errors.Join(append(together(t, p, &h, registers...), together(t, p, &h, keyed...)...)...); err != nil {
		t.Fatal(err)
	}
	given, sent := map[string]bool{}, map[string]bool{}
	for range n {
		given[<-names], sent[<-ids] = true, true
	}
	if len(given) != n || !given["Eve"] || len(sent) != 1 {
		t.Errorf("%d agents got the names %v; sends with the same key created the messages %v", n, given, sent)
	}
	refused := 0
	for _, err := range together(t, p, &h, bounded...) {
		if errors.Is(err, maildir.ErrUnavailable) {
			refused++
		} else if err != nil {
			t.Error(err)
		}
	}
	if got := inbox(t, p, "Cy").Unread; got != n || refused != n {
		t.Errorf("%d unread, %d refused, in a mailbox with room for %d", got, refused, n)
	}
	popped := make(chan string, n)
	for range n {
		pops = append(pops, func() error {
			d, err := p.Box("Cy", format.Origin{}).Pop(t.Context())
			if err == nil && d == nil {
				err = errors.New("nothing popped")
			}
			if err == nil {
				popped <- d.ID
			}
			return err
		})
	}
	if err := errors.Join(together(t, p, &h, pops...)...); err != nil {
		t.Fatal(err)
	}
	taken := map[string]bool{}
	for range n {
		taken[<-popped] = true
	}
	if len(taken) != n {
		t.Errorf("%d deliveries were popped %d times", len(taken), n)
	}
}
