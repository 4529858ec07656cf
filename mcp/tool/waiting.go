package tool

import (
	"context"
	"time"

	"mailtree/maildir"
)

// MaxWait is the maximum duration of a long poll, in seconds. A longer wait would be useless, because clients give up
// on a call after about a minute.
const MaxWait = 50

// MaxLongWait is the maximum duration, in seconds, of a long poll if the call asked for progress notifications.
const MaxLongWait = int(maildir.MaxWait / time.Second)

type admissionKey struct{}

// Admission says whether a call may wait for mail, and for how long.
type Admission struct {
	// Admit counts the call as waiting. If Admit returns an error, the call must be refused with that error.
	Admit func() error
	Long  bool // the call asked for progress notifications
}

// WithAdmission returns a context that contains a call's Admission.
func WithAdmission(ctx context.Context, a Admission) context.Context {
	return context.WithValue(ctx, admissionKey{}, a)
}

// Waiting returns the maildir.Waiting for a call that waits for the given time. It contains the call's Admission, and
// the wait ends when the server stops.
func Waiting(ctx context.Context, wait time.Duration, stopping <-chan struct{}) maildir.Waiting {
	a, _ := ctx.Value(admissionKey{}).(Admission)
	return maildir.Waiting{For: wait, Admit: a.Admit, Until: stopping}
}

// LongestWait returns the maximum number of seconds that the call may wait: MaxLongWait or MaxWait.
func LongestWait(ctx context.Context) int {
	if a, _ := ctx.Value(admissionKey{}).(Admission); a.Long {
		return MaxLongWait
	}
	return MaxWait
}
