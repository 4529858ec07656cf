package mail

import (
	"context"

	"mailtree/maildir/summary"
	"mailtree/mcp/tool"
)

// ThreadSummary is the result of summarize_thread.
type ThreadSummary struct {
	summary.Summary
	Note      string `json:"note,omitempty"`
	Truncated bool   `json:"truncated,omitempty"`
}

type summaryRequest struct {
	Project  string `json:"project_key" jsonschema:"path of the top of the working tree" example:"/abs/path/backend"`
	Thread   string `json:"thread_id" jsonschema:"thread, or the id of a message in it" example:"TKT-123"`
	Examples bool   `json:"include_examples,omitempty" jsonschema:"return excerpts too"`
}

func (t *Toolset) summarizeThread() tool.Tool {
	return tool.Of(tool.Tool{
		Name:  "summarize_thread",
		Hints: tool.Reads(),
		About: "Use to catch up on a long thread. Summarizes key points, decisions, actions, open questions and code. Full thread: " +
			"resource://thread/{thread_id}.",
		Out: ThreadSummary{},
	}, func(ctx context.Context, r *summaryRequest) (any, error) {
		p, note, err := t.project(ctx, r.Project)
		if err != nil {
			return nil, err
		}
		if err := tool.HoldOf(ctx).Reserve(ctx, parsing); err != nil {
			return nil, err
		}
		s, err := p.Summarize(ctx, r.Thread, r.Examples)
		if err != nil {
			return nil, err
		}
		out := ThreadSummary{*s, notes(note, t.Note(ctx, s.Note)), s.Truncated}
		t.shorten(&out)
		return out, nil
	})
}

// parsing is the number of bytes of memory that parsing the longest possible body needs.
const parsing = 16 << 20

// maxParticipants is the maximum number of participants in a response. Any other participants appear among the
// recipients of the messages.
const maxParticipants = 1000

// shorten removes the older half of each list until the summary fits in a response.
func (t *Toolset) shorten(s *ThreadSummary) {
	if len(s.Participants) > maxParticipants {
		s.Participants, s.Truncated = s.Participants[:maxParticipants], true
	}
	for !t.budget.Fits(tool.InTool, s) {
		s.Truncated = true
		for _, l := range []*[]summary.Item{&s.KeyPoints, &s.Decisions, &s.OpenActions, &s.DoneActions, &s.Questions, &s.Examples} {
			*l = (*l)[(len(*l)+1)/2:]
		}
		s.Code = s.Code[(len(s.Code)+1)/2:]
	}
}
