package maildir

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"mailtree/maildir/attachment"
	"mailtree/maildir/claim"
	"mailtree/maildir/format"
	"mailtree/maildir/refusal"
	"mailtree/maildir/repo"
	"mailtree/maildir/seat"
	"mailtree/maildir/store"
	"mailtree/maildir/storedir"
	"mailtree/maildir/tree"
	"mailtree/maildir/writer"
)

// Project is one project of a store: a tree that is kept, and the mail in it. Safe for concurrent use.
type Project struct {
	*store.Keeper
	store   *Store
	human   string
	created time.Time

	life    life
	leases  *claim.Leases
	code    repo.Codebase
	pops    pops
	fresh   settling
	days    dayFolders
	advised adviceCount

	seats   *seat.Book
	binding sync.Mutex // held while a session becomes an agent
	waiters waiters

	mu      sync.Mutex
	agents  map[string]bool // names known to exist
	left    uint64          // how often names were taken out of agents
	seen    map[string]*sighting
	sighted chan struct{} // rings keepNotes
	told    chan struct{} // rings keepNotes
}

// HumanKey is the absolute path that the project is named by; "" where project.json does not say.
func (p *Project) HumanKey() string { return p.human }

// Created is when the project was made; zero where project.json does not say.
func (p *Project) Created() time.Time { return p.created }

// Attachment reads a file that mail brought along, by its SHA-1 in hex. Errors: those of
// attachment.Read.
func (p *Project) Attachment(sum string, limit int64) (*attachment.Stored, error) {
	return attachment.Read(p.Tree, p.name(), sum, limit)
}

// OpenAttachment is Attachment for a file that is read piece by piece; the caller closes it.
func (p *Project) OpenAttachment(sum string, limit int64) (*attachment.Opened, error) {
	return attachment.Open(p.Tree, p.name(), sum, limit)
}

// Project finds a project by its human key or slug. Config.Scope says which project a path inside a
// work tree means. Errors: ErrNotFound, ErrInvalid for a key that is neither; with near names, and
// all where there are few.
func (s *Store) Project(ctx context.Context, key string) (*Project, error) {
	_, slug, err := s.resolve(key)
	if err != nil {
		return nil, err
	}
	if p := s.known(slug); p != nil {
		return p, nil
	}
	if p, err := s.adopt(ctx, slug); p != nil || err != nil {
		return p, err
	}
	return nil, s.unknownProject(&Error{
		What:  refusal.NotFound("No project {name} {arg}. {near} {all projects} {make a project}"),
		Field: refusal.Project,
		Name:  key,
	})
}

func (s *Store) known(slug string) *Project {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.projects[slug]
}

// knownSoon is known, and waits for a project that is being opened: what it brings is in the feed
// before it is known. Errors: ctx's.
func (s *Store) knownSoon(ctx context.Context, slug string) (*Project, error) {
	if p := s.known(slug); p != nil {
		return p, nil
	}
	if err := s.beginAdding(ctx); err != nil {
		return nil, err
	}
	defer s.endAdding()
	return s.known(slug), nil
}

// beginAdding waits until nobody else opens a project, which may take minutes; the caller calls
// endAdding. Errors: ctx's.
func (s *Store) beginAdding(ctx context.Context) error {
	select {
	case s.adding <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (s *Store) endAdding() { <-s.adding }

// adopt opens a project whose folder appeared after the start (a clone made by hand); nil when
// there is none. It waits for project.json to be written, which a checkout does late: a clone under
// way is Git's.
func (s *Store) adopt(ctx context.Context, slug string) (*Project, error) {
	if !format.ValidSlug(slug) {
		return nil, nil
	}
	fi, err := os.Lstat(filepath.Join(storedir.Repo(s.cfg.Root, slug), format.ProjectFile))
	if tree.FaultOf(err) == tree.FaultMachine {
		return nil, refusal.Disk(err)
	}
	if err != nil || fi.Size() == 0 { // empty, it is being written: a project opened now would not know its name
		return nil, nil
	}
	return s.add(ctx, slug)
}

// DefaultProject is the slug of the project for those who name none. It has no human key.
// See docs/tools.md, "postal".
const DefaultProject = "default"

// EnsureProject is Project, but makes the project where the key is an absolute path without one, or
// DefaultProject. Errors: as Project; ErrInvalid too for a path that can be no code base,
// ErrTooLarge where the store may have no more projects.
func (s *Store) EnsureProject(ctx context.Context, key string) (*Project, error) {
	p, err := s.Project(ctx, key)
	if err == nil || !errors.Is(err, ErrNotFound) {
		return p, err
	}
	human, slug, kerr := s.resolve(key)
	if kerr != nil {
		return nil, kerr
	}
	if human == "" && slug != DefaultProject {
		return nil, err
	}
	if err := s.refuseKey(human); err != nil {
		return nil, err
	}
	if err := s.beginAdding(ctx); err != nil {
		return nil, err
	}
	defer s.endAdding()
	if p := s.known(slug); p != nil {
		return p, nil
	}
	if err := s.refuseMore(); err != nil {
		return nil, err
	}
	made, err := s.makeProject(human, slug)
	if err != nil {
		return nil, refusal.Disk(err)
	}
	if p, err = s.addNext(context.WithoutCancel(ctx), slug); err == nil && made { // it is on disk, and belongs into the history
		p.History.Record([]writer.Op{{Verb: "project", Summary: p.name(), At: s.cfg.Now(), Paths: store.OwnFiles}}, nil)
	}
	return p, err
}

// MaxProjects is how many projects a store has by default before no more are made: each takes
// memory of the server, and of the machine's inotify watches.
const MaxProjects = 1000

// refuseMore refuses to make one project more than Config.MaxProjects. Those that are there are
// counted on disk.
func (s *Store) refuseMore() error {
	slugs, err := storedir.Slugs(s.cfg.Root)
	if err == nil && len(slugs) >= s.cfg.MaxProjects {
		err = &Error{
			What: refusal.TooLarge("The store has {count} projects, and no more are made from {limit} on ({limit of projects}): name " +
				"one of them {arg}, move a folder that is no longer needed out of the store's {=other}, or start the server with a " +
				"higher limit."),
			Field:  refusal.Project,
			Other:  storedir.ProjectsDir,
			Counts: []int{len(slugs)},
			Limit:  s.cfg.MaxProjects,
		}
	}
	return err
}

// refuseKey refuses to make a project named by a path that can be no code base: a file, or anything
// in the folders of the system or of the store, also through symbolic links. A path where nothing
// is can be one. Errors: ErrInvalid; ErrUnavailable, the machine's faults.
func (s *Store) refuseKey(human string) error {
	if human == "" {
		return nil
	}
	fi, err := os.Stat(human)
	if err == nil && !fi.IsDir() || errors.Is(err, syscall.ENOTDIR) {
		return &Error{
			What: refusal.Invalid("{field} {name} is a file, or lies below one: give the absolute path of the code base's folder, such as " +
				"/home/me/backend."),
			Field: refusal.Project,
			Name:  human,
		}
	}
	real, err := repo.WithoutLinks(human)
	root, rerr := repo.WithoutLinks(s.cfg.Root)
	if err = errors.Join(err, rerr); err != nil {
		return refusal.Disk(err)
	}
	for _, at := range []string{human, real} {
		for _, dir := range []string{"/proc", "/sys", "/dev", s.cfg.Root, root} {
			if at != dir && !strings.HasPrefix(at, dir+"/") {
				continue
			}
			whose := "the system's folder " + dir
			if dir != "/proc" && dir != "/sys" && dir != "/dev" {
				whose = "the mail store"
			}
			return &Error{
				What: refusal.Invalid("{field} {name} lies in {=other}, where no code base is: give the absolute path of the code base's " +
					"folder, such as /home/me/backend."),
				Field: refusal.Project,
				Name:  human,
				Other: whose,
			}
		}
	}
	return nil
}

// MissingFolder is the path that a key names (a slug: the path that the project is named by) where
// nothing lies there, or something that is no folder: the key may be mistyped, or name a folder of
// another machine. "" where a folder lies there.
func (p *Project) MissingFolder(key string) string {
	path := filepath.Clean(storedir.PlainKey(key))
	if !filepath.IsAbs(path) {
		path = p.human
	}
	if path == "" {
		return ""
	}
	fi, err := os.Stat(path)
	if tree.FaultOf(err) == tree.FaultGone || err == nil && !fi.IsDir() {
		return path
	}
	return ""
}

// EnsureProjectFor is EnsureProject for the caller. A guest makes no project but the default one:
// it takes files and memory of the server, and a guest can name any number of them. Errors:
// ErrNotFound without names like it, which are not a guest's to know; else as EnsureProject.
func (s *Store) EnsureProjectFor(ctx context.Context, key string, by Caller) (*Project, error) {
	if key == DefaultProject || !s.guest(by) {
		return s.EnsureProject(ctx, key)
	}
	p, err := s.ProjectFor(ctx, key, by)
	if errors.Is(err, ErrNotFound) {
		return nil, &Error{What: refusal.UnknownProjectOfGuest, Name: key}
	}
	return p, err
}

// ProjectFor is Project for the caller. A guest learns of no other project than the one that it
// names. Errors: as Project, for a guest without names like it.
func (s *Store) ProjectFor(ctx context.Context, key string, by Caller) (*Project, error) {
	p, err := s.Project(ctx, key)
	var e *Error
	if errors.As(err, &e) && s.guest(by) {
		untold := *e
		untold.Near, untold.All = nil, nil
		return nil, &untold
	}
	return p, err
}

// makeProject writes a new work tree beside its place and renames it there, so that it is whole or
// absent. made is false where somebody else has put one there first.
func (s *Store) makeProject(human, slug string) (made bool, err error) {
	dir := filepath.Join(s.cfg.Root, storedir.ProjectsDir, slug)
	tmp, err := os.MkdirTemp(s.cfg.Root, ".project-")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(tmp)
	repo := filepath.Join(tmp, storedir.RepoDir)
	if err := os.MkdirAll(filepath.Join(repo, filepath.FromSlash(tree.TmpDir)), 0o700); err != nil {
		return false, err
	}
	files := map[string][]byte{
		format.ProjectFile:   format.FormatProject(human, slug, s.cfg.Now()),
		format.GitIgnore:     store.GitFile(format.GitIgnore, nil),
		format.GitAttributes: store.GitFile(format.GitAttributes, nil),
	}
	for name, data := range files {
		if err := tree.WriteFile(filepath.Join(repo, name), data); err != nil {
			return false, err
		}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return false, err
	}
	err = os.Rename(repo, filepath.Join(dir, storedir.RepoDir))
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return false, err
	}
	return err == nil, errors.Join(tree.SyncDir(dir), tree.SyncDir(filepath.Dir(dir)))
}

// add loads a project of the disk into the running store; the same again is the same project.
func (s *Store) add(ctx context.Context, slug string) (*Project, error) {
	if err := s.beginAdding(ctx); err != nil {
		return nil, err
	}
	defer s.endAdding()
	return s.addNext(ctx, slug)
}

// addNext is add for one who has called beginAdding.
func (s *Store) addNext(ctx context.Context, slug string) (*Project, error) {
	if p := s.known(slug); p != nil {
		return p, nil
	}
	p, err := s.loadProject(slug)
	if err != nil {
		return nil, refusal.Disk(err)
	}
	if err := p.attach(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.projects[slug] = p
	delete(s.leftOut, slug)
	clear(s.meant) // a key may now mean this project
	if s.start != nil {
		s.start(p)
	}
	s.feed.ring(nil) // what it brings was recorded before anybody could find the project
	return p, nil
}

// loadProject opens the tree and recovers it. fs.ErrNotExist when there is no repo folder.
func (s *Store) loadProject(slug string) (*Project, error) {
	dir := storedir.Repo(s.cfg.Root, slug)
	fi, err := os.Lstat(dir)
	if err != nil {
		return nil, err
	}
	if !fi.IsDir() {
		return nil, &Error{What: refusal.Invalid("{=other} is not a folder."), Other: dir}
	}
	t, err := storedir.OpenTree(s.cfg.Root, slug, s.cfg.MaxFile)
	if err != nil {
		return nil, err
	}
	t.Fail = s.cfg.Fail
	defer t.Close() // from now on it is open while somebody uses it
	log := s.cfg.Log.With("project", slug)
	p := &Project{
		store:   s,
		life:    life{folder: fi, removed: make(chan struct{}), ended: make(chan struct{})},
		leases:  claim.NewLeases(),
		fresh:   newSettling(),
		agents:  map[string]bool{},
		seen:    map[string]*sighting{},
		sighted: make(chan struct{}, 1),
		told:    make(chan struct{}, 1),
	}
	p.seats = seat.NewBook(t, s.cfg.Now, s.cfg.Log.With("project", slug), func() { ring(p.told) })
	if data, _, err := t.Read(format.ProjectFile, format.MaxSmall); err == nil {
		if p.human, p.created, err = format.ParseProject(data); err != nil {
			log.Warn("project.json is not valid; the project is known by its slug only", "error", err)
		}
	}
	p.Keeper, err = store.Open(store.Config{
		Slug:   slug,
		Tree:   t,
		Mail:   mail{p},
		Limits: s.limits,
		Log:    log,
		Now:    s.cfg.Now,
		Writer: writer.Config{
			Key:      s.key.Seed(),
			Patience: s.cfg.Patience,
			Step:     s.cfg.Step,
			Observe:  s.cfg.Observe,
		},
		OpenHistory: s.cfg.OpenHistory,
	})
	return p, err
}

// attach makes the index know the project and brings it level.
func (p *Project) attach(ctx context.Context) error {
	var progress func(int)
	if f := p.store.cfg.Progress; f != nil {
		progress = func(n int) { f(p.Slug, n) }
	}
	changes, err := p.Attach(ctx, p.store.index, progress)
	if err == nil {
		p.noteStatus(changes)
	}
	return err
}
