package tool

import (
	"context"
	"time"

	"mailtree/maildir"
)

// MaxWait is the longest long poll, in seconds. It is this short because clients give up on a call after about a
// minute.
const MaxWait = 50

// MaxLongWait is the longest long poll, in seconds, of a call that asked for progress notifications.
const MaxLongWait = int(maildir.MaxWait / time.Second)

type admissionKey struct{}

// Admission says whether and how long a call may wait for mail.
type Admission struct {
	// Admit counts the call as a waiting call from now on, or returns the error with which to refuse it.
	Admit func() error
	Long  bool // the call asked for progress notifications
}

// WithAdmission puts the Admission of a call into ctx.
func WithAdmission(ctx context.Context, a Admission) context.Context {
	return context.WithValue(ctx, admissionKey{}, a)
}

// Waiting returns the maildir.Waiting of a call that waits for the given time. It contains the call's Admission,
// and ends when the server stops.
func Waiting(ctx context.Context, wait time.Duration, stopping <-chan struct{}) maildir.Waiting {
	a, _ := ctx.Value(admissionKey{}).(Admission)
	return maildir.Waiting{For: wait, Admit: a.Admit, Until: stopping}
}

// LongestWait returns the maximum number of seconds that a call may wait: MaxLongWait or MaxWait.
func LongestWait(ctx context.Context) int {
	if a, _ := ctx.Value(admissionKey{}).(Admission); a.Long {
		return MaxLongWait
	}
	return MaxWait
}
