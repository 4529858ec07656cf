package wake

import (
	"context"
	"time"

	"mailtree/maildir/index"
	"mailtree/maildir/seat"
)

// Two agents that keep thanking each other would never stop, because each message wakes the other agent. Therefore,
// if two agents have exchanged at least mostVolley messages in one thread within volleyTime, and no other agent is
// involved, a message wakes an agent only once it is volleyRest old. Nothing is lost, and other mail wakes the agent
// immediately. See docs/reference/hooks.md, "Waking".
const (
	mostVolley = 30
	volleyTime = time.Hour
	volleyRest = time.Minute
)

// countVolley counts the messages that the agent and the sender of the unread messages have exchanged in their thread
// within volleyTime. It returns 0 if there are fewer than mostVolley, if the unread messages have several senders or
// threads, or if another agent is involved.
func (ss *Sessions) countVolley(ctx context.Context, agent string, unread []seat.Unread) (n int, err error) {
	if len(unread) == 0 || unread[0].Thread == "" {
		return 0, nil
	}
	with, thread := unread[0].From, unread[0].Thread
	for _, m := range unread {
		if m.From != with || m.Thread != thread {
			return 0, nil
		}
	}
	rows, err := ss.mail.Store.Index.Thread(ctx, index.ThreadQuery{
		Project: ss.mail.Slug,
		Thread:  thread,
		Since:   ss.mail.Store.Now().Add(-volleyTime),
	})
	if err != nil || len(rows) < mostVolley {
		return 0, err
	}
	for i := range rows {
		for _, name := range append(rows[i].Recipients(), rows[i].From) {
			if name != agent && name != with {
				return 0, nil
			}
		}
	}
	return len(rows), nil
}

// rest returns how much longer a wake for unread messages must wait because of a volley. unread is sorted newest first.
func (ss *Sessions) rest(ctx context.Context, agent string, unread []seat.Unread) (time.Duration, error) {
	n, err := ss.countVolley(ctx, agent, unread)
	if err != nil || n == 0 {
		return 0, err
	}
	oldest := unread[len(unread)-1].Created
	return max(oldest.Add(volleyRest).Sub(ss.mail.Store.Now()), 0), nil
}
