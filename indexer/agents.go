package indexer

import (
	"cmp"
	"context"
	"database/sql"
	"slices"
	"strings"
	"time"

	"mailtree/maildir"
	"mailtree/maildir/format"
)

// agentColumns are an agent's row and the time of its last activity: the newest of its messages,
// marks, claims and its inception.
const agentColumns = `a.name, a.profile, a.program, a.model, a.task, a.inception, a.status, a.total, a.unread, a.archived, a.sent,
	(SELECT max(at) FROM (
		SELECT a.inception AS at
		UNION ALL SELECT (SELECT m.created FROM deliveries d CROSS JOIN messages m USING (row) WHERE d.box = -a.aid ORDER BY d.row DESC LIMIT 1)
		UNION ALL SELECT (SELECT max(d.read_at) FROM deliveries d WHERE d.box = a.aid AND d.read_at IS NOT NULL)
		UNION ALL SELECT (SELECT max(d.ack_at) FROM deliveries d WHERE d.box = a.aid AND d.ack_at IS NOT NULL)
		UNION ALL SELECT (SELECT max(c.created) FROM claims c WHERE c.pid = a.pid AND c.agent = a.name)))`

// shortColumns are the same without program, model, task and the last activity.
const shortColumns = "a.name, a.profile, '', '', '', a.inception, a.status, a.total, a.unread, a.archived, a.sent, NULL"

func scanAgent(scan func(...any) error) (maildir.AgentRow, error) {
	var r maildir.AgentRow
	var inception, last sql.NullInt64
	err := scan(&r.Name, &r.HasProfile, &r.Program, &r.Model, &r.Task, &inception, &r.Status, &r.Total, &r.Unread,
		&r.Archived, &r.Sent, &last)
	r.Inception, r.LastActive = scanTime(inception), scanTime(last)
	return r, err
}

func (x *Index) agents(ctx context.Context, columns, text string, args ...any) ([]maildir.AgentRow, error) {
	all := []maildir.AgentRow{}
	err := x.each(ctx, "SELECT "+columns+" FROM agents a WHERE "+text, args, func(scan func(...any) error) error {
		r, err := scanAgent(scan)
		all = append(all, r)
		return err
	})
	return all, err
}

// Agent reads one agent: see maildir.Index.
func (x *Index) Agent(ctx context.Context, slug, name string) (*maildir.AgentRow, error) {
	rows, err := x.agents(ctx, agentColumns, "a.pid = ? AND a.name = ?", x.pid(slug), name)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	return &rows[0], nil
}

// Agents lists the agents of a project by name: see maildir.Index.
func (x *Index) Agents(ctx context.Context, slug string) ([]maildir.AgentRow, error) {
	return x.agents(ctx, shortColumns, "a.pid = ? ORDER BY a.name", x.pid(slug))
}

// AgentsAfter lists some of the agents of a project by name: see maildir.Index.
func (x *Index) AgentsAfter(ctx context.Context, slug, after string, limit int) ([]maildir.AgentRow, error) {
	return x.agents(ctx, agentColumns, "a.pid = ? AND a.name > ? ORDER BY a.name LIMIT ? + 0", x.pid(slug), after, limit)
}

// ProjectsWith finds the projects that hold what is named: see maildir.Index.
func (x *Index) ProjectsWith(ctx context.Context, what format.Kind, name string) ([]string, error) {
	type found struct {
		slug string
		last int64
	}
	var all []found
	for _, p := range x.attached("") {
		last := int64(noTime)
		there := false
		switch what {
		case format.KindProfile:
			a, err := x.Agent(ctx, p.slug, name)
			if err != nil {
				return nil, err
			}
			if there = a != nil; there {
				last = micros(a.LastActive)
			}
		default:
			text := "SELECT max(created) FROM messages WHERE pid = ?1 AND id = ?2"
			if what == format.KindOther {
				text = "SELECT max(created) FROM messages WHERE row IN (" + inThread + ")"
			}
			err := x.each(ctx, text, []any{p.pid, name}, func(scan func(...any) error) error {
				var n sql.NullInt64
				err := scan(&n)
				there, last = n.Valid, n.Int64
				return err
			})
			if err != nil {
				return nil, err
			}
		}
		if there {
			all = append(all, found{p.slug, last})
		}
	}
	slices.SortFunc(all, func(a, b found) int { return cmp.Or(cmp.Compare(b.last, a.last), strings.Compare(a.slug, b.slug)) })
	slugs := []string{}
	for _, f := range all {
		slugs = append(slugs, f.slug)
	}
	return slugs, nil
}

// Names completes: see maildir.Index. The query steps through an index from one thread to the next,
// however many messages each has.
func (x *Index) Names(ctx context.Context, slug string, what format.Kind, prefix string, limit int) ([]string, error) {
	const agents = "SELECT name FROM agents WHERE pid = ?1 AND lower(substr(name, 1, length(?2))) = lower(?2) " +
		"ORDER BY name COLLATE NOCASE LIMIT ?3 + 0"
	const threads = `WITH RECURSIVE t(name) AS (
		SELECT (SELECT thread FROM messages WHERE pid = ?1 AND thread >= ?2 COLLATE NOCASE AND thread <> ''
			ORDER BY thread COLLATE NOCASE LIMIT 1)
		UNION ALL SELECT (SELECT m.thread FROM messages m WHERE m.pid = ?1 AND m.thread > t.name COLLATE NOCASE
			AND m.thread <> '' ORDER BY m.thread COLLATE NOCASE LIMIT 1)
		FROM t WHERE t.name IS NOT NULL AND lower(substr(t.name, 1, length(?2))) = lower(?2))
		SELECT name FROM t WHERE name IS NOT NULL AND lower(substr(name, 1, length(?2))) = lower(?2) LIMIT ?3 + 0`
	const messages = "SELECT id FROM messages WHERE pid = ?1 AND id >= ?2 AND id < ?2 || char(0x10ffff) ORDER BY id LIMIT ?3 + 0"
	text := agents
	switch what {
	case format.KindOther:
		text = threads
	case format.KindCanonical:
		text = messages
	}
	all := []string{}
	for _, p := range x.attached(slug) {
		err := x.each(ctx, text, []any{p.pid, prefix, limit}, func(scan func(...any) error) error {
			var name string
			err := scan(&name)
			all = append(all, name)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	slices.SortFunc(all, func(a, b string) int {
		return cmp.Or(strings.Compare(strings.ToLower(a), strings.ToLower(b)), strings.Compare(a, b))
	})
	all = slices.Compact(all)
	return all[:max(0, min(limit, len(all)))], nil
}

// LastRead tells when each agent read last: see maildir.Index.
func (x *Index) LastRead(ctx context.Context, slug string) (map[string]time.Time, error) {
	all := map[string]time.Time{}
	err := x.each(ctx, "SELECT a.name, (SELECT max(d.read_at) FROM deliveries d WHERE d.box = a.aid AND d.read_at IS NOT NULL) "+
		"FROM agents a WHERE a.pid = ?", []any{x.pid(slug)}, func(scan func(...any) error) error {
		var name string
		var at sql.NullInt64
		err := scan(&name, &at)
		if at.Valid {
			all[name] = time.UnixMicro(at.Int64)
		}
		return err
	})
	return all, err
}
