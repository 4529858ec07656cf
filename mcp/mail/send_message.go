package mail

import (
	"context"
	"math"

	"mailtree/maildir"
	"mailtree/maildir/attachment"
	"mailtree/maildir/format"
	"mailtree/mcp/tool"
)

func (t *Toolset) sendMessage() tool.Tool {
	return tool.Tool{
		Name:  "send_message",
		Hints: tool.Adds(),
		About: "Mail agents in other sessions and programs, and people: a markdown message, delivered to all or to none.",
		In: []tool.Prop{
			workTree(), fromAgent(),
			tool.Need("to", tool.CommaList("agent names", "BlueLake")),
			tool.Need("subject", tool.Str("one line", "Plan for /api/users")),
			tool.Need("body_md", tool.Str("markdown", "Here is the plan ...")),
			tool.May("cc", tool.CommaList("", "RedStone")),
			tool.May("bcc", tool.CommaList("hidden from the others", "RedStone")),
			tool.May("importance", importance("normal")),
			tool.May("ack_required", tool.Flag("ask for acknowledge_message")),
			tool.May("thread_id", tool.Str("yours, such as a ticket; none: a new thread", "TKT-123")),
			tool.May("convert_images", tool.Flag("to WebP; false: none")),
			tool.May("image_embed_policy", tool.OneOf("", "", "auto", "file", "inline")),
			tool.May("inline_max_bytes", tool.Num("", 0, math.MaxInt32, 0)),
			tool.May("attachments", tool.List("paths, absolute or from the top of the work tree", "docs/flow.png")),
			tool.May("key", tool.Str("your own id: sent again, it is delivered once", "plan-1")),
			waitReply(),
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
				Origin:      tool.CallerOf(ctx).Origin,
				WorkDir:     tool.CallerOf(ctx).WorkDir(a.Text("project_key")),
				Images:      images(a),
			}
			wait, bounded := a.Wait("wait_reply_seconds", tool.MaxWait)
			p, note, err := t.project(ctx, a)
			if err != nil {
				return nil, err
			}
			sent, err := p.Send(ctx, d)
			if err != nil {
				return nil, err
			}
			return t.viewOf(ctx, p, notes(note, bounded)).answerSent(ctx, sent, wait), nil
		},
	}
}

func importance(deflt string) *tool.Node {
	return tool.OneOf("", deflt, format.Low, format.Normal, format.High, format.Urgent)
}

// images are the arguments on images; what is absent goes by the settings of the store.
func images(a *tool.Args) *attachment.Images {
	i := &attachment.Images{Embed: attachment.ImagePolicy(a.Choice("image_embed_policy"))}
	if a.Has("convert_images") {
		i.Convert = attachment.ConvertNone
		if a.Flag("convert_images") {
			i.Convert = attachment.ConvertAll
		}
	}
	if a.Has("inline_max_bytes") {
		if i.MaxInline = a.Count("inline_max_bytes", 0, math.MaxInt32); i.MaxInline == 0 {
			i.MaxInline = -1
		}
	}
	return i
}
