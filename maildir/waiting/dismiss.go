package waiting

import (
	"context"
	"slices"
	"strings"
	"time"

	"mailtree/maildir/claims"
	"mailtree/maildir/core"
	"mailtree/maildir/dismissed"
	"mailtree/maildir/format"
	"mailtree/maildir/tree"
	"mailtree/maildir/wake"
)

// Dismissed contains the number of diagnostics of each kind that were dismissed.
type Dismissed struct {
	Stopped int `json:"stopped"`
	Asleep  int `json:"asleep"`
	Broken  int `json:"broken"`
}

// Dismiss hides from the agent the diagnostics that List currently returns: agents blocked by claims, agents that
// cannot be woken, and invalid files. A diagnostic appears again if the agent is blocked again, if newer mail cannot
// wake its recipient, or if the file has a different error. Dismiss returns errors from the tree and the index.
func (l *Lister) Dismiss(ctx context.Context) (*Dismissed, error) {
	w, err := l.List(ctx, Query{})
	if err != nil {
		return nil, err
	}
	keys, err := l.stillDismissed(ctx)
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
	if err := dismissed.Write(l.Mail.Tree, l.Agent, keys); err != nil {
		return nil, err
	}
	l.Mail.Store.Feed.RingAgent(l.Mail.Slug, core.AnyAgent) // makes the page reload the list
	return &Dismissed{len(w.Stopped), len(w.Asleep), len(w.Broken)}, nil
}

// stillDismissed returns the keys of the dismissed diagnostics that still exist.
func (l *Lister) stillDismissed(ctx context.Context) (dismissed.Keys, error) {
	gone, err := dismissed.Read(l.Mail.Tree, l.Agent)
	if err != nil || len(gone) == 0 {
		return nil, err
	}
	stops, err := l.Claims.Stops(ctx)
	if err != nil {
		return nil, err
	}
	asleep, err := l.Sessions.Unwoken(ctx)
	if err != nil {
		return nil, err
	}
	broken, err := l.Mail.Store.Problems(ctx, l.Mail.Slug, maxWaiting+len(gone))
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(gone, func(key string) bool {
		return !slices.ContainsFunc(stops, func(s claims.Stop) bool { return keyOfStop(&s) == key }) &&
			!slices.ContainsFunc(asleep, func(u wake.Unwoken) bool { return keyOfUnwoken(&u) == key }) &&
			!slices.ContainsFunc(broken, func(p format.Problem) bool { return keyOfProblem(&p) == key })
	}), nil
}

// A key is a digest, so that the keys of many diagnostics fit in the file.

func keyOfStop(s *claims.Stop) string {
	return keyOf("stopped", s.Agent, s.Doing, s.At.UTC().Format(time.RFC3339Nano))
}

func keyOfUnwoken(u *wake.Unwoken) string {
	return keyOf("asleep", u.Agent, u.Since.UTC().Format(time.RFC3339Nano))
}

func keyOfProblem(p *format.Problem) string { return keyOf("broken", p.Path, p.Reason) }

func keyOf(facts ...string) string { return tree.SHA256([]byte(strings.Join(facts, "\x00")))[:16] }

// Stuck returns the other agents whose work was blocked by claims, and the agents with unread mail that cannot be
// woken, without the diagnostics that the agent has dismissed.
func (l *Lister) Stuck(ctx context.Context) (stopped []claims.Stop, asleep []wake.Unwoken, err error) {
	gone, err := dismissed.Read(l.Mail.Tree, l.Agent)
	if err != nil {
		return nil, nil, err
	}
	if stopped, err = l.Claims.Stops(ctx); err != nil {
		return nil, nil, err
	}
	stopped = slices.DeleteFunc(stopped, func(s claims.Stop) bool { return s.Agent == l.Agent || gone.Has(keyOfStop(&s)) })
	asleep, err = l.Sessions.Unwoken(ctx)
	return stopped, slices.DeleteFunc(asleep, func(u wake.Unwoken) bool { return gone.Has(keyOfUnwoken(&u)) }), err
}
