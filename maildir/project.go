package maildir

import (
	"cmp"
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

// Project is one project of a store: a kept tree and the mail in it. It is safe for concurrent use.
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
	shared  sharing
	stamps  stamping
	advised adviceCount

	seats   *seat.Book
	binding sync.Mutex // held while a session gets its agent
	waiters waiters

	mu      sync.Mutex
	agents  map[string]bool // names known to exist
	left    uint64          // how many times names were removed from agents
	seen    map[string]*sighting
	sighted chan struct{} // wakes keepNotes
	told    chan struct{} // wakes keepNotes
}

// HumanKey returns the absolute path that names the project; "" if project.json does not say.
func (p *Project) HumanKey() string { return p.human }

// Created returns when the project was made; zero if project.json does not say.
func (p *Project) Created() time.Time { return p.created }

// Attachment reads an attachment by its SHA-1 in hex. It returns the errors of attachment.Read.
func (p *Project) Attachment(sum string, limit int64) (*attachment.Stored, error) {
	return attachment.Read(p.Tree, p.name(), sum, limit)
}

// OpenAttachment opens the file that Attachment reads. The caller closes it.
func (p *Project) OpenAttachment(sum string, limit int64) (*attachment.Opened, error) {
	return attachment.Open(p.Tree, p.name(), sum, limit)
}

// Project returns the project with that human key or slug. Config.Scope says which project a path inside a
// work tree means. It returns ErrNotFound, with similar names and with all names if there are few, and
// ErrInvalid for a key that is neither.
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

// knownSoon is known, but waits for a project that is being opened, because its changes are in the feed
// before it is known. It returns ctx's error.
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

// beginAdding waits until no other project is being opened, which may take minutes. The caller calls
// endAdding. It returns ctx's error.
func (s *Store) beginAdding(ctx context.Context) error {
	select {
	case s.adding <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (s *Store) endAdding() { <-s.adding }

// adopt opens a project whose folder appeared after the start (a clone made by hand). It returns nil if
// there is none. It does not open a project before project.json is written, which a checkout does late:
// until then the clone belongs to Git.
func (s *Store) adopt(ctx context.Context, slug string) (*Project, error) {
	if is, err := s.isAdoptable(slug); !is {
		return nil, err
	}
	return s.add(ctx, slug)
}

// isAdoptable reports whether adopt opens the folder of a project. It returns ErrUnavailable for faults of the
// machine.
func (s *Store) isAdoptable(slug string) (bool, error) {
	if !format.ValidSlug(slug) {
		return false, nil
	}
	fi, err := os.Lstat(filepath.Join(storedir.Repo(s.cfg.Root, slug), format.ProjectFile))
	if tree.FaultOf(err) == tree.FaultMachine {
		return false, refusal.Disk(err)
	}
	return err == nil && fi.Size() > 0, nil // an empty file is still being written: a project opened now would not know its name
}

// DefaultProject is the slug of the project for requests that name none. It has no human key. See
// docs/tools.md, "postal".
const DefaultProject = "default"

// EnsureProject is Project, but creates the project if the key is an absolute path without a project, or
// DefaultProject. It returns the errors of Project, ErrInvalid also for a path that cannot be a code base,
// and ErrTooLarge if the store may have no more projects.
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
	if p, err = s.addNext(context.WithoutCancel(ctx), slug); err == nil && made { // its files are on disk and must get into the history
		p.History.Record([]writer.Op{{Verb: "project", Summary: p.name(), At: s.cfg.Now(), Paths: store.OwnFiles}}, nil)
	}
	return p, err
}

// MaxProjects is the default limit of a store's projects. Each project takes memory of the server and
// inotify watches of the machine.
const MaxProjects = 1000

// refuseMore refuses to create a project beyond Config.MaxProjects. It counts the projects on disk.
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

// refuseKey refuses to create a project for a path that cannot be a code base: a file, or a path in the
// folders of the system or of the store, also through symbolic links. A path where nothing lies is allowed.
// It returns ErrInvalid, and ErrUnavailable for the machine's faults.
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

// MissingFolder returns the path that a key names (for a slug, the project's path) if no folder lies there:
// the key may be mistyped, or name a folder of another machine. It returns "" if a folder lies there.
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

// EnsureProjectFor is EnsureProject for a caller. A guest may create only the default project, because each
// project takes files and memory of the server, and a guest could name any number of them. It returns
// ErrNotFound without similar names, which a guest must not learn, and otherwise the errors of
// EnsureProject.
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

// ProjectFor is Project for a caller. A guest learns of no project but the one that it names: it returns
// the errors of Project, for a guest without similar names.
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

// makeProject writes a new work tree next to its place and renames it into place, so that the tree is whole
// or absent. made is false if another process has put a tree there first.
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

// add loads a project from disk into the running store. If it is loaded already, add returns it.
func (s *Store) add(ctx context.Context, slug string) (*Project, error) {
	if err := s.beginAdding(ctx); err != nil {
		return nil, err
	}
	defer s.endAdding()
	return s.addNext(ctx, slug)
}

// addNext is add for a caller that has called beginAdding.
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
	s.feed.ring(nil) // the project's changes were recorded before anyone could find the project
	return p, nil
}

// loadProject opens the tree and recovers it. It returns fs.ErrNotExist if there is no repo folder.
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
	defer t.Close() // from now on the tree is open only while it is used
	log := s.cfg.Log.With("project", slug)
	p := &Project{
		store:   s,
		life:    life{folder: fi, removed: make(chan struct{}), ended: make(chan struct{})},
		leases:  claim.NewLeases(),
		fresh:   newSettling(s.cfg.Monotonic),
		agents:  map[string]bool{},
		seen:    map[string]*sighting{},
		sighted: make(chan struct{}, 1),
		told:    make(chan struct{}, 1),
	}
	shared, err := storedir.LoadShared(s.cfg.Root, slug)
	if err != nil {
		log.Error("the project is not shared with other machines: the file that says so cannot be read", "error", err)
	}
	p.shared = newSharing(shared.On)
	p.seats = seat.NewBook(t, s.cfg.Now, s.cfg.Log.With("project", slug), func() { ring(p.told) })
	if data, _, err := t.Read(format.ProjectFile, format.MaxSmall); err == nil {
		if p.human, p.created, err = format.ParseProject(data); err != nil {
			log.Warn("project.json is not valid; the project is known by its slug only", "error", err)
		}
	}
	p.human = cmp.Or(shared.Key, p.human)
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

// attach makes the project known to the index and brings the index level.
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
