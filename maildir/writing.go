package maildir

import (
	"context"
	"strings"
	"sync"
	"time"

	"mailtree/maildir/index"
	"mailtree/maildir/writer"
)

// Facts that operations of the mail decide on (writer.Tx.Facts).
const claimsFact = "claims"

func nameFact(agent string) string    { return "name " + strings.ToLower(agent) }
func markFact(agent string) string    { return "mark " + agent }
func keyFact(from, key string) string { return "key " + from + "\n" + key }

// patience is how long a caller waits for the disk.
const patience = 30 * time.Second

// run runs the project until ctx has ended, every accepted operation is answered, and the history is level.
func (p *Project) run(ctx context.Context) {
	noting, stopNoting := context.WithCancel(context.WithoutCancel(ctx)) // notes are kept until the last operation is answered
	var beside sync.WaitGroup
	beside.Go(func() { p.keepNotes(noting) })
	beside.Go(func() { p.handleSaved(ctx) })
	beside.Go(func() { p.keepShared(ctx) })
	p.Writer.Later(p.sweepClaims())
	p.Keeper.Run(ctx)
	stopNoting()
	beside.Wait()
	p.pushLast(context.WithoutCancel(ctx))
}

// mail is the project as its keeper sees it (store.Mail).
type mail struct{ *Project }

// Saved schedules files that others saved in an outbox. See store.Mail.
func (o mail) Saved(paths []string, changes []index.Change) { o.noteSaved(paths, changes) }

// Compared tells the holders of claims that do not hold. See store.Mail.
func (o mail) Compared(ctx context.Context) error { return o.tellOutdone(ctx) }

// Hourly removes ended claims. See store.Mail.
func (o mail) Hourly() { o.Writer.Later(o.sweepClaims()) }

// Failed wakes callers that wait for mail, because the failed operation may have kept deliveries from them.
// See store.Mail.
func (o mail) Failed(op *writer.Op) { o.store.feed.ringAgent(o.Slug, op.Agent) }
