package mail

import (
	"context"
	"math"
	"strconv"
	"strings"

	"mailtree/maildir"
	"mailtree/mcp/tool"
)

func (t *Toolset) checkMyMessages() tool.Tool {
	return tool.Tool{
		Name:  "check_my_messages",
		Hints: tool.Marks(),
		About: "Read mail from agents in other sessions and programs, and people: your inbox, newest first" +
			" (resource://inbox/{agent}); can wait until some arrives.",
		In: []tool.Prop{
			workTree(), agentName(),
			tool.May("since_ts", tool.Str("only after this time, RFC 3339 or seconds since 1970", "2025-10-23T15:22:14Z")),
			tool.May("urgent_only", tool.Flag("only high and urgent ones")),
			tool.May("unread_only", tool.Flag("")),
			tool.May("archived", tool.Flag("archived ones too")),
			tool.May("include_bodies", tool.Flag("")),
			tool.May("message_id", tool.Str("only this one, with its body", "msg_20251023_3a51c0f7b3dc3a7e")),
			tool.May("thread_id", tool.Str("only this thread, oldest first, what you sent too", "TKT-123")),
			tool.May("awaiting_ack", tool.Flag("what you, or those you sent it to, have to acknowledge yet")),
			tool.May("body_offset", tool.Num("next_offset, to read on in that body", 0, math.MaxInt32, 0)),
			tool.May("limit", tool.Num("", 1, maildir.MaxPage, maildir.DefaultPage)),
			tool.May("cursor", tool.Str("", "1234")),
			tool.May("mark_read", tool.Flag("the returned ones")),
			tool.May("wait_seconds", tool.Num("if none is unread; over 50 only with progressToken", 0, tool.MaxLongWait, 0)),
		},
		Out: inboxShape{},
		Run: func(ctx context.Context, a *tool.Args) (any, error) {
			q := maildir.InboxQuery{
				Archived:    a.Flag("archived"),
				Agent:       a.Text("agent_name"),
				Since:       a.When("since_ts"),
				UrgentOnly:  a.Flag("urgent_only"),
				UnreadOnly:  a.Flag("unread_only"),
				Bodies:      a.Flag("include_bodies"),
				AwaitingAck: a.Flag("awaiting_ack"),
				Limit:       a.Limit("limit", 1, maildir.MaxPage),
				Before:      a.Cursor("cursor"),
				Waiting:     tool.Waiting(ctx, t.stopping),
				ID:          a.Text("message_id"),
				Thread:      a.Text("thread_id"),
			}
			as := tool.CallerOf(ctx).Agent
			q.Peek = as != "" && as != q.Agent
			offset := a.Count("body_offset", 0, math.MaxInt32)
			if a.Has("body_offset") && q.ID == "" {
				a.Fail(tool.Invalid("body_offset is %d, but message_id is missing: name the message whose body goes on there.", offset))
			}
			refuseIdle(a, &q)
			q.Bodies = q.Bodies || q.ID != ""
			mark := a.Flag("mark_read")
			wait, bounded := a.Wait("wait_seconds", tool.LongestWait(ctx))
			p, note, err := t.project(ctx, a)
			if err != nil {
				return nil, err
			}
			v := t.viewOf(ctx, p, notes(note, bounded))
			q.Room = v.inboxRoom(ctx, tool.InTool, q.Agent)
			q.Room.Offset = int64(offset)
			page, err := p.Inbox(ctx, q, mark, wait)
			if err != nil {
				return nil, err
			}
			return v.shapeInbox(q.Agent, page, q.Bodies), nil
		},
	}
}

// refuseIdle refuses filters that would do nothing: one message and a thread are read whole, and all
// that is to be acknowledged is listed.
func refuseIdle(a *tool.Args, q *maildir.InboxQuery) {
	var idle []string
	for _, f := range []struct {
		name string
		does bool
	}{
		{"unread_only", q.UnreadOnly}, {"since_ts", !q.Since.IsZero()}, {"urgent_only", q.UrgentOnly},
		{"awaiting_ack", q.AwaitingAck && (q.ID != "" || q.Thread != "")},
	} {
		if f.does {
			idle = append(idle, f.name)
		}
	}
	var reads string
	switch {
	case q.ID != "" && q.Thread != "":
		a.Fail(tool.Invalid("message_id reads one message and thread_id lists a thread: leave out one or the other."))
		return
	case q.ID != "":
		reads = "message_id reads one message"
	case q.Thread != "":
		reads = "thread_id lists a whole thread"
	case q.AwaitingAck:
		reads = "awaiting_ack lists all that is to be acknowledged"
	default:
		return
	}
	if len(idle) > 0 {
		a.Fail(tool.Invalid("%s, to which %s cannot be applied: leave out one or the other.", reads, strings.Join(idle, ", ")))
	}
}

func cursor(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}
