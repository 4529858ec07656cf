package agentmail

import (
	"context"

	"mailtree/maildir"
	"mailtree/maildir/format"
	"mailtree/mcp/tool"
)

type statusShape struct {
	Status string `json:"status" jsonschema:"ok"`
}

func (t *toolset) status() tool.Tool {
	return tool.Tool{
		Name:  "status",
		Hints: tool.Marks(),
		About: "Say whether you wait for mail: ready (you may be told of new mail), work (do not disturb) or offline.",
		In: []tool.Prop{tool.Need("status",
			tool.OneOf("your status, as it is written here", "", format.Ready, format.Work, format.Offline))},
		Out: statusShape{},
		Run: func(ctx context.Context, a *tool.Args) (any, error) {
			status := a.Text("status")
			if a.Err() != nil {
				return nil, a.Err()
			}
			if err := maildir.CheckPresence(status); err != nil {
				return nil, err
			}
			w, p, err := t.meet(ctx)
			if err != nil {
				return nil, err
			}
			if err := p.SetPresence(ctx, w.name, status); err != nil {
				return nil, err
			}
			return statusShape{"ok"}, nil
		},
	}
}
