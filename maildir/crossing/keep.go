package crossing

import (
	"errors"
	"io/fs"
	"os"
)

// Keep preserves the items of messages that are carried from now on, until done is called. A backup needs these items
// because it copies one project after another. The backup may copy the recipients' project before a message arrives
// there, and the sender's project afterwards. The restored store finds the item and carries the message again.
func (c *Carrier) Keep() (done func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keeping++
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.keeping--; c.keeping > 0 {
			return
		}
		for path := range c.kept {
			if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				c.store.Log.Warn("cannot remove a delivered message's queue file", "file", path, "error", err)
			}
		}
		clear(c.kept)
	}
}

// isKept reports whether an item is finished and remains only until Keep ends.
func (c *Carrier) isKept(path string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.kept[path]
}
