package core

import (
	"context"
	"strconv"
	"sync"
	"time"

	"mailtree/maildir/format"
	"mailtree/maildir/writer"
)

// Notice is a message from Postmaster.
type Notice struct {
	To       string
	About    string // the idempotency key, so that Postmaster reports each matter only once
	Subject  string
	Body     string
	Thread   string   // empty starts a new thread
	Resolved []string // ids of Postmaster's earlier messages that this notice replaces, which are then marked as read
	Answers  string   // id of the message that the notice refers to; empty if there is none

	Boundless bool // the notice does not count toward MostNotices
}

// MostNotices is the maximum number of messages that Postmaster writes to one agent in an hour. The limit exists
// because a script may save any number of invalid files. A final message says that more files need fixing.
const MostNotices = 20

// noticeCount counts Postmaster's messages in the current hour, by agent. It is safe for concurrent use.
type noticeCount struct {
	mu    sync.Mutex
	hour  time.Time
	wrote map[string]int
}

// count adds one to the number of messages to the agent, and returns the agent's total for the current hour.
func (c *noticeCount) count(agent string, now time.Time) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if hour := now.Truncate(time.Hour); !hour.Equal(c.hour) {
		c.hour, c.wrote = hour, map[string]int{}
	}
	c.wrote[agent]++
	return c.wrote[agent]
}

// giveBack undoes a call of count, for a message that was not written.
func (c *noticeCount) giveBack(agent string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.wrote[agent] > 0 { // zero if a new hour has begun
		c.wrote[agent]--
	}
}

// Notify delivers a message from Postmaster, unless a message with the same key was delivered before. It returns any
// error from the writer.
func (c *Mail) Notify(ctx context.Context, a Notice) error {
	told, err := c.Store.Index.Keyed(ctx, c.Slug, format.Postmaster, a.About)
	if err != nil || len(told) > 0 {
		return err
	}
	now := c.Store.Now().UTC()
	n := 0
	if !a.Boundless {
		n = c.noticed.count(a.To, now)
	}
	switch {
	case n == MostNotices+1:
		a.About = "more " + a.To + now.Format(" 2006-01-02T15")
		a.Subject, a.Body = "More files need fixing", moreNotices
	case n > MostNotices:
		return nil
	}
	tx := &writer.Tx{
		Op:    writer.Op{Verb: "send", Agent: format.Postmaster},
		Facts: []string{KeyFact(format.Postmaster, a.About), MarkFact(a.To)},
	}
	tx.Plan = func(g *writer.Group) error {
		told, err := c.Store.Index.Keyed(g.Ctx, c.Slug, format.Postmaster, a.About)
		if err != nil || len(told) > 0 {
			return err
		}
		if err := c.PlanMarking(g, tx, a.To, MarkResolved(a.Resolved)); err != nil {
			return err
		}
		m := format.Message{ThreadID: a.Thread, InReplyTo: a.Answers, To: []string{a.To}, Subject: a.Subject, Key: a.About, Body: a.Body}
		return c.PlanNotice(g, tx, &m)
	}
	err = c.Writer.Do(ctx, tx)
	if err != nil && !a.Boundless {
		c.noticed.giveBack(a.To)
	}
	return err
}

// PlanNotice plans a message from Postmaster with normal importance. It returns any error from PlanMessage.
func (c *Mail) PlanNotice(g *writer.Group, tx *writer.Tx, m *format.Message) error {
	m.Project, m.From, m.Importance = c.Name(), format.Postmaster, format.Normal
	m.Origin = format.Origin{Auth: "uid:" + strconv.Itoa(c.Store.User())}
	return c.PlanMessage(g, tx, m, nil)
}

const moreNotices = "Too many of your files in the mail tree need fixing, so Postmaster does not report each one. Files " +
	"that cannot be sent are still in your outbox. The project's list of invalid files shows all of them."

// MarkResolved returns the Marking that marks Postmaster's notices as read.
func MarkResolved(ids []string) Marking { return Marking{Verb: "read", IDs: ids, Page: true} }
