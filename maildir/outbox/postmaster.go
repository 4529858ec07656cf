package outbox

import (
	"context"
	"fmt"
	"strings"

	"mailtree/maildir/core"
	"mailtree/maildir/format"
	"mailtree/maildir/index"
	"mailtree/maildir/refusal"
	"mailtree/maildir/tree"
	"mailtree/maildir/unsent"
	"mailtree/maildir/writer"
)

// savedWords maps the fields in a refusal to the names that a file's header uses for them.
var savedWords = refusal.Words{Args: map[refusal.Field]string{
	refusal.From:        "from",
	refusal.Recipients:  "to, cc or bcc",
	refusal.To:          "to",
	refusal.CC:          "cc",
	refusal.BCC:         "bcc",
	refusal.Subject:     "subject",
	refusal.Importance:  "importance",
	refusal.Thread:      "thread_id",
	refusal.Key:         "key",
	refusal.InReplyTo:   "in_reply_to",
	refusal.Message:     "in_reply_to",
	refusal.References:  "references",
	refusal.Attachments: "attachments",
}}

// notSent begins the subject of Postmaster's messages about a file in an outbox. The file's path follows.
const notSent = "Not sent: "

// tellUnsent notifies an author that a file in the outbox was not sent, and why. It sends only one notice for the same
// content and reason. Postmaster's earlier notices about the file are marked as read.
func (o *Outbox) tellUnsent(ctx context.Context, path string, data []byte, why error) error {
	before, err := o.unreadAbout(ctx, path)
	if err != nil {
		return err
	}
	reason := savedWords.Explain(why)
	return o.mail.Notify(ctx, core.Notice{
		To:       format.Locate(path).Agent,
		About:    unsent.Key(path, data, reason),
		Thread:   unsent.Thread(path),
		Resolved: before,
		Subject:  notSent + format.Cut(format.Printable(path), 900),
		Body:     unsent.Body(path, reason),
	})
}

// withdrawUnsent marks Postmaster's notices about a file in an outbox as read after the file was sent or removed.
func (o *Outbox) withdrawUnsent(ctx context.Context, path string) error {
	ids, err := o.unreadAbout(ctx, path)
	if err != nil || len(ids) == 0 {
		return err
	}
	agent := format.Locate(path).Agent
	tx := &writer.Tx{
		Op:    writer.Op{Verb: "withdraw", Agent: format.Postmaster, ID: ids[0], Summary: format.Postmaster + " " + ids[0]},
		Facts: []string{core.MarkFact(agent)},
		IDs:   ids,
	}
	tx.Plan = func(g *writer.Group) error { return o.mail.PlanMarking(g, tx, agent, core.MarkResolved(ids)) }
	return o.mail.Writer.Do(ctx, tx)
}

// unreadAbout returns the ids of Postmaster's messages about an outbox file. It omits messages that the author has
// read.
func (o *Outbox) unreadAbout(ctx context.Context, path string) (ids []string, err error) {
	rows, err := o.mail.Store.Index.Thread(ctx, index.ThreadQuery{Project: o.mail.Slug, Thread: unsent.Thread(path)})
	if err != nil {
		return nil, err
	}
	var told []string
	for i := range rows {
		// A notice from another machine's Postmaster may be about a different file with the same name.
		if _, here := o.mail.Store.VerifiedHere(&rows[i].Message); here && rows[i].From == format.Postmaster {
			told = append(told, rows[i].ID)
		}
	}
	if len(told) == 0 {
		return nil, nil
	}
	copies, err := o.mail.Store.Index.Deliveries(ctx, o.mail.Slug, format.Locate(path).Agent, told)
	for i := range copies {
		if !copies[i].Read {
			ids = append(ids, copies[i].ID)
		}
	}
	return ids, err
}

// mostTold is the maximum number of an agent's unread messages that pathsTold checks.
const mostTold = 200

// pathsTold returns the paths of the outbox files that are mentioned in unread notices from Postmaster.
func (o *Outbox) pathsTold(ctx context.Context) (paths []string, err error) {
	agents, err := o.mail.Store.Index.Agents(ctx, o.mail.Slug)
	if err != nil {
		return nil, err
	}
	for i := range agents {
		if agents[i].Unread == 0 {
			continue
		}
		unread, err := o.mail.Store.Index.OldestUnread(ctx, o.mail.Slug, agents[i].Name, mostTold)
		if err != nil {
			return nil, err
		}
		for _, d := range unread {
			path, found := strings.CutPrefix(d.Subject, notSent)
			outbox := format.Locate(path).Kind == format.KindOutbox
			if found && outbox && d.From == format.Postmaster && d.ThreadID == unsent.Thread(path) {
				paths = append(paths, path)
			}
		}
	}
	return paths, nil
}

// tellOfEdit notifies an agent, once for each message, that editing the copy in its inbox has no effect. See
// docs/reference/tree.md, "Copies".
func (o *Outbox) tellOfEdit(ctx context.Context, path string) error {
	at := format.Locate(path)
	m, err := o.mail.Store.Index.Message(ctx, o.mail.Slug, at.ID, index.WithoutBody, nil)
	if err != nil || m == nil || format.Locate(m.Path).Kind != format.KindCanonical {
		return err
	}
	sum := func(path string) (*[32]byte, error) {
		data, _, err := o.mail.Tree.Read(path, o.mail.Tree.MaxFile())
		return format.CopySum(at.ID, data), tree.MachineFault(err)
	}
	copied, err := sum(path)
	if err != nil {
		return err
	}
	canonical, err := sum(m.Path)
	if err != nil || copied == nil || canonical == nil || *copied == *canonical {
		return err
	}
	return o.mail.Notify(ctx, core.Notice{
		To:      at.Agent,
		About:   "edit " + tree.SHA256([]byte(at.Agent + "\n" + at.ID))[:32],
		Subject: "Your edit has no effect: " + format.Cut(m.Subject, 900),
		Body: fmt.Sprintf("This copy in your inbox was edited:\n\n    %s\n\nThe edit has no effect: readers see "+
			"the message's canonical file:\n\n    %s\n\nTo change the message for everyone, edit that file. To "+
			"restore your copy, copy that file over it.", format.Printable(path), format.Printable(m.Path)),
	})
}
