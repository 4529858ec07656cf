package maildir

import (
	"context"
	"slices"
	"strings"
	"time"

	"mailtree/maildir/core"
	"mailtree/maildir/dismissed"
	"mailtree/maildir/format"
	"mailtree/maildir/tree"
)

// Dismissed says how many diagnostics of each kind were dismissed.
type Dismissed struct {
	Stopped int `json:"stopped"`
	Asleep  int `json:"asleep"`
	Broken  int `json:"broken"`
}

// Dismiss removes the diagnostics that Waits lists now from the agent's future lists: stops by claims, agents that cannot
// be woken, and invalid files. Each of them appears again when it happens again: a newer stop, newer mail that wakes
// nobody, or another error in the file. Dismiss returns faults of the tree and the index.
func (b *Box) Dismiss(ctx context.Context) (*Dismissed, error) {
	w, err := b.Waits(ctx, WaitsQuery{})
	if err != nil {
		return nil, err
	}
	keys, err := b.stillDismissed(ctx)
	if err != nil {
		return nil, err
	}
	for i := range w.Stopped {
		keys = append(keys, keyOfStop(&w.Stopped[i]))
	}
	for i := range w.Asleep {
		keys = append(keys, keyOfUnwoken(&w.Asleep[i]))
	}
	for i := range w.Broken {
		keys = append(keys, keyOfProblem(&w.Broken[i]))
	}
	if err := dismissed.Write(b.p.mail.Tree, b.agent, keys); err != nil {
		return nil, err
	}
	b.p.mail.Store.Feed.RingAgent(b.p.mail.Slug, core.AnyAgent) // the page reads the list again
	return &Dismissed{len(w.Stopped), len(w.Asleep), len(w.Broken)}, nil
}

// stillDismissed returns the keys of the dismissed diagnostics that still exist.
func (b *Box) stillDismissed(ctx context.Context) (dismissed.Keys, error) {
	gone, err := dismissed.Read(b.p.mail.Tree, b.agent)
	if err != nil || len(gone) == 0 {
		return nil, err
	}
	stops, err := b.p.Claims.Stops(ctx)
	if err != nil {
		return nil, err
	}
	asleep, err := b.p.Sessions.Unwoken(ctx)
	if err != nil {
		return nil, err
	}
	broken, err := b.p.mail.Store.Index.Problems(ctx, b.p.mail.Slug, maxWaiting+len(gone))
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(gone, func(key string) bool {
		return !slices.ContainsFunc(stops, func(s Stop) bool { return keyOfStop(&s) == key }) &&
			!slices.ContainsFunc(asleep, func(u Unwoken) bool { return keyOfUnwoken(&u) == key }) &&
			!slices.ContainsFunc(broken, func(p format.Problem) bool { return keyOfProblem(&p) == key })
	}), nil
}

// A key is a digest, so that the keys of many diagnostics fit in the file.

func keyOfStop(s *Stop) string {
	return keyOf("stopped", s.Agent, s.Doing, s.At.UTC().Format(time.RFC3339Nano))
}

func keyOfUnwoken(u *Unwoken) string {
	return keyOf("asleep", u.Agent, u.Since.UTC().Format(time.RFC3339Nano))
}

func keyOfProblem(p *format.Problem) string { return keyOf("broken", p.Path, p.Reason) }

func keyOf(facts ...string) string { return tree.SHA256([]byte(strings.Join(facts, "\x00")))[:16] }
