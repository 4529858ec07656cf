package indexer

import (
	"context"
	"encoding/json"
	"math"
	"slices"

	"mailtree/maildir/claim"
	"mailtree/maildir/format"
	"mailtree/maildir/index"
)

const claimColumns = "SELECT c.path, c.pattern, c.agent, c.exclusive, c.reason, c.created, c.expires, c.released, c.released_at FROM "

// Claims implements index.Index. It lists all valid claim files.
func (x *Index) Claims(ctx context.Context, slug string) ([]claim.Row, error) {
	return x.claims(ctx, claimColumns+"claims c WHERE c.pid = ? ORDER BY c.created, c.agent, c.path", x.pid(slug))
}

// ClaimsAt implements index.Index. It lists the valid claim files among the given paths.
func (x *Index) ClaimsAt(ctx context.Context, slug string, paths []string) ([]claim.Row, error) {
	list, err := json.Marshal(paths)
	if err != nil {
		return nil, err
	}
	return x.claims(ctx, claimColumns+"json_each(?2) j CROSS JOIN claims c ON c.pid = ?1 AND c.path = j.value "+
		"ORDER BY c.created, c.agent, c.path", x.pid(slug), string(list))
}

func (x *Index) claims(ctx context.Context, query string, args ...any) ([]claim.Row, error) {
	return list(ctx, x, query, args, func(scan scanner, c *claim.Row) error {
		return scan(&c.Path, &c.Pattern, &c.Agent, &c.Exclusive, &c.Reason, instant{&c.Created}, instant{&c.Expires}, &c.Released,
			instant{&c.ReleasedAt})
	})
}

// filesQuery selects the paths of a message's files.
const filesQuery = "SELECT " + filePath + " FROM json_each(?2) j CROSS JOIN files f ON f.pid = ?1 AND f.name = j.value " +
	"CROSS JOIN folders o USING (fol) ORDER BY 1"

// Files implements index.Index. It lists the files of a message.
func (x *Index) Files(ctx context.Context, slug, id string) ([]string, error) {
	names, err := json.Marshal(format.MessageFiles(id))
	if err != nil {
		return nil, err
	}
	paths, err := column[string](ctx, x, filesQuery, x.pid(slug), string(names))
	return slices.DeleteFunc(paths, func(p string) bool { return locate(p).ID != id }), err
}

// Problems implements index.Index. It lists files that have problems, ordered by path.
func (x *Index) Problems(ctx context.Context, slug string, most int) ([]format.Problem, error) {
	const text = "SELECT p.slug, q.path, q.reason, q.line FROM problems q JOIN projects p USING (pid) " +
		"WHERE ?1 = '' OR p.slug = ?1 ORDER BY q.path, p.slug LIMIT ?2"
	return list(ctx, x, text, []any{slug, most}, func(scan scanner, q *format.Problem) error {
		return scan(&q.Project, &q.Path, &q.Reason, &q.Line)
	})
}

// CountProblems implements index.Index. It counts the files in a project that have problems.
func (x *Index) CountProblems(ctx context.Context, slug string) (n int, err error) {
	err = one(ctx, x, "SELECT count(*) FROM problems WHERE pid = ?", []any{x.pid(slug)}, &n)
	return n, err
}

// Changes implements index.Index. It lists the changes after a position in the feed.
func (x *Index) Changes(ctx context.Context, after int64, limit int) ([]index.Change, error) {
	return x.changes(ctx, "c.seq > ? ORDER BY c.seq LIMIT ? + 0", after, limit)
}

// NewestChanges implements index.Index. It lists the newest changes in a project.
func (x *Index) NewestChanges(ctx context.Context, slug string, before int64, limit int) ([]index.Change, error) {
	if before <= 0 {
		before = math.MaxInt64
	}
	return x.changes(ctx, "c.pid = ? AND c.seq < ? ORDER BY c.seq DESC LIMIT ? + 0", x.pid(slug), before, limit)
}

// changes lists the changes that match a condition.
func (x *Index) changes(ctx context.Context, where string, args ...any) ([]index.Change, error) {
	text := "SELECT c.seq, coalesce(p.slug, c.agent), c.path, c.kind, c.op, c.agent, c.thread, c.at FROM changes c " +
		"LEFT JOIN projects p USING (pid) WHERE " + where
	return list(ctx, x, text, args, func(scan scanner, c *index.Change) error {
		err := scan(&c.Seq, &c.Project, &c.Path, &c.Kind, &c.Op, &c.Agent, &c.Thread, instant{&c.At})
		c.ID = locate(c.Path).ID
		if c.RemovesProject() {
			c.Agent = "" // in the table, this is the removed project's slug (see removedProject)
		}
		return err
	})
}

// LastChange implements index.Index. It returns the newest position in the feed.
func (x *Index) LastChange(ctx context.Context) (seq int64, err error) {
	err = one(ctx, x, "SELECT coalesce(max(seq), 0) FROM changes", nil, &seq)
	return seq, err
}

// Stats implements index.Index. It counts the projects, agents, messages, deliveries and problems in the index.
// Triggers maintain the counts of messages and deliveries.
func (x *Index) Stats(ctx context.Context) (index.Stats, error) {
	var s index.Stats
	err := one(ctx, x, `SELECT (SELECT count(*) FROM projects), (SELECT count(*) FROM agents),
		(SELECT coalesce(sum(messages), 0) FROM folders),
		(SELECT coalesce(sum(total), 0) FROM agents), (SELECT count(*) FROM problems),
		(SELECT coalesce(sum(unread), 0) FROM agents)`, nil,
		&s.Projects, &s.Agents, &s.Messages, &s.Deliveries, &s.Problems, &s.Unread)
	return s, err
}
