package maildir

import (
	"context"
	"sync"
	"time"

	"mailtree/maildir/index"
	"mailtree/maildir/writer"
)

// patience is how long the caller of an operation waits for the disk.
const patience = 30 * time.Second

// run runs the project. It returns when ctx has ended, every accepted operation has its result, and the history is up
// to date.
func (p *Project) run(ctx context.Context) {
	noting, stopNoting := context.WithCancel(context.WithoutCancel(ctx)) // canceled after the last operation
	var beside sync.WaitGroup
	beside.Go(func() { p.mail.KeepNotes(noting) })
	beside.Go(func() { p.outbox.Run(ctx) })
	beside.Go(func() { p.Sync.KeepShared(ctx) })
	p.mail.Writer.Later(p.Claims.Sweep())
	p.mail.Writer.Later(p.Holds.Sweep())
	p.mail.Keeper.Run(ctx)
	stopNoting()
	beside.Wait()
	p.Sync.PushLast(context.WithoutCancel(ctx))
}

// mail implements store.Mail for the project.
type mail struct{ *Project }

// Saved schedules the sending of files that other programs saved in an outbox. See store.Mail.
func (o mail) Saved(paths []string, changes []index.Change) { o.outbox.NoteSaved(paths, changes) }

// Compared notifies agents if another agent had claimed the same paths earlier. See store.Mail.
func (o mail) Compared(ctx context.Context) error { return o.Claims.NotifyOutdone(ctx) }

// Hourly removes expired and released claims, and holds that have ended. See store.Mail.
func (o mail) Hourly() {
	o.mail.Writer.Later(o.Claims.Sweep())
	o.mail.Writer.Later(o.Holds.Sweep())
}

// Failed wakes callers that are waiting for mail, because the deliveries that the failed operation had selected are
// available again. See store.Mail.
func (o mail) Failed(op *writer.Op) { o.mail.Store.Feed.RingAgent(o.Slug, op.Agent) }
