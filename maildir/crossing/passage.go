package crossing

import (
	"context"
	"sync"
	"sync/atomic"

	"mailtree/maildir/core"
	"mailtree/maildir/format"
)

// Passage carries one message that is being sent. It is safe for concurrent use, because the operation's plan may still
// run after the sender has stopped waiting.
type Passage struct {
	c    *Carrier
	from *core.Mail

	left atomic.Bool // the sender has stopped waiting

	mu sync.Mutex // held while files are written, which blocks if the disk does not respond
	id string
	to []string // slugs of the projects with items
}

// Begin returns the Passage of a message that an agent of the given project sends.
func (c *Carrier) Begin(from *core.Mail) *Passage { return &Passage{c: c, from: from} }

// Reset durably removes the items that an earlier call of the operation's plan wrote. The plan calls Reset first.
// Nothing else that the earlier call planned was written, so these items are obsolete.
func (p *Passage) Reset() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, to := range p.to {
		if err := p.c.itemsOf(p.from.Slug).removeItem(p.id, to); err != nil {
			return err
		}
	}
	p.id, p.to = "", nil
	return nil
}

// Plan durably writes the items of the message, whose id must be set. The plan of the operation that sends the message
// calls Plan last.
func (p *Passage) Plan(m *format.Message) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.id = m.ID
	for _, to := range p.c.Targets(m) {
		i, err := p.c.item(p.from, m, to)
		if err != nil {
			return err
		}
		p.to = append(p.to, to) // even if save fails, it may have written the file
		if err := p.c.save(i); err != nil {
			return err
		}
	}
	if p.left.Load() && len(p.to) > 0 {
		p.c.Poke()
	}
	return nil
}

// Finish carries the message once the operation that sends it has ended with the given error. It returns the slugs of
// the projects that do not have the message yet. Run later carries the message to these projects. Finish waits no
// longer than an operation waits for the disk (writer.Writer.Do).
func (p *Passage) Finish(ctx context.Context, err error) (queued []string) {
	p.left.Store(true)
	if !p.mu.TryLock() { // a plan is still running after the sender stopped waiting
		p.c.Poke() // Plan does not poke the carrier if it has already read p.left as false
		return nil
	}
	id, to := p.id, p.to
	p.mu.Unlock()
	switch {
	case len(to) == 0:
		return nil
	case err != nil: // the message may or may not be in the tree
		p.c.failed(id, err)
		return nil
	}
	release, err := p.c.hold(ctx, id)
	if err != nil {
		p.c.Poke()
		return to
	}
	defer release()
	return p.c.carryAll(ctx, p.from, id, to, p.c.hasNow)
}
