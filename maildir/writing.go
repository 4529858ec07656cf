package maildir

import (
	"context"
	"strings"
	"sync"
	"time"

	"mailtree/maildir/tree"
	"mailtree/maildir/writer"
)

// Op is one operation as the audit tells it.
type Op = writer.Op

// Through says that the operations of ctx come through a door, one of format.Door…, for the history.
func Through(ctx context.Context, door string) context.Context { return writer.Through(ctx, door) }

// Facts that the mail's operations decide on (writer.Tx.Facts).
const claimsFact = "claims"

func nameFact(agent string) string    { return "name " + strings.ToLower(agent) }
func markFact(agent string) string    { return "mark " + agent }
func keyFact(from, key string) string { return "key " + from + "\n" + key }

// patience is how long a caller waits for the disk.
const patience = 30 * time.Second

// run is the project at work: its writer, its history, and the comparison of tree and index. It
// returns when ctx has ended, everything accepted is answered, and the history is level.
func (p *Project) run(ctx context.Context) {
	recording, stopRecording := context.WithCancel(context.WithoutCancel(ctx)) // the history ends last: it commits what the writer leaves
	var beside sync.WaitGroup
	beside.Go(func() {
		if err := p.history.Run(recording); err != nil {
			p.store.cfg.Log.Error("history stopped", "project", p.slug, "error", err)
		}
	})
	beside.Go(func() { p.compare(ctx) })
	beside.Go(func() { p.keepNotes(recording) })
	beside.Go(func() { p.handleSaved(ctx) })
	p.writer.Later(p.sweepClaims())
	p.writer.Run(ctx)
	stopRecording()
	beside.Wait()
}

// owner is a project as its writer sees it (writer.Owner).
type owner struct{ *Project }

// Ingest brings the index level with the files of a group. See writer.Owner.
func (o owner) Ingest(ctx context.Context, paths []string, written map[string]tree.Written) error {
	in, err := o.store.index.IngestWritten(ctx, o.slug, paths, written)
	if err != nil {
		return err
	}
	o.noteUnread(paths, in.Unread)
	o.noticed(in.Changes)
	return nil
}

// Level brings the index level with paths. See writer.Owner.
func (o owner) Level(ctx context.Context, paths []string) error {
	unread, err := o.ingest(ctx, paths)
	if err == nil && len(unread) > 0 {
		err = unreadError(unread[0])
	}
	return err
}

// Sure refuses while something cannot be looked at. See writer.Owner.
func (o owner) Sure() error { return o.needRead() }

// Record takes operations into the history. See writer.Owner.
func (o owner) Record(ops []writer.Op, done func()) { o.history.Record(ops, done) }

// Preserve has the content of paths in the history. See writer.Owner.
func (o owner) Preserve(ctx context.Context, paths []string) error {
	return o.history.Preserve(ctx, paths)
}

// Failed has those who wait for mail look again: what the operation was to mark was kept from them.
// See writer.Owner.
func (o owner) Failed(op *writer.Op) { o.store.feed.ringAgent(o.slug, op.Agent) }

// Stalled is how long the oldest operation under way has been waiting for the disk: more than some
// seconds mean that it does not answer.
func (p *Project) Stalled() time.Duration { return p.writer.Stalled() }

// Writes reports whether an operation under way writes a path, or has written it. It goes on to say
// so until the history was told.
func (p *Project) Writes(path string) bool { return p.writer.Writes(path) }

// Failing is why the newest operation that reached the disk failed there, as ErrUnavailable; nil
// when it did not, or that is over a minute ago.
func (p *Project) Failing() error { return p.writer.Failing() }
