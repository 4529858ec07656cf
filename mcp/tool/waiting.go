package tool

import (
	"context"
	"time"

	"mailtree/maildir"
)

// MaxWait is the longest long poll, in seconds: clients give up on a call after about a minute.
const MaxWait = int(maildir.MaxWait / time.Second)

type admissionKey struct{}

// WithAdmission puts into ctx the question that a call asks before it waits for mail: admit counts
// the call as a waiting one from then on, or returns the error to refuse it with.
func WithAdmission(ctx context.Context, admit func() error) context.Context {
	return context.WithValue(ctx, admissionKey{}, admit)
}

// Waiting is how a call waits for mail: where WithAdmission's admit has it, until the server stops.
func Waiting(ctx context.Context, stopping <-chan struct{}) maildir.Waiting {
	admit, _ := ctx.Value(admissionKey{}).(func() error)
	return maildir.Waiting{Admit: admit, Until: stopping}
}
