package maildir

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
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
	"mailtree/maildir/codebase"
	"mailtree/maildir/core"
	"mailtree/maildir/crossing"
	"mailtree/maildir/folders"
	"mailtree/maildir/format"
	"mailtree/maildir/hook"
	"mailtree/maildir/index"
	"mailtree/maildir/keys"
	"mailtree/maildir/post"
	"mailtree/maildir/projectformat"
	"mailtree/maildir/refusal"
	"mailtree/maildir/storedir"
	"mailtree/maildir/tree"
	"mailtree/maildir/wake"
)

// Store is an open store folder. While it is open, no other process can open the folder. It is safe for concurrent
// use.
type Store struct {
	core      *core.Store
	lock      *storedir.Lock
	windows   wake.Windows
	office    post.Office
	carrier   *crossing.Carrier
	codebases *codebase.Codebases

	adding   chan struct{} // contains a value while a project is being opened
	reread   chan struct{} // receives a value after a project has reread its files
	mu       sync.Mutex
	projects map[string]*Project
	leftOut  map[string]error      // why projects could not be opened, by slug
	meant    map[string]keyMeaning // cached meanings of keys that identify open projects; the map is replaced when outdated
	start    func(*Project)        // starts a project; set while Run is running
}

// Open acquires the store's lock, creates what is missing (folder, key, token), completes or discards operations that
// a crash left in staging, opens every project, and brings the index up to date. Open starts no background work; Run
// does. It returns ErrConflict if another process owns the store; the error identifies the process. It returns
// ErrUnavailable if the folder cannot be used.
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
	cfg.Format = cmp.Or(cfg.Format, projectformat.Highest)
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
		cfg.Log.Warn("cannot write README.md", "store", cfg.Root, "error", err)
	}
	s := &Store{
		lock:     lock,
		projects: map[string]*Project{},
		leftOut:  map[string]error{},
		meant:    map[string]keyMeaning{},
		adding:   make(chan struct{}, 1),
		reread:   make(chan struct{}, 1),
	}
	s.core = core.NewStore(ctx, cfg, opened{s})
	s.carrier = crossing.New(s.core)
	s.codebases = codebase.New(s.core, opened{s})
	s.core.Crossing = s.carrier.IsWaiting
	if err := s.open(ctx); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func (s *Store) open(ctx context.Context) error {
	var err error
	if s.core.Keys, s.core.Key, err = keys.Open(s.core.Root, s.core.Rand); err != nil {
		return err
	}
	if s.core.Token, err = keys.Token(s.core.Root, s.core.Rand); err != nil {
		return err
	}
	if err := s.findProjects(); err != nil {
		return err
	}
	s.carrier.Tidy()
	trees := map[string]*tree.Tree{}
	for slug, p := range s.projects {
		trees[slug] = p.mail.Tree
	}
	if s.core.Index, err = s.core.OpenIndex(ctx, trees); err != nil {
		return fmt.Errorf("cannot open the index: %w", err)
	}
	for _, p := range s.Projects() {
		if err := p.attach(ctx); err != nil {
			if ctx.Err() != nil {
				return err
			}
			s.core.Log.Error("cannot compare a project's files with the index; will retry", "project", p.mail.Slug, "error", err)
			p.mail.Edited(nil, true)
		}
	}
	return nil
}

// FileProblems opens the store's own files the way a server does. For each file that cannot be used, it returns an
// error that says what is wrong and what to do. A missing file is not a problem. FileProblems changes nothing and may
// be called while a server is running.
func FileProblems(root string) (all []error) {
	note := func(err error) {
		var of *fs.PathError
		switch {
		case err == nil || errors.Is(err, fs.ErrNotExist):
		case errors.As(err, &of): // drop the wrapping error, because its text does not name the file
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
	owners := core.NewOwners(root)
	_, err := owners.LoadOwners()
	note(err)
	trusted := core.NewTrustedSenders(root)
	_, err = trusted.File.Load()
	note(err)
	_, err = hook.NewList(root).Load()
	note(err)
	_, err = folders.Open(root).Load()
	note(err)
	note(hook.CheckLog(root))
	note(storedir.CheckLog(root))
	return all
}

// findProjects opens every projects/<slug>/repo, and completes or discards operations that a crash left in the folder.
func (s *Store) findProjects() error {
	dir := filepath.Join(s.core.Root, storedir.ProjectsDir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return &Error{
			What:  refusal.StoreUnusable,
			Other: s.core.Root,
			Why:   err.Error(),
			Err:   err,
		}
	}
	slugs, err := storedir.Slugs(s.core.Root)
	if err != nil {
		return err
	}
	for _, slug := range slugs {
		p, err := s.loadProject(slug)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			s.core.Log.Error("a project is unavailable", "project", slug, "error", err)
			s.leftOut[slug] = err
			continue
		}
		s.projects[p.mail.Slug] = p
	}
	return nil
}

// Run performs the operations of every project until ctx ends. After that, it completes the operations that it has
// accepted, waits until the history has committed everything, and returns nil.
func (s *Store) Run(ctx context.Context) error {
	var all sync.WaitGroup
	s.mu.Lock()
	s.start = func(p *Project) {
		ctx, stop := context.WithCancel(ctx)
		p.stop = stop
		if by := s.core.StopsBy(); !by.IsZero() { // a request that was in progress created the project after StopBy
			p.mail.History.StopBy(by)
		}
		all.Go(func() {
			defer close(p.ended)
			defer stop()
			p.run(ctx)
		})
		s.carrier.Poke()
	}
	for _, p := range s.projects {
		s.start(p)
	}
	s.mu.Unlock()
	all.Go(func() { s.endGone(ctx) })
	all.Go(func() { s.endRefused(ctx) })
	all.Go(func() { s.carrier.Run(ctx) })
	<-ctx.Done()
	s.mu.Lock()
	s.start = nil
	s.mu.Unlock()
	all.Wait()
	return nil
}

// StopBy announces that the program is about to end. The at argument is the deadline for the work that Run does after
// its context has ended. After StopBy is called, Run imports no more edits; the next start continues the import. Run
// also starts no more sync rounds, but it pushes everything that is left before it returns.
func (s *Store) StopBy(at time.Time) {
	s.core.Stop(at)
	for _, p := range s.Projects() {
		p.mail.History.StopBy(at)
	}
}

// opened adapts a Store to core.OpenProjects and codebase.Projects.
type opened struct{ *Store }

// Mail implements core.OpenProjects.
func (s opened) Mail(slug string) *core.Mail {
	if p := s.known(slug); p != nil {
		return p.mail
	}
	return nil
}

// Mails implements core.OpenProjects.
func (s opened) Mails() (all []*core.Mail) {
	for _, p := range s.Projects() {
		all = append(all, p.mail)
	}
	return all
}

// Find implements codebase.Projects.
func (s opened) Find(ctx context.Context, key string) (*core.Mail, error) {
	p, err := s.Project(ctx, key)
	if err != nil {
		return nil, err
	}
	return p.mail, nil
}

// Moved implements codebase.Projects.
func (s opened) Moved(c *core.Mail) {
	s.forgetKeys()
	if c == nil {
		return
	}
	if p := s.known(c.Slug); p != nil {
		p.reread()
	}
}

// Codebases returns the code bases of the store's projects.
func (s *Store) Codebases() *codebase.Codebases { return s.codebases }

// Close releases the lock. Run must have returned.
func (s *Store) Close() error {
	s.core.Close()
	return s.lock.Release()
}

// CrossingWaits lists mail from the given projects that has not been delivered to other projects yet. The projects are
// in the store at root. A server may be using that store.
func CrossingWaits(root string, slugs []string) ([]crossing.Waiting, error) {
	return crossing.WaitingIn(root, slugs)
}

// Root returns the store's folder.
func (s *Store) Root() string { return s.core.Root }

// Domains returns the domains of the store's addresses.
func (s *Store) Domains() address.Domains { return s.core.Domains }

// VerifiedIn reports whether the seal of a message in the index is valid, and who vouches for the message. A message
// is not verified if this store's server sealed it for another project, if it is in an inbox that it was not sent to,
// or if its domain does not vouch for it. If the message is not verified, the Voucher is zero.
func (s *Store) VerifiedIn(m *index.MessageRow) (keys.Voucher, bool) { return s.core.VerifiedIn(m) }

// Proven reports whether a message is verified and did not come through the gateway. Only the subject of such a message
// may appear outside mailtree, for example in a notification.
func (s *Store) Proven(d *index.Delivery) bool {
	_, verified := s.VerifiedIn(&d.MessageRow)
	return verified && d.Door != format.DoorGateway
}

// Problems returns the invalid files in the project with the given slug, or in all projects if project is "". It
// returns no more than most files.
func (s *Store) Problems(ctx context.Context, project string, most int) ([]format.Problem, error) {
	return s.core.Problems(ctx, project, most)
}

// Token returns the store's bearer token, which is created when the store is first opened.
func (s *Store) Token() string { return s.core.Token }

// Stats counts the rows of the index.
func (s *Store) Stats(ctx context.Context) (index.Stats, error) { return s.core.Index.Stats(ctx) }

// CountProblems counts the project's invalid files.
func (p *Project) CountProblems(ctx context.Context) (int, error) {
	return p.mail.Store.Index.CountProblems(ctx, p.mail.Slug)
}

// Projects returns all projects, sorted by slug.
func (s *Store) Projects() []*Project {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := slices.Collect(maps.Values(s.projects))
	slices.SortFunc(all, func(a, b *Project) int { return strings.Compare(a.mail.Slug, b.mail.Slug) })
	return all
}

// LeftOut returns the errors of projects that could not be opened, by slug.
func (s *Store) LeftOut() map[string]error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.leftOut)
}

// ProjectOf returns the project that has a resource, for a request that specifies no project. For an agent
// (format.KindProfile) or a thread (format.KindOther), this is the project with the most recent activity. For a
// message id (format.KindCanonical), which may be shortened, it is the only project that has the message. If the
// message is in several projects because it was sent from one to the others, it is the sender's project. For the SHA-1
// of an attachment (format.KindAttachment), it is any project that has the attachment, because the bytes are the same.
// ProjectOf returns ErrNotFound if there is no such project. It returns ErrConflict if several projects have different
// messages with the id; the error lists the projects.
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
			if err := p.mail.Sure(); err != nil {
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
		home, err := s.homeOf(ctx, slugs, name)
		if home != nil || err != nil {
			return home, err
		}
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

// homeOf returns the project of a message's sender, if the message is in several projects because it was sent from one
// to the others. If the sender's project does not have the message, homeOf returns the first of the projects. It
// returns nil if the projects have different messages with the same id.
func (s *Store) homeOf(ctx context.Context, slugs []string, name string) (*Project, error) {
	author, home := "", ""
	for _, slug := range slugs {
		p := s.known(slug)
		if p == nil {
			return nil, nil
		}
		id, err := p.FullID(ctx, name)
		if err != nil {
			return nil, err
		}
		m, err := s.core.Index.Message(ctx, slug, id, index.WithoutBody, nil)
		if err != nil || m == nil {
			return nil, err
		}
		const anyProject = ""
		from := p.mail.SeenFrom(anyProject, m.From)
		if author == "" {
			author, home = from, slug
		}
		if from != author || !s.InAnotherProject(from) {
			return nil, nil
		}
		if core.IsAgent(m.From) {
			home = slug
		}
	}
	return s.Project(ctx, home)
}

// projectsNamed returns the projects that have the named agent, thread, message or attachment. The id of a message may
// be shortened. It returns any error from FullID.
func (s *Store) projectsNamed(ctx context.Context, what format.Kind, name string) ([]string, error) {
	slugs, err := s.core.Index.ProjectsWith(ctx, what, name)
	if err != nil || len(slugs) > 0 || what == format.KindProfile {
		return slugs, err
	}
	const anyProject = ""
	id, err := s.core.FullID(ctx, anyProject, refusal.Message, name)
	if err != nil || id == name {
		return nil, err
	}
	return s.core.Index.ProjectsWith(ctx, format.KindCanonical, id)
}

// projectSeenLast returns the project in which an agent was last active. Checking the inbox counts as activity,
// although the index does not record it.
func (s *Store) projectSeenLast(ctx context.Context, slugs []string, agent string) (found *Project, err error) {
	var last time.Time
	for _, slug := range slugs {
		p, err := s.Project(ctx, slug)
		if err != nil {
			return nil, err
		}
		row, err := s.core.Index.Agent(ctx, slug, agent)
		if err != nil {
			return nil, fmt.Errorf("cannot look up agent %s in project %s: %w", format.Printable(agent), slug, err)
		}
		if row == nil { // the agent was removed meanwhile
			continue
		}
		if p.mail.AddSeen(row); found == nil || row.LastActive.After(last) {
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
		path, err := attachment.Find(p.mail.Tree, sum)
		if path != "" || err != nil {
			return p, err
		}
	}
	return nil, &Error{What: refusal.NowhereFound, Name: sum, Other: "attachment"}
}

// Complete returns up to limit names of agents (format.KindProfile), threads (format.KindOther) or projects
// (format.KindProject) that begin with prefix. If project is not "", the names of agents include addresses of agents
// in other projects (see completeAgent). Complete logs errors instead of returning them.
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
		slug = p.mail.Slug
	}
	var names []string
	var err error
	if what == format.KindProfile {
		names, err = s.completeAgent(ctx, slug, prefix, limit)
	} else {
		names, err = s.core.Index.Names(ctx, slug, what, prefix, limit)
	}
	if err != nil {
		s.core.Log.Warn("completion failed", "error", err)
	}
	return names
}

func (s *Store) completeProject(prefix string, limit int) []string {
	var out []string
	for _, p := range s.Projects() {
		for _, n := range []string{p.mail.HumanKey(), p.mail.Slug} {
			if n != "" && strings.HasPrefix(strings.ToLower(n), strings.ToLower(prefix)) && len(out) < limit {
				out = append(out, n)
				break
			}
		}
	}
	return out
}

// SendsOutside reports whether any mail may be sent to other domains.
func (s *Store) SendsOutside() bool { return len(s.core.Outside.Allow) > 0 }
