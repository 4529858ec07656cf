package maildir

import (
	"context"
	"strings"
	"sync"
	"time"

	"mailtree/maildir/index"
	"mailtree/maildir/writer"
)

// Facts that the mail's operations decide on (writer.Tx.Facts).
const claimsFact = "claims"

func nameFact(agent string) string    { return "name " + strings.ToLower(agent) }
func markFact(agent string) string    { return "mark " + agent }
func keyFact(from, key string) string { return "key " + from + "\n" + key }

// patience is how long a caller waits for the disk.
const patience = 30 * time.Second

// run is the project at work, until ctx has ended, everything accepted is answered, and the history is level.
func (p *Project) run(ctx context.Context) {
	noting, stopNoting := context.WithCancel(context.WithoutCancel(ctx)) // notes are kept of what is answered last
	var beside sync.WaitGroup
	beside.Go(func() { p.keepNotes(noting) })
	beside.Go(func() { p.handleSaved(ctx) })
	p.Writer.Later(p.sweepClaims())
	p.Keeper.Run(ctx)
	stopNoting()
	beside.Wait()
}

// mail is a project as its keeper sees it (store.Mail).
type mail struct{ *Project }

// Saved has files that others saved in an outbox looked at once they are finished. See store.Mail.
func (o mail) Saved(paths []string, changes []index.Change) { o.noteSaved(paths, changes) }

// Compared tells the holders of claims that do not hold. See store.Mail.
func (o mail) Compared(ctx context.Context) error { return o.tellOutdone(ctx) }

// Hourly has ended claims removed. See store.Mail.
func (o mail) Hourly() { o.Writer.Later(o.sweepClaims()) }

// Failed has those who wait for mail look again: what the operation was to mark was kept from them.
// See store.Mail.
func (o mail) Failed(op *writer.Op) { o.store.feed.ringAgent(o.Slug, op.Agent) }
