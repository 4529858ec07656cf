package mail

import (
	"context"
	"strconv"
	"time"

	"mailtree/maildir"
)

// Bounds of an inbox page and of a long poll: clients give up on a call after about a minute.
const (
	defaultPage = 20
	maxPage     = 200
	maxWait     = 50 // seconds
)

func checkMyMessages() tool {
	return tool{
		name: "check_my_messages", title: "Check my messages", hints: marks(),
		about: "Read your inbox, newest first, with read and acknowledgement stamps; can wait until new mail arrives.",
		in: []prop{
			projectKey(), agentName(),
			may("since_ts", str("only messages after this time: RFC 3339, or seconds since 1970", "2025-10-23T15:22:14Z")),
			may("urgent_only", flag("only high and urgent ones", false)),
			may("unread_only", flag("only unread ones", false)),
			may("include_bodies", flag("with the bodies", false)),
			may("limit", num("", 1, maxPage, defaultPage)),
			may("cursor", str("next_cursor of the page before", "1234")),
			may("mark_read", flag("mark the returned ones read", false)),
			may("wait_seconds", num("when there is nothing to return, wait this long for mail", 0, maxWait, 0)),
		},
		out: inboxProps(),
		run: func(ctx context.Context, t *Toolset, a *args) (any, error) {
			q := maildir.InboxQuery{
				Agent: a.text("agent_name"), Since: a.when("since_ts"), UrgentOnly: a.flag("urgent_only"), UnreadOnly: a.flag("unread_only"),
				Bodies: a.flag("include_bodies"), Limit: a.count("limit", 1, maxPage), Before: a.cursor("cursor"),
			}
			mark, wait := a.flag("mark_read"), time.Duration(a.count("wait_seconds", 0, maxWait))*time.Second
			p, err := t.project(ctx, a)
			if err != nil {
				return nil, err
			}
			waiting, stop := t.waiting(ctx, wait)
			defer stop()
			page, err := p.Inbox(waiting, q, mark, wait)
			if err != nil && waiting.Err() != nil && ctx.Err() == nil { // the server stops: no more waiting
				page, err = p.Inbox(ctx, q, mark, 0)
			}
			if err != nil {
				return nil, err
			}
			return t.shapeInbox(p, q.Agent, page, q.Bodies), nil
		},
	}
}

func cursor(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}
