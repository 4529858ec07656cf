package agentmail

import (
	"context"
	"slices"

	"mailtree/mcp/tool"
)

type recipientShape struct {
	Name      string `json:"name"`
	IsCurrent bool   `json:"is_current"`
}

type recipientsShape struct {
	Recipients []recipientShape `json:"recipients"`
}

func (t *toolset) listRecipients() tool.Tool {
	return tool.Tool{
		Name: "list-recipients", Title: "List recipients", Hints: tool.Marks(), // the caller is known from then on
		About: "List the agents you can send to, and yourself.",
		Out: []tool.Prop{tool.Need("recipients", tool.ArrayOf("by name", tool.Object("",
			tool.Need("name", tool.Text("agent name")), tool.Need("is_current", tool.Truth("it is you")))))},
		Run: func(ctx context.Context, _ *tool.Args) (any, error) {
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
			return shapeRecipients(names, ignored, w.name), nil
		},
	}
}

func shapeRecipients(names, ignored []string, me string) recipientsShape {
	s := recipientsShape{Recipients: []recipientShape{}}
	for _, n := range names {
		if n == me || !slices.Contains(ignored, n) {
			s.Recipients = append(s.Recipients, recipientShape{n, n == me})
		}
	}
	return s
}
