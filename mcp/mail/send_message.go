package mail

import (
	"context"
	"math"
	"regexp"

	"mailtree/maildir"
	"mailtree/maildir/format"
	"mailtree/mcp/tool"
)

func (t *Toolset) sendMessage() tool.Tool {
	return tool.Tool{
		Name:  "send_message",
		Hints: tool.Adds(),
		About: "Mail agents in other sessions and programs, and people: a markdown message, delivered to all recipients or to none.",
		In: []tool.Prop{
			projectKey(), fromAgent(),
			tool.Need("to", tool.List("agent names", "BlueLake")),
			tool.Need("subject", tool.Str("one line", "Plan for /api/users")),
			tool.Need("body_md", tool.Str("markdown", "Here is the plan ...")),
			tool.May("cc", tool.List("", "RedStone")),
			tool.May("bcc", tool.List("hidden from the others", "RedStone")),
			tool.May("importance", importance("normal")),
			tool.May("ack_required", tool.Flag("ask for acknowledge_message")),
			tool.May("thread_id", tool.Str("such as a ticket", "TKT-123")),
			tool.May("convert_images", tool.Flag("no effect yet")),
			tool.May("image_embed_policy", tool.OneOf("", "auto", "auto", "file", "inline")),
			tool.May("inline_max_bytes", tool.Num("", 0, math.MaxInt32, 65536)),
			tool.May("attachments", tool.List("paths, absolute or from the top of the work tree", "docs/flow.png")),
			tool.May("key", tool.Str("your own id: sent again, it is delivered once", "plan-1")),
		},
		Out: sentShape{},
		Run: func(ctx context.Context, a *tool.Args) (any, error) {
			d := maildir.Draft{
				From:        a.Text("from_agent"),
				To:          a.Names("to"),
				CC:          a.Names("cc"),
				BCC:         a.Names("bcc"),
				Subject:     a.Text("subject"),
				Body:        a.Text("body_md"),
				Importance:  a.Choice("importance"),
				AckRequired: a.Flag("ack_required"),
				ThreadID:    a.Text("thread_id"),
				Attachments: a.Names("attachments"),
				Key:         a.Text("key"),
				Auth:        tool.CallerOf(ctx).Auth,
				Door:        tool.CallerOf(ctx).Door,
				WorkDir:     tool.CallerOf(ctx).WorkDir(a.Text("project_key")),
			}
			notes := imageNotes(a, d.Body)
			p, err := t.project(ctx, a)
			if err != nil {
				return nil, err
			}
			sent, err := p.Send(ctx, d)
			if err != nil {
				return nil, err
			}
			return shapeSent(sent, notes), nil
		},
	}
}

func importance(deflt string) *tool.Node {
	return tool.OneOf("", deflt, format.Low, format.Normal, format.High, format.Urgent)
}

// localImage matches data URIs, and markdown images whose path has no scheme.
var localImage = regexp.MustCompile(`!\[[^\]]*\]\(\s*<?(data:image/|[^)\s:]+[)\s>])`)

// imageNotes checks the image arguments and says which of them have no effect.
func imageNotes(a *tool.Args, body string) []string {
	a.Choice("image_embed_policy")
	a.Count("inline_max_bytes", 0, math.MaxInt32)
	if !a.Flag("convert_images") || !localImage.MatchString(body) {
		return nil
	}
	return []string{"image references in the body were left as they are: this build does not convert images yet; " +
		"name the files in attachments to send them along"}
}
