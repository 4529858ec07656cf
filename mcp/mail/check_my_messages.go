package mail

import (
	"context"
	"strconv"
	"strings"
	"time"

	"mailtree/maildir/index"
	"mailtree/mcp/tool"
)

// inboxRequest selects messages of an inbox and says whether to mark them as read.
type inboxRequest struct {
	Project     string    `json:"project_key" jsonschema:"top of the work tree" example:"/abs/path/backend"`
	Agent       string    `json:"agent_name" example:"BlueLake"`
	Since       time.Time `json:"since_ts,omitempty" jsonschema:"only after this time, RFC 3339 or seconds since 1970" example:"2025-10-23T15:22:14Z"`
	Urgent      bool      `json:"urgent_only,omitempty" jsonschema:"only high and urgent ones"`
	Unread      bool      `json:"unread_only,omitempty"`
	Archived    bool      `json:"archived,omitempty" jsonschema:"archived ones too"`
	Bodies      bool      `json:"include_bodies,omitempty"`
	ID          string    `json:"message_id,omitempty" jsonschema:"only this one, with its body" example:"msg_20251023_3a51c0f7b3dc3a7e"`
	Thread      string    `json:"thread_id,omitempty" jsonschema:"only this thread, oldest first, what you sent too" example:"TKT-123"`
	AwaitingAck bool      `json:"awaiting_ack,omitempty" jsonschema:"what you, or those you sent it to, have to acknowledge yet"`
	Offset      *int      `json:"body_offset,omitempty" jsonschema:"next_offset, to read on in that body"`
	Limit       int       `json:"limit,omitempty" min:"1" max:"200" default:"20" as:"limit"`
	Cursor      int64     `json:"cursor,omitempty" example:"1234" as:"cursor"`
	Mark        bool      `json:"mark_read,omitempty" jsonschema:"the returned ones"`
	Wait        tool.Wait `json:"wait_seconds,omitempty" jsonschema:"if none is unread; over 50 only with progressToken" max:"900"`
}

func (t *Toolset) checkMyMessages() tool.Tool {
	return tool.Of(tool.Tool{
		Name:  "check_my_messages",
		Hints: tool.Marks(),
		About: "Read mail from agents in other sessions and programs, and people: your inbox, newest first" +
			" (resource://inbox/{agent}); can wait until some arrives.",
		Out: Inbox{},
	}, func(ctx context.Context, r *inboxRequest) (any, error) {
		if err := r.coherent(); err != nil {
			return nil, err
		}
		q := index.InboxQuery{
			Archived:    r.Archived,
			Agent:       r.Agent,
			Since:       r.Since,
			UrgentOnly:  r.Urgent,
			UnreadOnly:  r.Unread,
			Bodies:      r.Bodies || r.ID != "",
			AwaitingAck: r.AwaitingAck,
			Limit:       r.Limit,
			Before:      r.Cursor,
			ID:          r.ID,
			Thread:      r.Thread,
		}
		as := tool.CallerOf(ctx).Agent
		q.Peek = as != "" && as != q.Agent
		p, note, err := t.project(ctx, r.Project)
		if err != nil {
			return nil, err
		}
		if q.ID != "" {
			if q.ID, err = p.FullID(ctx, q.ID); err != nil {
				return nil, err
			}
		}
		v := t.viewOf(ctx, p, notes(note, r.Wait.Note))
		q.Room = v.inboxRoom(ctx, tool.InTool, q.Agent)
		if r.Offset != nil {
			q.Room.Offset = int64(*r.Offset)
		}
		page, err := tool.Box(ctx, p, q.Agent).Inbox(ctx, q, r.Mark, tool.Waiting(ctx, r.Wait.For, t.stopping))
		if err != nil {
			return nil, err
		}
		return v.shapeInbox(q.Agent, page, q.Bodies), nil
	})
}

// coherent refuses an offset without a message, and filters that have no effect. Filters do not apply to one
// message, to a thread, or to the list of messages to acknowledge.
func (r *inboxRequest) coherent() error {
	reads := ""
	switch {
	case r.Offset != nil && r.ID == "":
		return tool.Invalid("body_offset is %d, but message_id is missing: name the message whose body goes on there.", *r.Offset)
	case r.ID != "" && r.Thread != "":
		return tool.Invalid("message_id reads one message and thread_id lists a thread: leave out one or the other.")
	case r.ID != "":
		reads = "message_id reads one message"
	case r.Thread != "":
		reads = "thread_id lists a whole thread"
	case r.AwaitingAck:
		reads = "awaiting_ack lists all that is to be acknowledged"
	default:
		return nil
	}
	var idle []string
	for _, f := range []struct {
		name string
		does bool
	}{
		{"unread_only", r.Unread}, {"since_ts", !r.Since.IsZero()}, {"urgent_only", r.Urgent},
		{"awaiting_ack", r.AwaitingAck && (r.ID != "" || r.Thread != "")},
	} {
		if f.does {
			idle = append(idle, f.name)
		}
	}
	if len(idle) == 0 {
		return nil
	}
	return tool.Invalid("%s, to which %s cannot be applied: leave out one or the other.", reads, strings.Join(idle, ", "))
}

func cursor(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}
