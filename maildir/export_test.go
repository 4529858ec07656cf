package maildir

import (
	"context"

	"mailtree/maildir/session"
	"mailtree/maildir/tree"
)

// Later is the number of operations that wait for others to end.
func Later(p *Project) int {
	_, waiting := p.writer.Backlog()
	return waiting
}

// Queued is the number of operations that nobody has looked at yet.
func Queued(p *Project) int {
	queued, _ := p.writer.Backlog()
	return queued
}

// Compared is the number of comparisons that are to be answered when their edits are ingested.
func Compared(p *Project) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.compared)
}

// SweepStaging has leftovers removed, as it is done every hour.
func SweepStaging(ctx context.Context, p *Project) error {
	done := make(chan struct{})
	p.writer.Aside(func(context.Context, *tree.Changer) {
		defer close(done)
		p.writer.SweepStaging()
	})
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Sweep has ended claims removed, as it is done every hour.
func Sweep(p *Project) { p.writer.Later(p.sweepClaims()) }

// Sessions lists the sessions that go on, by when they began.
func Sessions(p *Project) []session.State { return p.sessions.Live() }

// StoreOf is the project's store.
func StoreOf(p *Project) *Store { return p.store }

// MostAdvice is how many messages Postmaster writes to one agent in an hour, but for one more.
const MostAdvice = mostAdvice

// SettleTime is how long a saved file must not have changed.
const SettleTime = settleTime
