package maildir

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"mailtree/maildir/agents"
	"mailtree/maildir/attachment"
	"mailtree/maildir/claims"
	"mailtree/maildir/codebase"
	"mailtree/maildir/core"
	"mailtree/maildir/crossing"
	"mailtree/maildir/editing"
	"mailtree/maildir/format"
	"mailtree/maildir/history"
	"mailtree/maildir/holds"
	"mailtree/maildir/index"
	"mailtree/maildir/outbox"
	"mailtree/maildir/outgoing"
	"mailtree/maildir/peers"
	"mailtree/maildir/post"
	"mailtree/maildir/refusal"
	"mailtree/maildir/sending"
	"mailtree/maildir/store"
	"mailtree/maildir/storedir"
	"mailtree/maildir/tree"
	"mailtree/maildir/wake"
	"mailtree/maildir/writer"
)

// Project is one project of a store: a tree and the mail in it. Its exported fields do not change. It is safe for
// concurrent use.
type Project struct {
	Slug     string // the name of the project's folder in the store
	Agents   *agents.Agents
	Claims   *claims.Claims
	Holds    *holds.Holds
	Code     *codebase.Codebase
	Edits    *editing.Edits
	Sync     *peers.Sync
	Sessions *wake.Sessions
	Post     *post.Post

	mail    *core.Mail
	sender  *sending.Sender
	outbox  *outbox.Outbox
	carrier *crossing.Carrier
	moved   func() // called after mail.Reread has reported a change
	pops    pops
	stamps  stamping

	stop  context.CancelFunc // ends Project.run; nil if the store is not running; guarded by Store.mu
	ended chan struct{}      // closed when run has returned
}

// newProject builds a project from its parts.
func (s *Store) newProject(c *core.Mail, slug string) *Project {
	p := &Project{
		Slug:   slug,
		mail:   c,
		pops:   pops{mail: c},
		stamps: stamping{mail: c},
		ended:  make(chan struct{}),
		moved: func() {
			s.forgetKeys()
			core.Ring(s.reread)
		},
		Claims: claims.New(c),
		Holds:  holds.New(c),
		Code:   s.codebases.Of(c),
		Edits:  editing.New(s.core.Now, func() { s.core.Feed.RingAgent(slug, core.AnyAgent) }),
		Post:   post.New(c, &s.office),

		carrier: s.carrier,
	}
	p.Agents = agents.New(c, p.Claims)
	p.sender = sending.New(c, p.Post, s.carrier)
	p.outbox = outbox.New(c, p.sender)
	p.Sync = peers.New(c, p.Claims, p.outbox.Moved)
	p.Claims.Elsewhere = p.Sync
	p.Sessions = wake.New(c, p.Agents, &s.windows)
	return p
}

// HumanKey returns the absolute path that identifies the project, or "" if there is none. See core.Mail.HumanKey.
func (p *Project) HumanKey() string { return p.mail.HumanKey() }

// Created returns the time when the project was created, or the zero time if project.json contains no time.
func (p *Project) Created() time.Time { return p.mail.Created() }

// Dir returns the folder of the project's tree.
func (p *Project) Dir() string { return p.mail.Tree.Dir() }

// OpenFile opens a file of the tree for reading. The caller must close it. It returns any error from tree.Tree.Open.
func (p *Project) OpenFile(path string) (io.ReadCloser, tree.FileStat, error) {
	return p.mail.Tree.Open(path)
}

// HistoryState returns the state of the history.
func (p *Project) HistoryState() history.State { return p.mail.History.State() }

// FlushHistory waits until everything written before the call is committed. It returns any error from history.Log.
func (p *Project) FlushHistory(ctx context.Context) error { return p.mail.History.Flush(ctx) }

// Stalled returns how long the writer has been waiting for the disk, or 0 if it is not waiting.
func (p *Project) Stalled() time.Duration { return p.mail.Writer.Stalled() }

// Failing returns the error of the last operation if that operation could not be written, and nil otherwise.
func (p *Project) Failing() error { return p.mail.Writer.Failing() }

// Unreadable lists the files that currently cannot be read.
func (p *Project) Unreadable() []tree.Unreadable { return p.mail.Unreadable() }

// Rescan compares the whole tree with the index, and returns once the differences are ingested. If ctx ends first, it
// returns ctx's error.
func (p *Project) Rescan(ctx context.Context) error { return p.mail.Rescan(ctx) }

// Edited handles changed paths in the tree. If scan is true, the watcher has lost events. See Store.Edited.
func (p *Project) Edited(paths []string, scan bool) { p.mail.Edited(paths, scan) }

// MachineOf returns the name of the other machine that an agent belongs to. It returns "" if the mail is not shared, or
// if the agent belongs to this machine, to no machine, or to a user.
func (p *Project) MachineOf(a *index.AgentRow) string { return p.mail.MachineOf(a) }

// MessageHead returns a message without its body and receipts. It returns ErrNotFound if there is no such message.
func (p *Project) MessageHead(ctx context.Context, id string) (*index.MessageRow, error) {
	return p.mail.HeadNamed(ctx, refusal.Message, id)
}

// Outgoing returns the project's mail that is waiting to be sent to other domains.
func (p *Project) Outgoing() *outgoing.Folder { return p.mail.Outgoing() }

// Attachment reads the attachment with the given SHA-1 in hex. It returns any error from attachment.Read.
func (p *Project) Attachment(sum string, limit int64) (*attachment.Stored, error) {
	return attachment.Read(p.mail.Tree, p.mail.Name(), sum, limit)
}

// OpenAttachment opens the file that Attachment would read. The caller must close it.
func (p *Project) OpenAttachment(sum string, limit int64) (*attachment.Opened, error) {
	return attachment.Open(p.mail.Tree, p.mail.Name(), sum, limit)
}

// Project returns the project with the given human key or slug. For a path inside a working tree, Config.Scope
// determines the project. If there is no such project, Project returns ErrNotFound. The error lists similar names, or
// all names if there are only a few. Project returns ErrInvalid for a key that is neither a human key nor a slug.
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
	e := &Error{
		What:  refusal.NotFound("No project {name} {arg}. {near} {all projects} {make a project}"),
		Field: refusal.Project,
		Name:  key,
	}
	if path := storedir.PlainKey(key); filepath.IsAbs(path) && codebase.IsMissing(path) {
		e.What = refusal.NotFound("No project {name} {arg}, and no such folder on this machine. {near} {all projects}")
	}
	return nil, s.unknownProject(e)
}

func (s *Store) known(slug string) *Project {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.projects[slug]
}

// knownSoon is like known, but waits if the project is being opened, because a project's changes appear in the feed
// before the store lists the project. If ctx ends first, knownSoon returns ctx's error.
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

// beginAdding waits until no other project is being opened, which may take minutes. If beginAdding returns nil, the
// caller must call endAdding when it is done. If ctx ends first, beginAdding returns ctx's error.
func (s *Store) beginAdding(ctx context.Context) error {
	select {
	case s.adding <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (s *Store) endAdding() { <-s.adding }

// adopt opens a project whose folder appeared after the server started (for example, a clone made by hand). It returns
// nil if there is no such folder, or if project.json has not been written yet. A checkout writes that file late, so
// Git is still working in the clone while the file is missing.
func (s *Store) adopt(ctx context.Context, slug string) (*Project, error) {
	if is, err := s.isAdoptable(slug); !is {
		return nil, err
	}
	return s.add(ctx, slug)
}

// isAdoptable reports whether adopt would open a project's folder. It returns ErrUnavailable for machine faults.
func (s *Store) isAdoptable(slug string) (bool, error) {
	if !format.ValidSlug(slug) {
		return false, nil
	}
	fi, err := os.Lstat(filepath.Join(storedir.Repo(s.core.Root, slug), format.ProjectFile))
	if tree.FaultOf(err) == tree.FaultMachine {
		return false, refusal.Disk(err)
	}
	return err == nil && fi.Size() > 0, nil // an empty file is still being written, so the project's key is not known yet
}

// EnsureProject is like Project, but creates the project if the key is DefaultProject or an absolute path without a
// project. If the path is in another clone of the repository of an existing project, it returns that project. It
// returns any error from Project. It also returns ErrInvalid for a path that cannot be a code base, and ErrTooLarge
// if the store already has the maximum number of projects.
func (s *Store) EnsureProject(ctx context.Context, key string) (*Project, error) {
	p, err := s.Project(ctx, key)
	if err == nil {
		p.Code.Visited(ctx, key)
	}
	if err == nil || !errors.Is(err, ErrNotFound) {
		return p, err
	}
	m, kerr := s.core.Resolver().ResolveKey(key)
	if kerr != nil {
		return nil, kerr
	}
	if m.HumanKey == "" && m.Slug != DefaultProject {
		return nil, err
	}
	if err := s.codebases.Refuse(m.HumanKey); err != nil {
		return nil, err
	}
	return s.createProject(ctx, func() (human, slug string, err error) {
		if _, err := s.codebases.FindClone(ctx, m); err != nil {
			return "", "", err
		}
		now, err := s.core.Resolver().ResolveKey(key) // another caller may have created the project since then
		return now.HumanKey, now.Slug, err
	})
}

// EnsureSeparate is like EnsureProject for a path, but always creates a separate project for the path's working tree.
// It does this even if the working tree is another clone of a project's repository, or a worktree of a bare repository.
func (s *Store) EnsureSeparate(ctx context.Context, path string) (*Project, error) {
	folder, err := codebase.Top(path)
	if err != nil {
		return nil, err
	}
	if err := s.codebases.Refuse(folder); err != nil {
		return nil, err
	}
	m, err := s.core.Resolver().ResolveKey(path)
	if err != nil {
		return nil, err
	}
	switch m.Rule {
	case storedir.Linked:
		return nil, &Error{What: refusal.Conflict("{name} is linked to the project {=other}: unlink it first."), Name: folder, Other: m.Slug}
	case storedir.Existing, storedir.Main:
		return s.Project(ctx, m.Slug)
	}
	return s.createProject(ctx, func() (human, slug string, err error) {
		slug, err = s.core.Resolver().FreeSlug(folder)
		return folder, slug, err
	})
}

// FindProject is like Project, but if there is no project for the key, it also looks for the project of another clone
// of the same repository. See codebase.Codebases.FindClone.
func (s *Store) FindProject(ctx context.Context, key string) (*Project, error) {
	p, err := s.Project(ctx, key)
	if !errors.Is(err, ErrNotFound) {
		return p, err
	}
	m, kerr := s.core.Resolver().ResolveKey(key)
	if kerr != nil {
		return nil, kerr
	}
	if s.codebases.Refuse(m.HumanKey) != nil {
		return nil, err
	}
	slug, ferr := s.codebases.FindClone(ctx, m)
	if ferr != nil {
		return nil, ferr
	}
	if slug == "" {
		return nil, err
	}
	return s.Project(ctx, key)
}

// createProject calls choose to get a human key and a slug, and creates the project with that key and slug. If that
// project already exists, createProject returns it. No other project is created while choose runs.
func (s *Store) createProject(ctx context.Context, choose func() (human, slug string, err error)) (p *Project, err error) {
	if err := s.beginAdding(ctx); err != nil {
		return nil, err
	}
	defer s.endAdding()
	human, slug, err := choose()
	if err != nil {
		return nil, err
	}
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
	if p, err = s.addNext(context.WithoutCancel(ctx), slug); err == nil && made { // the files are not committed yet
		p.mail.History.Record([]writer.Op{{Verb: "project", Summary: p.mail.Name(), At: s.core.Now(), Paths: store.OwnFiles}}, nil)
	}
	return p, err
}

// MaxProjects is the default limit on the number of projects in a store. Each project uses the server's memory and the
// machine's inotify watches.
const MaxProjects = 1000

// refuseMore returns an error if one more project would exceed Config.MaxProjects. It counts the projects on disk.
func (s *Store) refuseMore() error {
	slugs, err := storedir.Slugs(s.core.Root)
	if err == nil && len(slugs) >= s.core.MaxProjects {
		err = &Error{
			What: refusal.TooLarge("The store has {count} projects, and the limit is {limit} ({limit of " +
				"projects}). Use an existing project {arg}, move the folder of a project that you no " +
				"longer need out of the store's {=other} folder, or start the server with a higher limit."),
			Field:  refusal.Project,
			Other:  storedir.ProjectsDir,
			Counts: []int{len(slugs)},
			Limit:  s.core.MaxProjects,
		}
	}
	return err
}

// makeProject writes a new working tree next to its final path and then renames it, so that the tree is either complete
// or absent. If another process has created a tree at the path, makeProject returns false.
func (s *Store) makeProject(human, slug string) (made bool, err error) {
	dir := filepath.Join(s.core.Root, storedir.ProjectsDir, slug)
	tmp, err := os.MkdirTemp(s.core.Root, ".project-")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(tmp)
	repo := filepath.Join(tmp, storedir.RepoDir)
	if err := os.MkdirAll(filepath.Join(repo, filepath.FromSlash(tree.TmpDir)), 0o700); err != nil {
		return false, err
	}
	files := map[string][]byte{
		format.ProjectFile:   format.FormatProject(human, slug, s.core.Now()),
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

// add loads a project from disk into the running store. If the project is already loaded, add returns it.
func (s *Store) add(ctx context.Context, slug string) (*Project, error) {
	if err := s.beginAdding(ctx); err != nil {
		return nil, err
	}
	defer s.endAdding()
	return s.addNext(ctx, slug)
}

// addNext is like add, but for a caller that has already called beginAdding. If the project cannot be opened, addNext
// records the reason for LeftOut.
func (s *Store) addNext(ctx context.Context, slug string) (*Project, error) {
	if p := s.known(slug); p != nil {
		return p, nil
	}
	p, err := s.loadProject(slug)
	if err != nil {
		if err = refusal.Disk(err); !errors.Is(err, fs.ErrNotExist) {
			s.noteLeftOut(slug, err)
		}
		return nil, err
	}
	if err := p.attach(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.projects[slug] = p
	delete(s.leftOut, slug)
	s.meant = map[string]keyMeaning{} // keys with a cached meaning may now identify this project
	if s.start != nil {
		s.start(p)
	}
	s.core.Feed.Ring(nil) // the project's changes were recorded before other goroutines could find the project
	core.Ring(s.reread)   // the project's format may have been raised since loadProject
	return p, nil
}

// loadProject opens the tree and recovers it. It returns fs.ErrNotExist if the repo folder does not exist.
func (s *Store) loadProject(slug string) (p *Project, err error) {
	_, err = core.Open(s.core, slug, func(c *core.Mail) store.Mail {
		p = s.newProject(c, slug)
		return mail{p}
	})
	return p, err
}

// attach adds the project to the index and brings the index up to date.
func (p *Project) attach(ctx context.Context) error {
	var progress func(int)
	if f := p.mail.Store.Progress; f != nil {
		progress = func(n int) { f(p.mail.Slug, n) }
	}
	changes, err := p.mail.Attach(ctx, p.mail.Store.Index, progress)
	if err == nil {
		p.reread() // edits made since loadProject are now in the index and will not be reported again
		p.Agents.NoteStatus(changes)
	}
	return err
}

// reread applies the current contents of project.json and shared.json. If a machine fault prevents this, reread tries
// again later.
func (p *Project) reread() {
	changed, err := p.Sync.Reread()
	if err != nil {
		p.mail.Keeper.Log.Warn("cannot read the project's path; will retry", "error", err)
		time.AfterFunc(rereadTime, p.reread)
	}
	if changed {
		p.moved()
	}
}

const rereadTime = 2 * time.Second
