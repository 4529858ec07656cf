package indexer

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"mailtree/maildir"
)

// messageColumns is what scanMessage reads; the body comes last, where it is asked for.
const (
	messageColumns = "m.row, m.id, m.thread, m.human, m.sender, m.tos, m.ccs, m.created, m.importance, m.ack, m.in_reply_to, m.attachments, m.key, m.auth, m.seal, m.digest, m.src, m.subject"
	withBody       = ", m.body"
	withoutBody    = ", ''"
)

func bodyColumn(bodies bool) string {
	if bodies {
		return withBody
	}
	return withoutBody
}

// scanMessage reads messageColumns and a body into m, and further columns into more.
func scanMessage(slug string, scan func(...any) error, m *maildir.MessageRow, more ...any) error {
	var tos, ccs, attachments string
	var created int64
	into := []any{&m.Cursor, &m.ID, &m.ThreadID, &m.Message.Project, &m.From, &tos, &ccs, &created, &m.Importance, &m.AckRequired, &m.InReplyTo, &attachments,
		&m.Key, &m.Auth, &m.Seal, &m.Digest, &m.Path, &m.Subject, &m.Body}
	if err := scan(append(into, more...)...); err != nil {
		return err
	}
	m.Project, m.To, m.CC, m.Created = slug, strings.Fields(tos), strings.Fields(ccs), moment(created)
	if attachments != "" {
		if err := json.Unmarshal([]byte(attachments), &m.Attachments); err != nil {
			return fmt.Errorf("attachments of %s: %w", m.ID, err)
		}
	}
	return nil
}

func (x *Index) messages(ctx context.Context, slug, text string, args ...any) ([]maildir.MessageRow, error) {
	all := []maildir.MessageRow{}
	err := x.each(ctx, text, args, func(scan func(...any) error) error {
		var m maildir.MessageRow
		err := scanMessage(slug, scan, &m)
		all = append(all, m)
		return err
	})
	return all, err
}

// Message reads one message: see maildir.Index.
func (x *Index) Message(ctx context.Context, slug, id string) (*maildir.MessageRow, error) {
	rows, err := x.messages(ctx, slug, "SELECT "+messageColumns+withBody+" FROM messages m WHERE m.pid = ? AND m.id = ?", x.pid(slug), id)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	return &rows[0], nil
}

// inThread selects the rows of a thread: those with that thread id, and the message whose id it is. The index on
// thread has NOCASE for the sake of Names; the second comparison makes it exact.
const inThread = "SELECT row FROM messages WHERE pid = ?1 AND thread = ?2 COLLATE NOCASE AND thread = ?2 AND thread <> '' UNION SELECT row FROM messages WHERE pid = ?1 AND id = ?2"

// Thread lists a thread oldest first: see maildir.Index.
func (x *Index) Thread(ctx context.Context, slug, thread string, bodies bool) ([]maildir.MessageRow, error) {
	return x.messages(ctx, slug, "SELECT "+messageColumns+bodyColumn(bodies)+" FROM messages m WHERE m.row IN ("+inThread+") ORDER BY m.row", x.pid(slug), thread)
}

// Keyed finds messages by their sender's key: see maildir.Index.
func (x *Index) Keyed(ctx context.Context, slug, from, key string) ([]maildir.MessageRow, error) {
	all := []maildir.MessageRow{}
	if key == "" {
		return all, nil
	}
	const bcc = `, coalesce((SELECT f.fact FROM files f WHERE f.pid = m.pid AND f.msgid = m.id AND f.msgid <> '' AND f.agent = m.sender AND f.kind = ?4 AND f.valid ORDER BY f.path LIMIT 1), '')`
	err := x.each(ctx, "SELECT "+messageColumns+withBody+bcc+" FROM messages m WHERE m.pid = ?1 AND m.sender = ?2 AND m.key = ?3 AND m.key <> '' ORDER BY m.row",
		[]any{x.pid(slug), from, key, int(maildir.KindOutbox)}, func(scan func(...any) error) error {
			var m maildir.MessageRow
			var blind string
			err := scanMessage(slug, scan, &m, &blind)
			if blind != "" {
				m.BCC = strings.Fields(blind)
			}
			all = append(all, m)
			return err
		})
	return all, err
}
