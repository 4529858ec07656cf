package indexer

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"time"

	"mailtree/maildir/format"
	"mailtree/maildir/index"
	"mailtree/maildir/tree"
)

// Config configures an Index. Path is required. The zero value of any other field selects its documented default.
type Config struct {
	Path string           // the database file; Open creates it if it is missing
	Log  *slog.Logger     // if nil, log lines are discarded
	Now  func() time.Time // provides the times of changes and file stamps; nil means time.Now

	// Existing makes Open fail if the file is missing, damaged or from another version. In that case, the file stays
	// unchanged.
	Existing bool
}

// Index is the index of all trees in a store. It implements index.Index and is safe for concurrent use.
type Index struct {
	cfg   Config
	fresh bool
	file  os.FileInfo // the database file when it was opened; nil for an index in memory

	write  sync.Mutex // held while w is used
	w      *writer
	writes *sql.DB
	reads  *sql.DB

	prepare sync.Mutex
	stmts   map[string]*sql.Stmt // prepared queries, by text

	wal      checkpoints
	patience time.Duration // the time limit for a search by prefix

	unreadable []tree.Unreadable // files and folders that build could not examine

	mu       sync.RWMutex
	projects map[string]*project // attached projects by slug
}

// project is an attached project.
type project struct {
	pid  int64
	slug string
	tree *tree.Tree
}

var _ index.Index = (*Index)(nil)

// Open opens the index. If the file is missing, damaged or from another version, Open replaces it with an empty
// index, because the trees are the source of truth. Open does not fill the index. The caller must close the Index.
func Open(ctx context.Context, cfg Config) (*Index, error) {
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if _, err := os.Stat(cfg.Path); err != nil && cfg.Existing {
		return nil, err
	}
	db, fresh, err := open(ctx, cfg.Path, cfg.Existing)
	if errors.Is(err, errStale) && !cfg.Existing {
		if errors.Is(err, errVersion) {
			cfg.Log.Info("the index was created by another version of mailtree and will be rebuilt", "path", cfg.Path)
		} else {
			cfg.Log.Warn("the index will be rebuilt", "path", cfg.Path, "reason", err)
		}
		if err := wipe(cfg.Path); err != nil {
			return nil, fmt.Errorf("cannot remove the old index: %w", err)
		}
		const existing = false
		db, fresh, err = open(ctx, cfg.Path, existing)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot open index %s: %w", cfg.Path, err)
	}
	x, err := newIndex(ctx, cfg, db, fresh)
	if err != nil {
		return nil, err
	}
	if err = x.w.startChanges(cfg.Now()); err == nil {
		x.file, err = os.Stat(cfg.Path)
	}
	if err == nil {
		x.reads, err = openReaders(cfg.Path)
	}
	if err != nil {
		return nil, errors.Join(err, x.w.close(), db.Close())
	}
	return x, nil
}

// newIndex returns an index that reads and writes on the same connection. If newIndex fails, it closes db.
func newIndex(ctx context.Context, cfg Config, db *sql.DB, fresh bool) (*Index, error) {
	w, err := newWriter(ctx, db)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &Index{
		cfg:      cfg,
		fresh:    fresh,
		w:        w,
		patience: patience,
		writes:   db,
		reads:    db,
		stmts:    map[string]*sql.Stmt{},
		projects: map[string]*project{},
	}, nil
}

// Fresh reports whether Open found no usable index. In that case, the caller must fill the new index with Rebuild, or
// with Attach and Reconcile.
func (x *Index) Fresh() bool { return x.fresh }

// Gone reports whether the opened file was removed or replaced by another file.
func (x *Index) Gone() bool {
	fi, err := os.Stat(x.cfg.Path)
	return errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(fi, x.file)
}

// Close closes the index. No other call may be in progress.
func (x *Index) Close() error {
	x.wal.running.Wait()
	x.write.Lock()
	defer x.write.Unlock()
	var err error
	for _, s := range x.stmts {
		err = errors.Join(err, s.Close())
	}
	if x.reads != x.writes {
		err = errors.Join(err, x.reads.Close())
	}
	return errors.Join(err, x.w.close(), x.writes.Close())
}

// Attach implements index.Index. It adds a project.
func (x *Index) Attach(ctx context.Context, slug string, tree *tree.Tree) error {
	x.write.Lock()
	defer x.write.Unlock()
	if p := x.project(slug); p != nil {
		if p.tree != tree { // p.tree was closed, because opening the project failed after the first Attach
			x.mu.Lock()
			defer x.mu.Unlock()
			x.projects[slug] = &project{p.pid, slug, tree}
		}
		return nil
	}
	pid, err := x.w.project(slug, tree.MaxFile())
	if err != nil {
		return fmt.Errorf("cannot attach project %s: %w", slug, err)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.projects[slug] = &project{pid, slug, tree}
	return nil
}

// Detach implements index.Index. It removes a project.
func (x *Index) Detach(ctx context.Context, slug string) error {
	x.write.Lock()
	defer x.write.Unlock()
	p := x.project(slug)
	if p == nil {
		return nil
	}
	err := x.w.transaction(func() error {
		if err := x.w.dropProject(p.pid); err != nil {
			return err
		}
		return x.w.addChanges(removedProject, []index.Change{{
			Kind:  format.KindProject,
			Op:    index.Removed,
			Agent: slug,
			At:    x.cfg.Now(),
		}})
	})
	if err != nil {
		return fmt.Errorf("cannot remove project %s from the index: %w", slug, err)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.projects, slug)
	return nil
}

// Retain drops the rows of every project that is not in slugs, because the project's tree is no longer in the store.
// Call Retain after Open, before any Attach.
func (x *Index) Retain(ctx context.Context, slugs map[string]*tree.Tree) error {
	x.write.Lock()
	defer x.write.Unlock()
	return x.w.transaction(func() error {
		known, err := x.w.projects()
		if err != nil {
			return err
		}
		for slug, pid := range known {
			if slugs[slug] == nil {
				if err := x.w.dropProject(pid); err != nil {
					return fmt.Errorf("cannot remove project %s from the index: %w", slug, err)
				}
			}
		}
		return nil
	})
}

func (x *Index) project(slug string) *project {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.projects[slug]
}

// pid returns the number of an attached project. If the project is not attached, it returns 0, which no row uses.
func (x *Index) pid(slug string) int64 {
	if p := x.project(slug); p != nil {
		return p.pid
	}
	return 0
}

// attached returns all attached projects. If slug is not "", it returns only the project with that slug.
func (x *Index) attached(slug string) []*project {
	x.mu.RLock()
	defer x.mu.RUnlock()
	var all []*project
	for s, p := range x.projects {
		if slug == "" || s == slug {
			all = append(all, p)
		}
	}
	return all
}

// stmt returns the prepared statement for text, which it prepares on first use. The package database/sql prepares the
// statement again on each connection that runs it.
func (x *Index) stmt(ctx context.Context, text string) (*sql.Stmt, error) {
	x.prepare.Lock()
	defer x.prepare.Unlock()
	if s := x.stmts[text]; s != nil {
		return s, nil
	}
	s, err := x.reads.PrepareContext(ctx, text)
	if err == nil {
		x.stmts[text] = s
	}
	return s, err
}

// reader answers queries. An Index uses any free connection, and a view uses its own connection.
type reader interface {
	// each runs a prepared query, and calls row with a scanner for each row.
	each(ctx context.Context, text string, args []any, row func(scan scanner) error) error
}

func (x *Index) each(ctx context.Context, text string, args []any, row func(scan scanner) error) error {
	s, err := x.stmt(ctx, text)
	if err != nil {
		return readError(err)
	}
	return each(ctx, s, args, row)
}

func each(ctx context.Context, s *sql.Stmt, args []any, row func(scan scanner) error) error {
	rows, err := s.QueryContext(ctx, args...)
	if err != nil {
		return readError(err)
	}
	defer rows.Close()
	for rows.Next() {
		if err := row(rows.Scan); err != nil {
			return err
		}
	}
	return readError(rows.Err())
}

// readError adds "read the index" to a query's error. If there is no error, readError returns nil.
func readError(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("cannot read the index: %w", err)
}

// view is a reader whose queries all see the same state of the index.
type view struct {
	tx    *sql.Tx
	stmts map[string]*sql.Stmt
}

// view starts a view for the given queries. The caller must close the view. The queries are prepared before the view
// takes a connection, because a caller that holds a connection must not wait for a second one.
func (x *Index) view(ctx context.Context, texts ...string) (*view, error) {
	v := &view{stmts: map[string]*sql.Stmt{}}
	for _, text := range texts {
		s, err := x.stmt(ctx, text)
		if err != nil {
			return nil, readError(err)
		}
		v.stmts[text] = s
	}
	var err error
	v.tx, err = x.reads.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	return v, readError(err)
}

func (v *view) each(ctx context.Context, text string, args []any, row func(scan scanner) error) error {
	return each(ctx, v.tx.StmtContext(ctx, v.stmts[text]), args, row)
}

func (v *view) close() { v.tx.Rollback() }
