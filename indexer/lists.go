package indexer

import (
	"context"
	"database/sql"
	"encoding/json"
	"time"

	"mailtree/maildir"
	"mailtree/maildir/claim"
	"mailtree/maildir/format"
)

const claimColumns = "SELECT c.path, c.pattern, c.agent, c.exclusive, c.reason, c.created, c.expires, c.released, c.released_at FROM "

// Claims lists every valid claim file: see maildir.Index.
func (x *Index) Claims(ctx context.Context, slug string) ([]claim.Row, error) {
	return x.claims(ctx, claimColumns+"claims c WHERE c.pid = ? ORDER BY c.created, c.agent, c.path", x.pid(slug))
}

// ClaimsAt lists valid claim files among some paths: see maildir.Index.
func (x *Index) ClaimsAt(ctx context.Context, slug string, paths []string) ([]claim.Row, error) {
	list, err := json.Marshal(paths)
	if err != nil {
		return nil, err
	}
	return x.claims(ctx, claimColumns+"json_each(?2) j CROSS JOIN claims c ON c.pid = ?1 AND c.path = j.value "+
		"ORDER BY c.created, c.agent, c.path", x.pid(slug), string(list))
}

func (x *Index) claims(ctx context.Context, query string, args ...any) ([]claim.Row, error) {
	all := []claim.Row{}
	err := x.each(ctx, query, args, func(scan func(...any) error) error {
		var c claim.Row
		var created, expires int64
		var at sql.NullInt64
		err := scan(&c.Path, &c.Pattern, &c.Agent, &c.Exclusive, &c.Reason, &created, &expires, &c.Released, &at)
		c.Created, c.Expires, c.ReleasedAt = moment(created), moment(expires), scanTime(at)
		all = append(all, c)
		return err
	})
	return all, err
}

// filesQuery asks for the files of a message.
const filesQuery = "SELECT " + filePath + " FROM json_each(?2) j CROSS JOIN files f ON f.pid = ?1 AND f.name = j.value " +
	"CROSS JOIN folders o USING (fol) ORDER BY 1"

// Files lists the files of a message: see maildir.Index.
func (x *Index) Files(ctx context.Context, slug, id string) ([]string, error) {
	names, err := json.Marshal(format.MessageFiles(id))
	if err != nil {
		return nil, err
	}
	var all []string
	err = x.each(ctx, filesQuery, []any{x.pid(slug), string(names)}, func(scan func(...any) error) error {
		var path string
		err := scan(&path)
		if pl := locate(path); pl.ID == id {
			all = append(all, path)
		}
		return err
	})
	return all, err
}

// Problems lists the first files that do not count, by path: see maildir.Index.
func (x *Index) Problems(ctx context.Context, slug string, most int) ([]format.Problem, error) {
	all := []format.Problem{}
	err := x.each(ctx, "SELECT p.slug, q.path, q.reason, q.line FROM problems q JOIN projects p USING (pid) "+
		"WHERE ?1 = '' OR p.slug = ?1 ORDER BY q.path, p.slug LIMIT ?2", []any{slug, most},
		func(scan func(...any) error) error {
			var q format.Problem
			err := scan(&q.Project, &q.Path, &q.Reason, &q.Line)
			all = append(all, q)
			return err
		})
	return all, err
}

// CountProblems counts the files of a project that do not count: see maildir.Index.
func (x *Index) CountProblems(ctx context.Context, slug string) (n int, err error) {
	err = x.each(ctx, "SELECT count(*) FROM problems WHERE pid = ?", []any{x.pid(slug)},
		func(scan func(...any) error) error { return scan(&n) })
	return n, err
}

// Changes lists what was recorded after a mark: see maildir.Index.
func (x *Index) Changes(ctx context.Context, after int64, limit int) ([]maildir.Change, error) {
	return x.changes(ctx, "c.seq > ? ORDER BY c.seq LIMIT ? + 0", after, limit)
}

// NewestChanges lists the newest of one project: see maildir.Index.
func (x *Index) NewestChanges(ctx context.Context, slug string, limit int) ([]maildir.Change, error) {
	return x.changes(ctx, "c.pid = ? ORDER BY c.seq DESC LIMIT ? + 0", x.pid(slug), limit)
}

// changes lists those that a condition selects.
func (x *Index) changes(ctx context.Context, where string, args ...any) ([]maildir.Change, error) {
	all := []maildir.Change{}
	err := x.each(ctx, "SELECT c.seq, coalesce(p.slug, c.agent), c.path, c.kind, c.op, c.agent, c.thread, c.at FROM changes c "+
		"LEFT JOIN projects p USING (pid) WHERE "+where, args,
		func(scan func(...any) error) error {
			var c maildir.Change
			var at int64
			err := scan(&c.Seq, &c.Project, &c.Path, &c.Kind, &c.Op, &c.Agent, &c.Thread, &at)
			c.ID, c.At = locate(c.Path).ID, time.UnixMicro(at)
			if c.RemovesProject() {
				c.Agent = "" // see removedProject
			}
			all = append(all, c)
			return err
		})
	return all, err
}

// LastChange is the newest mark: see maildir.Index.
func (x *Index) LastChange(ctx context.Context) (int64, error) {
	var seq sql.NullInt64
	err := x.each(ctx, "SELECT max(seq) FROM changes", nil, func(scan func(...any) error) error { return scan(&seq) })
	return seq.Int64, err
}

// Stats counts the rows: see maildir.Index. Messages and deliveries are kept counts.
func (x *Index) Stats(ctx context.Context) (maildir.Stats, error) {
	var s maildir.Stats
	err := x.each(ctx, `SELECT (SELECT count(*) FROM projects), (SELECT count(*) FROM agents),
		(SELECT coalesce(sum(messages), 0) FROM projects),
		(SELECT coalesce(sum(total), 0) FROM agents), (SELECT count(*) FROM problems),
		(SELECT coalesce(sum(unread), 0) FROM agents)`, nil,
		func(scan func(...any) error) error {
			return scan(&s.Projects, &s.Agents, &s.Messages, &s.Deliveries, &s.Problems, &s.Unread)
		})
	return s, err
}
