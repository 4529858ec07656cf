package agentmail

import (
	"context"
	"slices"
	"time"

	"mailtree/mcp/tool"
)

type recipientShape struct {
	Name      string `json:"name"`
	IsCurrent bool   `json:"is_current"`             // whether this is the caller
	LastRead  int64  `json:"last_read_at,omitempty"` // when the agent last read mail, as Unix time in ms
}

type recipientsShape struct {
	Recipients []recipientShape `json:"recipients"`            // sorted by name
	Next       int              `json:"next_offset,omitempty"` // pass this as offset to get more
}

type recipientsRequest struct {
	Offset int `json:"offset,omitempty" jsonschema:"next_offset of the previous response"`
}

func (t *toolset) listRecipients() tool.Tool {
	return tool.Of(tool.Tool{
		Name:  "list-recipients",
		Hints: tool.Marks(), // this tool is not read-only, because the call registers its caller
		About: "Use to see who you can write to. Lists the names of all agents, including your own.",
		Out:   recipientsShape{},
	}, func(ctx context.Context, r *recipientsRequest) (any, error) {
		w, p, err := t.meet(ctx)
		if err != nil {
			return nil, err
		}
		names, err := recipients(ctx, p, w)
		if err != nil {
			return nil, err
		}
		ignored, err := t.ignored(ctx, p)
		if err != nil {
			return nil, err
		}
		read, err := p.Agents.LastRead(ctx)
		if err != nil {
			return nil, err
		}
		all := shapeRecipients(names, ignored, w.name, read).Recipients
		page, next, err := tool.Page(ctx, t.cfg.Budget, all, r.Offset)
		return recipientsShape{page, next}, err
	})
}

func shapeRecipients(names, ignored []string, me string, read map[string]time.Time) recipientsShape {
	s := recipientsShape{Recipients: []recipientShape{}}
	for _, n := range names {
		if n == me || !slices.Contains(ignored, n) {
			r := recipientShape{Name: n, IsCurrent: n == me}
			if at := read[n]; !at.IsZero() {
				r.LastRead = at.UnixMilli()
			}
			s.Recipients = append(s.Recipients, r)
		}
	}
	return s
}
