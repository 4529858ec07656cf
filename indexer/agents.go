package indexer

import (
	"cmp"
	"context"
	"database/sql"
	"slices"
	"strings"
	"time"

	"mailtree/maildir/format"
	"mailtree/maildir/index"
)

// agentColumns are the columns that describe an agent. An agent's last activity is the latest of its inception, its
// newest sent message, its newest read and ack marks, and its newest claim.
const agentColumns = "a.name, a.profile, a.program, a.model, a.task, a.inception, a.machine, a.status, a.hold, a.total, a.unread, " +
	"a.archived, a.sent, " + lastActive + ", coalesce((SELECT m.subject " + lastSent + "), '')"

// lastSent is a query without its SELECT clause. The query finds the newest message that an agent has sent.
const lastSent = "FROM deliveries d CROSS JOIN messages m USING (row) WHERE d.box = -a.aid ORDER BY d.row DESC LIMIT 1"

const lastActive = `(SELECT max(at) FROM (
		SELECT a.inception AS at
		UNION ALL SELECT (SELECT m.created ` + lastSent + `)
		UNION ALL SELECT (SELECT max(d.read_at) FROM deliveries d WHERE d.box = a.aid AND d.read_at IS NOT NULL)
		UNION ALL SELECT (SELECT max(d.ack_at) FROM deliveries d WHERE d.box = a.aid AND d.ack_at IS NOT NULL)
		UNION ALL SELECT (SELECT max(c.created) FROM claims c WHERE c.pid = a.pid AND c.agent = a.name)))`

// shortColumns are like agentColumns, but with program, model, task, the last activity and the last subject left empty.
const shortColumns = "a.name, a.profile, '', '', '', a.inception, a.machine, a.status, a.hold, a.total, a.unread, a.archived, a.sent, NULL, ''"

func (x *Index) agents(ctx context.Context, columns, text string, args ...any) ([]index.AgentRow, error) {
	return list(ctx, x, "SELECT "+columns+" FROM agents a WHERE "+text, args, func(scan scanner, r *index.AgentRow) error {
		var hold string
		err := scan(&r.Name, &r.HasProfile, &r.Program, &r.Model, &r.Task, instant{&r.Inception}, &r.Machine, &r.Status, &hold,
			&r.Total, &r.Unread, &r.Archived, &r.Sent, instant{&r.LastActive}, &r.LastSubject)
		if h, bad := format.ParseHold([]byte(hold)); hold != "" && bad == nil { // the column contains what setHold wrote
			r.Hold = &h
		}
		return err
	})
}

// Agent implements index.Index. It reads one agent.
func (x *Index) Agent(ctx context.Context, slug, name string) (*index.AgentRow, error) {
	rows, err := x.agents(ctx, agentColumns, "a.pid = ? AND a.name = ?", x.pid(slug), name)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	return &rows[0], nil
}

// Agents implements index.Index. It lists a project's agents, ordered by name.
func (x *Index) Agents(ctx context.Context, slug string) ([]index.AgentRow, error) {
	return x.agents(ctx, shortColumns, "a.pid = ? ORDER BY a.name", x.pid(slug))
}

// AgentsAfter implements index.Index. It lists the agents whose names sort after the given name, ordered by name.
func (x *Index) AgentsAfter(ctx context.Context, slug, after string, limit int) ([]index.AgentRow, error) {
	return x.agents(ctx, agentColumns, "a.pid = ? AND a.name > ? ORDER BY a.name LIMIT ? + 0", x.pid(slug), after, limit)
}

// Held implements index.Index. It lists the agents with a valid hold, ordered by name.
func (x *Index) Held(ctx context.Context, slug string) ([]index.AgentRow, error) {
	return x.agents(ctx, shortColumns, "a.pid = ? AND a.hold <> '' ORDER BY a.name", x.pid(slug))
}

// ProjectsWith implements index.Index. It finds the projects that contain an agent, thread or message with the given
// name.
func (x *Index) ProjectsWith(ctx context.Context, what format.Kind, name string) ([]string, error) {
	text := "SELECT max(created) FROM messages WHERE pid = ?1 AND id = ?2"
	switch what {
	case format.KindProfile:
		text = "SELECT coalesce(" + lastActive + ", -9223372036854775808) FROM agents a WHERE a.pid = ?1 AND a.name = ?2"
	case format.KindOther:
		text = "SELECT max(created) FROM messages WHERE row IN (" + inThread + ")"
	}
	slugs, last := []string{}, map[string]int64{}
	for _, p := range x.attached("") {
		var at sql.NullInt64
		if err := one(ctx, x, text, []any{p.pid, name}, &at); err != nil {
			return nil, err
		}
		if at.Valid {
			slugs, last[p.slug] = append(slugs, p.slug), at.Int64
		}
	}
	slices.SortFunc(slugs, func(a, b string) int { return cmp.Or(cmp.Compare(last[b], last[a]), strings.Compare(a, b)) })
	return slugs, nil
}

// Names implements index.Index. It returns the completions of a prefix. The query for threads steps through an index
// from one thread to the next, so its cost does not depend on how many messages each thread has.
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
		found, err := column[string](ctx, x, text, p.pid, prefix, limit)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	slices.SortFunc(all, func(a, b string) int {
		return cmp.Or(strings.Compare(strings.ToLower(a), strings.ToLower(b)), strings.Compare(a, b))
	})
	all = slices.Compact(all)
	return all[:max(0, min(limit, len(all)))], nil
}

// LastRead implements index.Index. It returns the time at which each agent last read a message.
func (x *Index) LastRead(ctx context.Context, slug string) (map[string]time.Time, error) {
	all := map[string]time.Time{}
	err := x.each(ctx, "SELECT a.name, (SELECT max(d.read_at) FROM deliveries d WHERE d.box = a.aid AND d.read_at IS NOT NULL) "+
		"FROM agents a WHERE a.pid = ?", []any{x.pid(slug)}, func(scan scanner) error {
		var name string
		var at time.Time
		err := scan(&name, instant{&at})
		if !at.IsZero() {
			all[name] = at
		}
		return err
	})
	return all, err
}
