package crossing

import (
	"context"
	"errors"
	"fmt"
	"time"

	"mailtree/maildir/core"
	"mailtree/maildir/refusal"
)

// The shortest and longest pauses between two attempts to carry the waiting messages.
const (
	firstRest = time.Second
	mostRest  = 2 * time.Minute
)

// Tidy removes the temporary files that a crash left behind while items were being written. Call Tidy before the first
// message is sent, because Tidy cannot distinguish these files from items that are being written. Tidy logs errors.
func (c *Carrier) Tidy() {
	for _, from := range c.store.Projects.Mails() {
		if err := c.itemsOf(from.Slug).tidy(); err != nil {
			c.store.Log.Warn("cannot remove leftover files of messages to other projects", "project", from.Slug, "error", err)
		}
	}
}

// Run carries the waiting messages until ctx is done. It tries immediately and after each Poke. Poke is called when a
// project is opened or a message could not be carried. While messages are still waiting, Run retries at increasing
// intervals.
func (c *Carrier) Run(ctx context.Context) {
	rest := firstRest
	for ctx.Err() == nil {
		var again <-chan time.Time
		if c.round(ctx) > 0 {
			again = time.After(rest)
			rest = min(2*rest, mostRest)
		} else {
			rest = firstRest
		}
		select {
		case <-c.bell:
			rest = firstRest
		case <-again:
		case <-ctx.Done():
		}
	}
}

// round tries to carry all waiting messages. It returns the number of items that are still waiting. If a project is
// unavailable, the round skips the other items for that project, because each item would wait for the disk again.
func (c *Carrier) round(ctx context.Context) (left int) {
	unavailable := map[string]bool{} // slugs of unavailable projects
	for _, from := range c.store.Projects.Mails() {
		f := c.itemsOf(from.Slug)
		names, err := f.listItems()
		if err != nil {
			c.store.Log.Warn("cannot read mail queued for other projects", "project", from.Slug, "error", err)
			left++
		}
		for _, file := range names {
			if ctx.Err() != nil {
				return left
			}
			to, err := c.retry(ctx, from, f, file, unavailable)
			if err != nil {
				c.store.Log.Debug("a message to another project is still queued", "project", from.Slug, "file", file, "error", err)
				left++
			}
			if errors.Is(err, refusal.ErrUnavailable) {
				unavailable[to] = true
			}
		}
	}
	return left
}

// retry tries to carry the item in a file, unless the target project is unavailable. It returns the slug of the target
// project.
func (c *Carrier) retry(ctx context.Context, from *core.Mail, f *folder, file string, unavailable map[string]bool) (to string, err error) {
	i, err := f.loadItem(file)
	if err != nil || i == nil || c.isKept(f.fileOf(i.Message, i.To)) { // ignore a file that this store did not write
		return "", err
	}
	c.mu.Lock()
	later := c.later[i.Message]
	c.mu.Unlock()
	if later || unavailable[i.To] {
		return i.To, errLater
	}
	release, err := c.hold(ctx, i.Message)
	if err != nil {
		return i.To, fmt.Errorf("message %s: %w", i.Message, err)
	}
	defer release()
	return i.To, c.carry(ctx, from, i.Message, i.To, c.hasFor)
}

// errLater means that the current round skips the item.
var errLater = errors.New("the server will try again later")
