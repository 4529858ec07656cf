package mail

import (
	"context"

	"mailtree/maildir"
)

type itemShape struct {
	Text      string `json:"text"`
	MessageID string `json:"message_id"`
	From      string `json:"from"`
	Owner     string `json:"owner,omitempty"`
}

type summaryShape struct {
	ThreadID     string      `json:"thread_id"`
	Subject      string      `json:"subject"`
	Participants []string    `json:"participants"`
	Messages     int         `json:"messages"`
	First        string      `json:"first_ts,omitempty"`
	Last         string      `json:"last_ts,omitempty"`
	KeyPoints    []itemShape `json:"key_points"`
	Decisions    []itemShape `json:"decisions"`
	OpenActions  []itemShape `json:"open_actions"`
	DoneActions  []itemShape `json:"done_actions"`
	Questions    []itemShape `json:"questions"`
	Examples     []itemShape `json:"examples"`
	Truncated    bool        `json:"truncated,omitempty"`
}

func summarizeThread() tool {
	items := arrayOf("", object("", need("text", text("")), need("message_id", text("")), need("from", text("")), may("owner", text("whose action it is"))))
	return tool{
		name: "summarize_thread", title: "Summarize thread", hints: reads(),
		about: "Summarize a thread: participants, key points, decisions, open and done action items, open questions, each with its message id.",
		in: []prop{
			projectKey(), need("thread_id", str("thread id, or the id of its first message", "TKT-123")),
			may("include_examples", flag("with excerpts of the newest messages", false)),
		},
		out: []prop{
			need("thread_id", text("")), need("subject", text("")), need("participants", texts("")), need("messages", whole("how many")),
			may("first_ts", text("")), may("last_ts", text("")), need("key_points", items), need("decisions", items), need("open_actions", items),
			need("done_actions", items), need("questions", items), need("examples", items), may("truncated", truth("the thread was too long to read whole")),
		},
		run: func(ctx context.Context, t *Toolset, a *args) (any, error) {
			thread, examples := a.text("thread_id"), a.flag("include_examples")
			p, err := t.project(ctx, a)
			if err != nil {
				return nil, err
			}
			s, err := p.Summarize(ctx, thread, examples)
			if err != nil {
				return nil, err
			}
			return summaryShape{
				s.ThreadID, s.Subject, strs(s.Participants), s.Messages, stamp(s.First), stamp(s.Last), shapeItems(s.KeyPoints), shapeItems(s.Decisions),
				shapeItems(s.OpenActions), shapeItems(s.DoneActions), shapeItems(s.Questions), shapeItems(s.Examples), s.Truncated,
			}, nil
		},
	}
}

func shapeItems(l []maildir.SummaryItem) []itemShape {
	out := make([]itemShape, len(l))
	for i, x := range l {
		out[i] = itemShape(x)
	}
	return out
}
