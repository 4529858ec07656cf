package indexer

import (
	"context"
	"slices"
	"strings"

	"mailtree/maildir/format"
	"mailtree/maildir/index"
)

// messageColumns are the columns that scanMessage reads. In a query, they are followed by a body column. A short body
// is read together with the message's row. A longer body is read later, in pieces, when the caller knows how much
// room is left in the response.
const (
	messageColumns = "m.row, m.id, m.thread, m.sender, m.tos, m.ccs, m.created, m.importance, m.ack, m.in_reply_to, m.message_id, m.key, " +
		"m.auth, m.door, m.rest, m.digest, m.question, " + messagePath + ", m.subject, octet_length(m.body)"
	// messagePath is SQL for the path of the file that contains the content of message m.
	messagePath   = "(SELECT path FROM folders WHERE fol = m.fol) || '/' || m.id || '.md'"
	withBody      = ", m.body"
	withShortBody = ", CASE WHEN octet_length(m.body) <= 8192 THEN m.body ELSE '' END"
	withoutBody   = ", ''"
	bodyPiece     = "SELECT ifnull(substr(CAST(body AS BLOB), ?2 + 1, ?3 + 0), '') FROM messages WHERE row = ?1"
)

func bodyColumn(wanted index.BodyWanted) string {
	if wanted {
		return withShortBody
	}
	return withoutBody
}

// takeBody reserves room for a message, and reads its body if wanted is set. takeBody reports whether there was enough
// room.
func takeBody(ctx context.Context, from reader, m *index.MessageRow, wanted index.BodyWanted, room *index.Room) (bool, error) {
	if !wanted {
		return room.Take(m, nil)
	}
	short := m.Body
	return room.Take(m, func(offset, n int64) (string, error) {
		if end := offset + n; int64(len(short)) == m.BodyBytes && end <= m.BodyBytes {
			return short[offset:end], nil
		}
		return readBody(ctx, from, m.Cursor, offset, n)
	})
}

func readBody(ctx context.Context, from reader, row, offset, n int64) (text string, err error) {
	err = one(ctx, from, bodyPiece, []any{row, offset, n}, &text)
	return text, err
}

// takeAll reserves room for messages one by one, and returns the messages that fit.
func takeAll[T any](ctx context.Context, from reader, rows []T, of func(*T) *index.MessageRow, wanted index.BodyWanted,
	room *index.Room) ([]T, error) {
	for i := range rows {
		if ok, err := takeBody(ctx, from, of(&rows[i]), wanted, room); err != nil || !ok {
			return rows[:i], err
		}
	}
	return rows, nil
}

// inColumns lists the header keys that are not stored in the column rest. All of them except bcc have their own
// column, because queries use them. The key bcc has no column, because the index must not reveal recipients of blind
// copies.
var inColumns = []string{
	"id", "thread_id", "from", "to", "cc", "bcc", "subject", "created", "importance", "ack_required", "in_reply_to", "message_id", "key",
	"auth", "door",
}

// rest scans the column rest into a message.
type rest struct{ m *format.Message }

func (r rest) Scan(text any) error {
	encoded, _ := text.(string)
	return r.m.SetRest(encoded)
}

// scanMessage reads messageColumns and a body into m, and any other columns into more.
func scanMessage(slug string, scan scanner, m *index.MessageRow, more ...any) error {
	into := []any{&m.Cursor, &m.ID, &m.ThreadID, &m.From, names{&m.To}, names{&m.CC}, instant{&m.Created}, &m.Importance,
		&m.AckRequired, &m.InReplyTo, &m.MessageID, &m.Key, &m.Auth, &m.Door, rest{&m.Message}, &m.Digest, &m.Question, &m.Path,
		&m.Subject, &m.BodyBytes, &m.Body}
	m.Project = slug
	return scan(append(into, more...)...)
}

func messages(ctx context.Context, from reader, slug, text string, args ...any) ([]index.MessageRow, error) {
	return list(ctx, from, text, args, func(scan scanner, m *index.MessageRow) error { return scanMessage(slug, scan, m) })
}

// Message implements index.Index. It reads one message.
func (x *Index) Message(ctx context.Context, slug, id string, wanted index.BodyWanted, room *index.Room) (*index.MessageRow, error) {
	text := "SELECT " + messageColumns + bodyColumn(wanted) + " FROM messages m WHERE m.pid = ? AND m.id = ?"
	v, err := x.view(ctx, text, bodyPiece)
	if err != nil {
		return nil, err
	}
	defer v.close()
	rows, err := messages(ctx, v, slug, text, x.pid(slug), id)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	_, err = takeBody(ctx, v, &rows[0], wanted, room)
	return &rows[0], err
}

// FromElsewhere implements index.Index. It finds a message by its Message-ID.
func (x *Index) FromElsewhere(ctx context.Context, slug, messageID string) (*index.MessageRow, error) {
	const text = "SELECT " + messageColumns + withoutBody + " FROM messages m WHERE m.pid = ? AND m.message_id = ? AND m.message_id <> '' " +
		"ORDER BY m.row LIMIT 1"
	rows, err := messages(ctx, x, slug, text, x.pid(slug), messageID)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	return &rows[0], nil
}

// Body implements index.Index. It reads a piece of a body.
func (x *Index) Body(ctx context.Context, slug, id string, offset, n int64) (text string, err error) {
	err = x.each(ctx, "SELECT ifnull(substr(CAST(body AS BLOB), ?3 + 1, ?4 + 0), '') FROM messages WHERE pid = ?1 AND id = ?2",
		[]any{x.pid(slug), id, offset, n},
		func(scan scanner) error { return scan(&text) })
	return text, err
}

// inThread selects the rows of a thread, which are all messages with that thread id, and the message with that message
// id. The index on thread uses NOCASE because Names needs it. The second comparison makes the match exact.
const inThread = "SELECT row FROM messages WHERE pid = ?1 AND thread = ?2 COLLATE NOCASE AND thread = ?2 AND thread <> '' " +
	"UNION SELECT row FROM messages WHERE pid = ?1 AND id = ?2"

// ShortBodies implements index.Index. It reads the short bodies of a thread.
func (x *Index) ShortBodies(ctx context.Context, slug, thread string, after int64) (map[string]string, error) {
	bodies := map[string]string{}
	err := x.each(ctx, "SELECT id, body FROM messages WHERE row IN ("+inThread+") AND row > ?3 AND octet_length(body) <= 8192",
		[]any{x.pid(slug), thread, after}, func(scan scanner) error {
			var id, body string
			err := scan(&id, &body)
			bodies[id] = body
			return err
		})
	return bodies, err
}

// Thread implements index.Index. It lists a thread oldest first.
func (x *Index) Thread(ctx context.Context, q index.ThreadQuery) ([]index.MessageRow, error) {
	limit := q.Limit
	if limit <= 0 {
		limit = -1 // means "no limit" in SQLite
	}
	if !q.Since.IsZero() {
		q.After = max(q.After, firstRow(q.Since.UnixMicro())-1)
	}
	wanted := index.BodyWanted(q.Bodies)
	text := "SELECT " + messageColumns + bodyColumn(wanted) + " FROM messages m WHERE m.row IN (" + inThread + ") AND m.row > ?3 " +
		"ORDER BY m.row LIMIT ?4 + 0"
	v, err := x.view(ctx, text, bodyPiece)
	if err != nil {
		return nil, err
	}
	defer v.close()
	rows, err := messages(ctx, v, q.Project, text, x.pid(q.Project), q.Thread, q.After, limit)
	if err != nil {
		return nil, err
	}
	if q.MostBody > 0 {
		return rows, takeBeginnings(ctx, v, rows, q.MostBody, q.MostText)
	}
	return takeAll(ctx, v, rows, func(m *index.MessageRow) *index.MessageRow { return m }, wanted, q.Room)
}

// takeBeginnings reads the beginnings of bodies. It reads up to most bytes of each body, and up to total bytes of all
// bodies together. If a body is cut off, BodyNext is the offset of the rest, which is at least 1.
func takeBeginnings(ctx context.Context, from reader, rows []index.MessageRow, most, total int64) error {
	for i := range rows {
		m := &rows[i]
		n := min(m.BodyBytes, most, total)
		if int64(len(m.Body)) != n { // a shorter body was read with its row
			text, err := readBody(ctx, from, m.Cursor, 0, n)
			if err != nil {
				return err
			}
			m.Body = strings.ToValidUTF8(text, "")
		}
		if total -= n; n < m.BodyBytes {
			m.BodyNext = max(int64(len(m.Body)), 1)
		}
	}
	return nil
}

// Keyed implements index.Index. It finds messages by the sender's idempotency key.
func (x *Index) Keyed(ctx context.Context, slug, from, key string) ([]index.MessageRow, error) {
	if key == "" {
		return []index.MessageRow{}, nil
	}
	const text = "SELECT " + messageColumns + withBody + ", coalesce((SELECT d.fact FROM deliveries d WHERE d.box = -" + agentID +
		" AND d.row = m.row), '') FROM messages m WHERE m.pid = ?1 AND m.sender = ?2 AND m.key = ?3 AND m.key <> '' ORDER BY m.row"
	return list(ctx, x, text, []any{x.pid(slug), from, key}, func(scan scanner, m *index.MessageRow) error {
		err := scanMessage(slug, scan, m, names{&m.BCC})
		if len(m.BCC) == 0 {
			m.BCC = nil
		}
		return err
	})
}

// IDKeyed implements index.Index. It finds a message that an agent sent or received, by the sender's idempotency key.
func (x *Index) IDKeyed(ctx context.Context, slug, agent, key string) (id string, err error) {
	if key == "" {
		return "", nil
	}
	const text = "SELECT m.id FROM messages m WHERE m.pid = ?1 AND m.sender IN (SELECT name FROM agents WHERE pid = ?1) " +
		"AND m.key = ?3 AND m.key <> '' AND (m.sender = ?2 OR EXISTS (SELECT 1 FROM deliveries d WHERE d.box = " + agentID +
		" AND d.row = m.row)) ORDER BY m.row DESC LIMIT 1"
	err = one(ctx, x, text, []any{x.pid(slug), agent, key}, &id)
	return id, err
}

// Newest implements index.Index. It lists the newest messages in all projects.
func (x *Index) Newest(ctx context.Context, limit int) ([]index.MessageRow, error) {
	const text = "SELECT p.slug, m.id, m.thread, m.sender, m.subject FROM messages m JOIN projects p USING (pid) " +
		"ORDER BY m.row DESC LIMIT ? + 0"
	rows, err := list(ctx, x, text, []any{limit}, func(scan scanner, m *index.MessageRow) error {
		return scan(&m.Project, &m.ID, &m.ThreadID, &m.From, &m.Subject)
	})
	return slices.DeleteFunc(rows, func(m index.MessageRow) bool { return x.project(m.Project) == nil }), err
}
