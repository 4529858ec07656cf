package mail

import (
	"context"
	"strconv"
	"strings"
	"time"

	"mailtree/maildir/index"
	"mailtree/mcp/tool"
)

// inboxRequest selects messages in an inbox, and says whether to mark them as read.
type inboxRequest struct {
	Project     string    `json:"project_key" jsonschema:"path of the top of the working tree" example:"/abs/path/backend"`
	Agent       string    `json:"agent_name" jsonschema:"your agent name" example:"BlueLake"`
	Since       time.Time `json:"since_ts,omitempty" jsonschema:"only messages after this time: RFC 3339 or Unix seconds" example:"2025-10-23T15:22:14Z"`
	Urgent      bool      `json:"urgent_only,omitempty" jsonschema:"only high or urgent messages"`
	Unread      bool      `json:"unread_only,omitempty" jsonschema:"only unread messages"`
	Archived    bool      `json:"archived,omitempty" jsonschema:"include archived messages"`
	Bodies      bool      `json:"include_bodies,omitempty" jsonschema:"return the bodies too"`
	ID          string    `json:"message_id,omitempty" jsonschema:"read only this message, with its body" example:"msg_20251023_3a51c0f7b3dc3a7e"`
	Thread      string    `json:"thread_id,omitempty" jsonschema:"read only this thread, oldest first, including what you sent" example:"TKT-123"`
	AwaitingAck bool      `json:"awaiting_ack,omitempty" jsonschema:"only messages still awaiting acknowledgement by you or your recipients"`
	Offset      *int      `json:"body_offset,omitempty" jsonschema:"next_offset, to read the rest of the body"`
	Limit       int       `json:"limit,omitempty" jsonschema:"max messages to return" min:"1" max:"200" default:"20" as:"limit"`
	Cursor      int64     `json:"cursor,omitempty" jsonschema:"next_cursor of the previous page" example:"1234" as:"cursor"`
	Mark        bool      `json:"mark_read,omitempty" jsonschema:"mark the returned messages as read"`
	Wait        tool.Wait `json:"wait_seconds,omitempty" jsonschema:"wait for new mail if nothing is unread; over 50 only with a progressToken" max:"3600"`
}

func (t *Toolset) checkMyMessages() tool.Tool {
	return tool.Of(tool.Tool{
		Name:  "check_my_messages",
		Hints: tool.Marks(),
		About: "Use at the start, between steps, or to wait for an answer: reads your inbox, newest first, with mail from people, " +
			"and from agents in other sessions and programs. Also at resource://inbox/{agent}.",
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
		p, note, err := t.projectOf(ctx, r.Project, &q.Agent)
		if err != nil {
			return nil, err
		}
		q.Peek = as != "" && as != q.Agent
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

// coherent returns a refusal if body_offset is passed without message_id, or if a filter would have no effect. Filters
// do not apply to a single message, to a thread, or to the list of messages that need an acknowledgment.
func (r *inboxRequest) coherent() error {
	reads := ""
	switch {
	case r.Offset != nil && r.ID == "":
		return tool.Invalid("body_offset is %d, but message_id is missing: pass the id of the message whose body you want "+
			"to continue reading.", *r.Offset)
	case r.ID != "" && r.Thread != "":
		return tool.Invalid("message_id reads one message and thread_id lists a thread: omit one of them.")
	case r.ID != "":
		reads = "message_id reads one message"
	case r.Thread != "":
		reads = "thread_id lists a whole thread"
	case r.AwaitingAck:
		reads = "awaiting_ack lists all messages that are waiting for an acknowledgement"
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
	return tool.Invalid("%s and cannot be combined with %s: omit one or the other.", reads, strings.Join(idle, ", "))
}

func cursor(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}
