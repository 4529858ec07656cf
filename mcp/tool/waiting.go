package tool

import (
	"context"
	"time"

	"mailtree/maildir"
)

// MaxWait is the longest long poll, in seconds: clients give up on a call after about a minute.
const MaxWait = 50

// MaxLongWait is the longest long poll of a call whose client hears of its progress, in seconds.
const MaxLongWait = int(maildir.MaxWait / time.Second)

type admissionKey struct{}

// Admission is how a call may wait for mail.
type Admission struct {
	// Admit counts the call as a waiting one from then on, or returns the error to refuse it with.
	Admit func() error
	Long  bool // its client hears of its progress
}

// WithAdmission puts into ctx how the call may wait.
func WithAdmission(ctx context.Context, a Admission) context.Context {
	return context.WithValue(ctx, admissionKey{}, a)
}

// Waiting is how a call waits for mail, so long: where its Admission has it, until the server stops.
func Waiting(ctx context.Context, wait time.Duration, stopping <-chan struct{}) maildir.Waiting {
	a, _ := ctx.Value(admissionKey{}).(Admission)
	return maildir.Waiting{For: wait, Admit: a.Admit, Until: stopping}
}

// LongestWait is how long a call may wait, in seconds: MaxLongWait or MaxWait.
func LongestWait(ctx context.Context) int {
	if a, _ := ctx.Value(admissionKey{}).(Admission); a.Long {
		return MaxLongWait
	}
	return MaxWait
}
