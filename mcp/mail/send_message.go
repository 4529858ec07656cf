package mail

import (
	"context"
	"regexp"

	"mailtree/maildir"
)

func sendMessage() tool {
	return tool{
		name: "send_message", title: "Send message", hints: adds(),
		about: "Send a markdown message to one or more agents of the project; it is delivered to all of them or to none.",
		in: []prop{
			projectKey(), fromAgent(),
			need("to", list("agent names", "BlueLake")),
			need("subject", str("one line", "Plan for /api/users")),
			need("body_md", str("body in markdown", "Here is the plan ...")),
			may("cc", list("agent names", "RedStone")),
			may("bcc", list("agent names that the others do not see", "RedStone")),
			may("importance", importance("normal")),
			may("ack_required", flag("ask for acknowledge_message", false)),
			may("thread_id", str("thread to put it in, e.g. a ticket", "TKT-123")),
			may("convert_images", flag("accepted; image references are left as they are for now", false)),
			may("image_embed_policy", oneOf("accepted, see convert_images", "auto", "auto", "file", "inline")),
			may("inline_max_bytes", num("accepted, see convert_images", 0, 1<<30, 65536)),
			may("attachments", list("paths of files to attach", "docs/flow.png")),
			may("key", str("your own id for this message: sending it again with the same key delivers it once", "plan-1")),
		},
		out: sentProps(),
		run: func(ctx context.Context, t *Toolset, a *args) (any, error) {
			d := maildir.Draft{
				From: a.text("from_agent"), To: a.names("to"), CC: a.names("cc"), BCC: a.names("bcc"),
				Subject: a.text("subject"), Body: a.text("body_md"), Importance: a.choice("importance"), AckRequired: a.flag("ack_required"),
				ThreadID: a.text("thread_id"), Attachments: a.names("attachments"), Key: a.text("key"), Auth: t.auth(ctx),
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

func importance(deflt string) *node {
	return oneOf("", deflt, maildir.Low, maildir.Normal, maildir.High, maildir.Urgent)
}

// localImage finds markdown images that are neither on the web nor elsewhere with a scheme, and data URIs.
var localImage = regexp.MustCompile(`!\[[^\]]*\]\(\s*<?(data:image/|[^)\s:]+[)\s>])`)

// imageNotes checks the image arguments and says what is not done with them.
func imageNotes(a *args, body string) []string {
	a.choice("image_embed_policy")
	a.count("inline_max_bytes", 0, 1<<30)
	if !a.flag("convert_images") || !localImage.MatchString(body) {
		return nil
	}
	return []string{"image references in the body were left as they are: this build does not convert images yet; name the files in attachments to send them along"}
}
