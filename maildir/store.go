package maildir

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"mailtree/maildir/address"
	"mailtree/maildir/attachment"
	"mailtree/maildir/clock"
	"mailtree/maildir/format"
	"mailtree/maildir/history"
	"mailtree/maildir/hook"
	"mailtree/maildir/index"
	"mailtree/maildir/keys"
	"mailtree/maildir/refusal"
	"mailtree/maildir/repo"
	"mailtree/maildir/store"
	"mailtree/maildir/storedir"
	"mailtree/maildir/tree"
	"mailtree/maildir/writer"
)

// Config says where a store is and what it is made of. Root, OpenIndex and OpenHistory are needed;
// the zero value of everything else is the documented default.
type Config struct {
	Root string // absolute; made when it is missing

	// OpenIndex opens the index once the lock is held and no tree has leftovers of a crash. It may
	// fill a new index from the trees (by slug) at once; Open reconciles it in any case. The caller
	// closes it after Close.
	OpenIndex func(ctx context.Context, trees map[string]*tree.Tree) (index.Index, error)
	// OpenHistory opens the audit of a project's tree, making the repository where there is none.
	OpenHistory func(k *store.Keeper) (history.Log, error)

	MaxFile      int64                           // bytes of a message file; 0: tree.MaxFile
	MaxFanout    int64                           // bytes of a message file times its recipients; 0: MaxFanout
	MaxProjects  int                             // projects beyond which none is made; 0: MaxProjects
	Files        int                             // descriptors that operations under way may hold; 0: 512
	MailboxDepth int                             // unread messages that a mailbox holds for bounded drafts; 0: MailboxDepth
	Scope        storedir.Scope                  // which project a path inside a Git work tree means
	Attachments  attachment.Settings             // what messages may bring along
	Domain       string                          // of the addresses of mailboxes; "": mailtree.local
	User         func() int                      // the user whose store it is; nil: the process's effective uid
	Patience     time.Duration                   // how long a caller waits for the disk; 0: 30 s
	GoneLook     time.Duration                   // between looks for clients that are gone; 0: a minute
	Progress     func(project string, files int) // called during the first reconcile; nil: not at all
	// Refine makes a summary of a thread's text by other means; nil: none is made. Its error says
	// why it has none.
	Refine func(ctx context.Context, thread []byte) (string, error)
	// Observe is called after each operation that writes, in the goroutine of its caller: how long
	// it took and its error. An operation without paths had nothing to do. nil: not at all.
	Observe func(op writer.Op, took time.Duration, err error)

	Now  func() time.Time     // nil: time.Now
	Rand io.Reader            // nil: crypto/rand
	Log  *slog.Logger         // nil: discarded
	Step func(name string)    // called by the writer before and after whatever a crash may fall between; nil: not at all (fault tests)
	Fail func(p string) error // becomes Tree.Fail of every tree (fault tests)
}

// Store is the one owner of a store folder. Safe for concurrent use.
type Store struct {
	cfg     Config
	lock    *storedir.Lock
	index   index.Index
	key     ed25519.PrivateKey // of the seals
	keys    *keys.Ring
	token   string
	feed    *feed
	owners  owners
	hooks   *hook.List
	tracked repo.Tracked
	intake  *attachment.Intake
	limits  *store.Limits
	clock   *clock.Clock
	opened  time.Time // before everything that this server sends

	adding   chan struct{} // full while a project is opened
	seating  sync.Mutex    // held while an agent takes its seat
	mu       sync.Mutex
	projects map[string]*Project
	leftOut  map[string]error      // projects that could not be opened at the start, until they can
	meant    map[string]keyMeaning // by key, of projects that are open
	start    func(*Project)        // set while Run runs
}

// Open takes the store's lock, makes what is missing (folder, key, token), finishes or drops what a
// crash left in staging, opens every project and brings the index level. It starts nothing: Run
// does. Errors: ErrConflict when another process owns the store (the text says which),
// ErrUnavailable when the folder cannot be used.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Rand == nil {
		cfg.Rand = rand.Reader
	}
	cfg.Patience, cfg.GoneLook = cmp.Or(cfg.Patience, patience), cmp.Or(cfg.GoneLook, goneLook)
	cfg.MaxFanout, cfg.MailboxDepth = cmp.Or(cfg.MaxFanout, MaxFanout), cmp.Or(cfg.MailboxDepth, MailboxDepth)
	cfg.MaxProjects = cmp.Or(cfg.MaxProjects, MaxProjects)
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	cfg.Domain = cmp.Or(cfg.Domain, string(address.Default))
	if cfg.User == nil {
		cfg.User = os.Geteuid
	}
	lock, err := storedir.Take(cfg.Root)
	if err != nil {
		return nil, err
	}
	if err := storedir.KeepReadme(cfg.Root); err != nil {
		cfg.Log.Warn("README.md not written", "store", cfg.Root, "error", err)
	}
	s := &Store{
		cfg:      cfg,
		lock:     lock,
		projects: map[string]*Project{},
		leftOut:  map[string]error{},
		meant:    map[string]keyMeaning{},
		feed:     newFeed(),
		clock:    clock.New(cfg.Now, cfg.Rand),
		intake:   attachment.NewIntake(cfg.Attachments),
		adding:   make(chan struct{}, 1),
		owners:   newOwners(cfg.Root),
		hooks:    hook.NewList(cfg.Root),
	}
	s.limits = store.NewLimits(cmp.Or(cfg.Files, 512))
	s.opened = s.clock.Time()
	if err := s.open(ctx); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func (s *Store) open(ctx context.Context) error {
	var err error
	if s.keys, s.key, err = keys.Open(s.cfg.Root, s.cfg.Rand); err != nil {
		return err
	}
	if s.token, err = keys.Token(s.cfg.Root, s.cfg.Rand); err != nil {
		return err
	}
	if err := s.findProjects(); err != nil {
		return err
	}
	trees := map[string]*tree.Tree{}
	for slug, p := range s.projects {
		trees[slug] = p.Tree
	}
	if s.index, err = s.cfg.OpenIndex(ctx, trees); err != nil {
		return fmt.Errorf("open the index: %w", err)
	}
	for _, p := range s.Projects() {
		if err := p.attach(ctx); err != nil {
			if ctx.Err() != nil {
				return err
			}
			s.cfg.Log.Error("project not compared with its files; that is tried again", "project", p.Slug, "error", err)
			p.Edited(nil, true)
		}
	}
	return nil
}

// FileProblems opens the store's own files as a server does, and says of each that cannot be used
// what it is and what to do; one that is missing is no problem. It changes nothing, and a server
// may run.
func FileProblems(root string) (all []error) {
	note := func(err error) {
		var of *fs.PathError
		switch {
		case err == nil || errors.Is(err, fs.ErrNotExist):
		case errors.As(err, &of): // else it is worded for who asked for something else, and names no file
			all = append(all, of)
		default:
			all = append(all, err)
		}
	}
	note(storedir.CheckLock(root))
	for _, err := range keys.Problems(root) {
		note(err)
	}
	owners := newOwners(root)
	_, err := owners.loadOwners()
	note(err)
	_, err = hook.NewList(root).Load()
	note(err)
	note(hook.CheckLog(root))
	note(storedir.CheckLog(root))
	return all
}

// findProjects opens every projects/<slug>/repo and finishes or drops what a crash left in it.
func (s *Store) findProjects() error {
	dir := filepath.Join(s.cfg.Root, storedir.ProjectsDir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return &Error{
			What:  refusal.StoreUnusable,
			Other: s.cfg.Root,
			Why:   err.Error(),
			Err:   err,
		}
	}
	slugs, err := storedir.Slugs(s.cfg.Root)
	if err != nil {
		return err
	}
	for _, slug := range slugs {
		p, err := s.loadProject(slug)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			s.cfg.Log.Error("project left out", "project", slug, "error", err)
			s.leftOut[slug] = err
			continue
		}
		s.projects[p.Slug] = p
	}
	return nil
}

// Run writes for every project until ctx ends; then the operations that were accepted finish, the
// history commits what is left, and it returns nil.
func (s *Store) Run(ctx context.Context) error {
	var all sync.WaitGroup
	s.mu.Lock()
	s.start = func(p *Project) {
		ctx, stop := context.WithCancel(ctx)
		p.life.stop = stop
		all.Go(func() {
			defer close(p.life.ended)
			defer stop()
			p.run(ctx)
		})
	}
	for _, p := range s.projects {
		s.start(p)
	}
	s.mu.Unlock()
	all.Go(func() { s.endGone(ctx) })
	<-ctx.Done()
	s.mu.Lock()
	s.start = nil
	s.mu.Unlock()
	all.Wait()
	return nil
}

// Close gives up the lock. Run must have returned.
func (s *Store) Close() error {
	return s.lock.Release()
}

// Root is the store's folder.
func (s *Store) Root() string { return s.cfg.Root }

// Domain is the domain of the store's addresses.
func (s *Store) Domain() address.Domain { return address.Domain(s.cfg.Domain) }

// Token is the bearer token of the store, made at first start.
func (s *Store) Token() string { return s.token }

// Stats counts what the index holds.
func (s *Store) Stats(ctx context.Context) (index.Stats, error) { return s.index.Stats(ctx) }

// CountProblems counts the files of the project that are not valid.
func (p *Project) CountProblems(ctx context.Context) (int, error) {
	return p.store.index.CountProblems(ctx, p.Slug)
}

// Problems lists the first files that are not valid, of one project (slug) or all ("").
func (s *Store) Problems(ctx context.Context, project string, most int) ([]format.Problem, error) {
	return s.index.Problems(ctx, project, most)
}

// Projects returns every project by slug.
func (s *Store) Projects() []*Project {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := slices.Collect(maps.Values(s.projects))
	slices.SortFunc(all, func(a, b *Project) int { return strings.Compare(a.Slug, b.Slug) })
	return all
}

// LeftOut tells why projects could not be opened, by slug.
func (s *Store) LeftOut() map[string]error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.leftOut)
}

// ProjectOf finds the project that a resource without a project means: for an agent
// (format.KindProfile) or thread (format.KindOther) the one with the most recent activity; for a
// message id (format.KindCanonical) the only one; for the SHA-1 of an attachment
// (format.KindAttachment) any: all have the same bytes. Errors: ErrNotFound; ErrConflict listing
// the projects when a message id is in several.
func (s *Store) ProjectOf(ctx context.Context, what format.Kind, name string) (*Project, error) {
	if what == format.KindAttachment {
		return s.projectWithAttachment(name)
	}
	slugs, err := s.index.ProjectsWith(ctx, what, name)
	if err != nil {
		return nil, err
	}
	if len(slugs) == 0 {
		for _, p := range s.Projects() {
			if err := p.Sure(); err != nil {
				return nil, err
			}
		}
		what := map[format.Kind]string{format.KindProfile: "agent", format.KindCanonical: "message"}[what]
		if what == "" {
			what = "thread"
		}
		return nil, &Error{What: refusal.NowhereFound, Name: name, Other: what}
	}
	if what == format.KindCanonical && len(slugs) > 1 {
		return nil, &Error{
			What: refusal.Conflict("Message {name} is in several projects: {choices}. {name one project}"),
			Name: name,
			Near: slugs,
		}
	}
	return s.Project(ctx, slugs[0])
}

func (s *Store) projectWithAttachment(sum string) (*Project, error) {
	for _, p := range s.Projects() {
		path, err := attachment.Find(p.Tree, sum)
		if path != "" || err != nil {
			return p, err
		}
	}
	return nil, &Error{What: refusal.NowhereFound, Name: sum, Other: "attachment"}
}

// Complete completes names: agents (format.KindProfile), threads (format.KindOther), projects
// (format.KindProject). Never an error.
func (s *Store) Complete(ctx context.Context, what format.Kind, project, prefix string, limit int) []string {
	if what == format.KindProject {
		return s.completeProject(prefix, limit)
	}
	slug := ""
	if project != "" {
		p, err := s.Project(ctx, project)
		if err != nil {
			return nil
		}
		slug = p.Slug
	}
	names, err := s.index.Names(ctx, slug, what, prefix, limit)
	if err != nil {
		s.cfg.Log.Warn("completion failed", "error", err)
	}
	return names
}

func (s *Store) completeProject(prefix string, limit int) []string {
	var out []string
	for _, p := range s.Projects() {
		for _, n := range []string{p.human, p.Slug} {
			if n != "" && strings.HasPrefix(strings.ToLower(n), strings.ToLower(prefix)) && len(out) < limit {
				out = append(out, n)
				break
			}
		}
	}
	return out
}
