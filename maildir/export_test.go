package maildir

import (
	"context"

	"mailtree/maildir/seat"
	"mailtree/maildir/tree"
)

// Later is the number of operations that wait for others to end.
func Later(p *Project) int {
	_, waiting := p.Writer.Backlog()
	return waiting
}

// Queued is the number of operations that nobody has looked at yet.
func Queued(p *Project) int {
	queued, _ := p.Writer.Backlog()
	return queued
}

// SweepStaging has leftovers removed, as it is done every hour.
func SweepStaging(ctx context.Context, p *Project) error {
	done := make(chan struct{})
	p.Writer.Aside(func(context.Context, *tree.Changer) {
		defer close(done)
		p.Writer.SweepStaging()
	})
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Sweep has ended claims removed, as it is done every hour.
func Sweep(p *Project) { p.Writer.Later(p.sweepClaims()) }

// Sessions lists the sessions that go on, by when they began.
func Sessions(p *Project) []seat.Seat {
	live, _ := p.seats.All()
	return live
}

// StoreOf is the project's store.
func StoreOf(p *Project) *Store { return p.store }

// MostAdvice is how many messages Postmaster writes to one agent in an hour, but for one more.
const MostAdvice = mostAdvice

// Settling counts the saved files that rest.
func Settling(p *Project) int {
	p.fresh.mu.Lock()
	defer p.fresh.mu.Unlock()
	return len(p.fresh.files)
}

// SettleTime is how long a saved file must not have changed.
const SettleTime = settleTime

// MostStamped is mostStamped.
const MostStamped = mostStamped
