package maildir

import (
	"context"
	"time"

	"mailtree/maildir/core"
	"mailtree/maildir/format"
	"mailtree/maildir/outbox"
	"mailtree/maildir/seat"
	"mailtree/maildir/tree"
)

// Later returns the number of operations that are waiting to be planned again.
func Later(p *Project) int {
	_, waiting := p.mail.Writer.Backlog()
	return waiting
}

// Queued returns the number of operations in the writer's queue.
func Queued(p *Project) int {
	queued, _ := p.mail.Writer.Backlog()
	return queued
}

// SweepStaging removes leftover files from staging, as the server does every hour.
func SweepStaging(ctx context.Context, p *Project) error {
	done := make(chan struct{})
	p.mail.Writer.Aside(func(context.Context, *tree.Changer) {
		defer close(done)
		p.mail.Writer.SweepStaging()
	})
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Sweep removes expired and released claims, as the server does every hour.
func Sweep(p *Project) { p.mail.Writer.Later(p.Claims.Sweep()) }

// LiveSessions lists the live sessions in the order in which they began.
func LiveSessions(p *Project) []seat.Seat {
	live, _ := p.mail.Seats.All()
	return live
}

// StoreOf returns the part of the store that the project shares with other projects.
func StoreOf(p *Project) *core.Store { return p.mail.Store }

// MostAdvice is the maximum number of messages that Postmaster writes to one agent in an hour, not counting the final
// message.
const MostAdvice = core.MostNotices

// Settling returns the number of saved files that have not yet stayed unchanged for SettleTime.
func Settling(p *Project) int { return p.outbox.Waiting() }

// SettleTime is how long a saved file must stay unchanged before it is sent.
const SettleTime = outbox.SettleTime

// MostStamped exports mostStamped.
const MostStamped = mostStamped

// ProblemsOf returns the first n invalid files in a project.
func ProblemsOf(ctx context.Context, p *Project, n int) ([]format.Problem, error) {
	return p.mail.Store.Index.Problems(ctx, p.mail.Slug, n)
}

// TreeOf returns the project's tree.
func TreeOf(p *Project) *tree.Tree { return p.mail.Tree }

// Now returns the time according to the project's clock.
func Now(p *Project) time.Time { return p.mail.Now() }
