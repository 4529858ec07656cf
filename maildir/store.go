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

// Config says where a store is and how to open it. Root, OpenIndex and OpenHistory are required; the zero
// value of any other field means its documented default.
type Config struct {
	Root string // absolute path; created if it is missing

	// OpenIndex opens the index once the lock is held and no tree has leftovers of a crash. It may fill a
	// new index from the trees (by slug) at once; Open reconciles the index in any case. The caller closes
	// the index after Close.
	OpenIndex func(ctx context.Context, trees map[string]*tree.Tree) (index.Index, error)
	// OpenHistory opens the audit of a project's tree and creates the repository if it is missing.
	OpenHistory func(k *store.Keeper) (history.Log, error)

	// Clone makes the repository and the files of the mail at url in dir, an empty folder; nil: mail of other
	// machines cannot be joined.
	Clone func(ctx context.Context, dir, url string) error

	MaxFile      int64                           // bytes of a message file; 0: tree.MaxFile
	MaxFanout    int64                           // bytes of a message file times its recipients; 0: MaxFanout
	MaxProjects  int                             // most projects that may be created; 0: MaxProjects
	Files        int                             // descriptors that operations in progress may hold; 0: 512
	MailboxDepth int                             // most unread messages in a mailbox for bounded drafts; 0: MailboxDepth
	Scope        storedir.Scope                  // which project a path inside a Git work tree means
	Attachments  attachment.Settings             // limits and settings of attachments
	Domains      address.Domains                 // of the addresses of mailboxes; none: mailtree.local
	Outside      Outside                         // which mail may leave for other domains
	User         func() int                      // returns the uid of the store's user; nil: the process's effective uid
	Patience     time.Duration                   // how long a caller waits for the disk; 0: 30 s
	SyncInterval time.Duration                   // between looks at the repository that other machines share; 0: SyncInterval; less: only SyncNow looks
	ClaimAlone   bool                            // claims are granted on this machine alone while other machines cannot be reached
	GoneLook     time.Duration                   // time between checks for clients that are gone; 0: a minute
	Progress     func(project string, files int) // called during the first reconcile; may be nil
	// Refine makes a summary of a thread's text by other means; nil: none is made. Its error says why there
	// is none.
	Refine func(ctx context.Context, thread []byte) (string, error)
	// Observe is called after each writing operation, in its caller's goroutine, with the duration and the
	// error. An operation without paths had nothing to do. It may be nil.
	Observe func(op writer.Op, took time.Duration, err error)

	Now       func() time.Time     // nil: time.Now
	Monotonic func() time.Time     // measures how long claims of other machines last and saved files rest, whatever Now says; nil: time.Now
	Rand      io.Reader            // nil: crypto/rand
	Log       *slog.Logger         // nil: discarded
	Step      func(name string)    // for fault tests: called by the writer around each point at which a crash may fall; may be nil
	Fail      func(p string) error // for fault tests: becomes Tree.Fail of every tree
}

// Store is the only owner of a store folder. It is safe for concurrent use.
type Store struct {
	cfg     Config
	lock    *storedir.Lock
	index   index.Index
	key     ed25519.PrivateKey // signs the seals
	keys    *keys.Ring
	token   string
	feed    *feed
	owners  owners
	trusted trustedSenders
	typing  typing // notices into tmux windows
	hooks   *hook.List
	tracked repo.Tracked
	intake  *attachment.Intake
	limits  *store.Limits
	clock   *clock.Clock
	emails  emails    // of the last hour
	opened  time.Time // before anything that this server sends

	adding   chan struct{} // full while a project is being opened
	seating  sync.Mutex    // held while an agent takes its seat
	naming   sync.Mutex    // held while a mailbox is made
	mu       sync.Mutex
	projects map[string]*Project
	leftOut  map[string]error      // projects that could not be opened at the start and still cannot
	meant    map[string]keyMeaning // meanings of keys of open projects, by key
	start    func(*Project)        // set while Run runs
	stopBy   time.Time             // see StopBy; zero: not set
	stopping context.Context       // ends at StopBy
	stop     context.CancelFunc    // ends stopping
}

// Open takes the store's lock, creates what is missing (folder, key, token), finishes or drops what a crash
// left in staging, opens every project, and brings the index level. It starts nothing before Run. It
// returns ErrConflict if another process owns the store (the text says which), and ErrUnavailable if the
// folder cannot be used.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Monotonic == nil {
		cfg.Monotonic = time.Now
	}
	if cfg.Rand == nil {
		cfg.Rand = rand.Reader
	}
	cfg.Patience, cfg.GoneLook = cmp.Or(cfg.Patience, patience), cmp.Or(cfg.GoneLook, goneLook)
	cfg.MaxFanout, cfg.MailboxDepth = cmp.Or(cfg.MaxFanout, MaxFanout), cmp.Or(cfg.MailboxDepth, MailboxDepth)
	cfg.SyncInterval = cmp.Or(cfg.SyncInterval, SyncInterval)
	cfg.MaxProjects = cmp.Or(cfg.MaxProjects, MaxProjects)
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	cfg.Outside.Rate = cmp.Or(cfg.Outside.Rate, OutsideRate)
	if len(cfg.Domains) == 0 {
		cfg.Domains = address.Domains{address.Default}
	}
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
		trusted:  newTrustedSenders(cfg.Root),
		hooks:    hook.NewList(cfg.Root),
	}
	s.limits = store.NewLimits(cmp.Or(cfg.Files, 512))
	s.opened = s.clock.Time()
	s.stopping, s.stop = context.WithCancel(context.WithoutCancel(ctx))
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

// FileProblems opens the store's own files as a server does. For each file that cannot be used it returns
// an error that says what is wrong and what to do; a missing file is no problem. It changes nothing and may
// run beside a server.
func FileProblems(root string) (all []error) {
	note := func(err error) {
		var of *fs.PathError
		switch {
		case err == nil || errors.Is(err, fs.ErrNotExist):
		case errors.As(err, &of): // otherwise its words are for another request and name no file
			all = append(all, of)
		default:
			all = append(all, err)
		}
	}
	note(storedir.CheckLock(root))
	note(storedir.CheckFormat(root))
	for _, err := range keys.Problems(root) {
		note(err)
	}
	owners := newOwners(root)
	_, err := owners.loadOwners()
	note(err)
	trusted := newTrustedSenders(root)
	_, err = trusted.file.Load()
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

// Run writes for every project until ctx ends. Then the accepted operations finish, the history commits the
// rest, and Run returns nil.
func (s *Store) Run(ctx context.Context) error {
	var all sync.WaitGroup
	s.mu.Lock()
	s.start = func(p *Project) {
		ctx, stop := context.WithCancel(ctx)
		p.life.stop = stop
		if !s.stopBy.IsZero() { // the project is new, from a request in flight
			p.History.StopBy(s.stopBy)
		}
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

// StopBy says that the program is about to end, and by when Run is to have done what it does after its
// context has ended. Run continues until then, but imports no more edits, which the next start continues, and
// makes no more rounds of the sync: what is left is pushed at the end of Run.
func (s *Store) StopBy(at time.Time) {
	s.mu.Lock()
	s.stopBy = at
	s.mu.Unlock()
	s.stop()
	for _, p := range s.Projects() {
		p.History.StopBy(at)
	}
}

// isStopping reports whether StopBy was called.
func (s *Store) isStopping() bool { return s.stopping.Err() != nil }

// timeLeft returns how much of the time given to StopBy is left; without StopBy, a time that bounds nothing.
func (s *Store) timeLeft() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopBy.IsZero() {
		return time.Hour
	}
	return time.Until(s.stopBy)
}

// Close releases the lock. Run must have returned.
func (s *Store) Close() error {
	s.stop()
	return s.lock.Release()
}

// Root returns the store's folder.
func (s *Store) Root() string { return s.cfg.Root }

// Domains returns the domains of the store's addresses.
func (s *Store) Domains() address.Domains { return s.cfg.Domains }

// Token returns the bearer token of the store, created at the first start.
func (s *Store) Token() string { return s.token }

// Stats counts the rows of the index.
func (s *Store) Stats(ctx context.Context) (index.Stats, error) { return s.index.Stats(ctx) }

// CountProblems counts the project's invalid files.
func (p *Project) CountProblems(ctx context.Context) (int, error) {
	return p.store.index.CountProblems(ctx, p.Slug)
}

// Problems returns the first invalid files, at most the given number, of one project (slug) or of all ("").
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

// LeftOut returns, by slug, why projects could not be opened.
func (s *Store) LeftOut() map[string]error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.leftOut)
}

// ProjectOf returns the project that a resource without a project means. For an agent (format.KindProfile)
// or thread (format.KindOther) it is the project with the most recent activity; for a message id
// (format.KindCanonical), which may be shortened, the only one; for the SHA-1 of an attachment
// (format.KindAttachment) any one, because all have the same bytes. It returns ErrNotFound, and ErrConflict, which lists the projects, if a
// message id is in several.
func (s *Store) ProjectOf(ctx context.Context, what format.Kind, name string) (*Project, error) {
	if what == format.KindAttachment {
		return s.projectWithAttachment(name)
	}
	slugs, err := s.projectsNamed(ctx, what, name)
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
	if what == format.KindProfile && len(slugs) > 1 {
		return s.projectSeenLast(ctx, slugs, name)
	}
	return s.Project(ctx, slugs[0])
}

// projectsNamed returns the projects that have the named thing. A message may be named by a shortened id. It
// returns the errors of FullID.
func (s *Store) projectsNamed(ctx context.Context, what format.Kind, name string) ([]string, error) {
	slugs, err := s.index.ProjectsWith(ctx, what, name)
	if err != nil || len(slugs) > 0 || what == format.KindProfile {
		return slugs, err
	}
	const anyProject = ""
	id, err := s.fullID(ctx, anyProject, refusal.Message, name)
	if err != nil || id == name {
		return nil, err
	}
	return s.index.ProjectsWith(ctx, format.KindCanonical, id)
}

// projectSeenLast returns the project in which an agent was active last. It counts inbox checks, which the
// index does not know.
func (s *Store) projectSeenLast(ctx context.Context, slugs []string, agent string) (found *Project, err error) {
	var last time.Time
	for _, slug := range slugs {
		p, err := s.Project(ctx, slug)
		if err != nil {
			return nil, err
		}
		row, err := s.index.Agent(ctx, slug, agent)
		if err != nil {
			return nil, fmt.Errorf("look up agent %s in project %s: %w", format.Printable(agent), slug, err)
		}
		if row == nil { // the agent was removed meanwhile
			continue
		}
		if p.addSeen(row); found == nil || row.LastActive.After(last) {
			found, last = p, row.LastActive
		}
	}
	if found == nil {
		return s.Project(ctx, slugs[0])
	}
	return found, nil
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

// Complete completes names of agents (format.KindProfile), threads (format.KindOther) and projects
// (format.KindProject). It never fails.
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
