package core

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"errors"
	"io/fs"
	"os"
	"sync"
	"time"

	"mailtree/maildir/attachment"
	"mailtree/maildir/clock"
	"mailtree/maildir/folders"
	"mailtree/maildir/format"
	"mailtree/maildir/hook"
	"mailtree/maildir/index"
	"mailtree/maildir/keys"
	"mailtree/maildir/repo"
	"mailtree/maildir/store"
	"mailtree/maildir/storedir"
	"mailtree/maildir/tree"
	"mailtree/maildir/unsent"
)

// OpenProjects gives access to the open projects of a store.
type OpenProjects interface {
	Mail(slug string) *Mail    // nil if the project is not open
	Mails() []*Mail            // sorted by slug
	LeftOut() map[string]error // why projects could not be opened, by slug
}

// Store contains the state that all projects of a store share. It is safe for concurrent use.
type Store struct {
	Config
	Index    index.Index
	Key      ed25519.PrivateKey // signs the seals
	Keys     *keys.Ring
	Token    string
	Feed     *feed
	Owners   owners
	Trusted  trustedSenders
	Hooks    *hook.List
	Tracked  repo.Tracked
	Folders  *folders.File // maps folders on this machine to projects
	Intake   *attachment.Intake
	Limits   *store.Limits
	Clock    *clock.Clock
	Opened   time.Time // the time when the store was opened, earlier than any message that this server sends
	Projects OpenProjects
	// Crossing reports whether the message with the given id is still waiting to be delivered from one project to
	// another. maildir.Open sets it.
	Crossing func(from, id, to string) bool

	places places

	stopMu      sync.Mutex
	stopBy      time.Time       // the time passed to Stop; zero if Stop was not called
	Stopping    context.Context // canceled when Stop or Close is called
	endStopping context.CancelFunc
}

// NewStore returns the Store for the given projects. The caller must set Keys, Key, Token and Index.
func NewStore(ctx context.Context, cfg Config, projects OpenProjects) *Store {
	s := &Store{
		Config:   cfg,
		Feed:     newFeed(),
		Clock:    clock.New(cfg.Now, cfg.Rand),
		Intake:   attachment.NewIntake(cfg.Attachments),
		Owners:   NewOwners(cfg.Root),
		Trusted:  NewTrustedSenders(cfg.Root),
		Folders:  folders.Open(cfg.Root),
		Hooks:    hook.NewList(cfg.Root),
		Limits:   store.NewLimits(cmp.Or(cfg.Files, 512)),
		Projects: projects,
	}
	s.Opened = s.Clock.Time()
	s.Stopping, s.endStopping = context.WithCancel(context.WithoutCancel(ctx))
	return s
}

// IsStopping reports whether Stop or Close was called.
func (s *Store) IsStopping() bool { return s.Stopping.Err() != nil }

// Stop records the time by which the server must exit, for TimeLeft and StopsBy, and cancels the context Stopping.
func (s *Store) Stop(at time.Time) {
	s.stopMu.Lock()
	s.stopBy = at
	s.stopMu.Unlock()
	s.endStopping()
}

// Close cancels the context Stopping.
func (s *Store) Close() { s.endStopping() }

// StopsBy returns the time passed to Stop, or zero if Stop was not called.
func (s *Store) StopsBy() time.Time {
	s.stopMu.Lock()
	defer s.stopMu.Unlock()
	return s.stopBy
}

// TimeLeft returns the time remaining until the time passed to Stop. It returns an hour if Stop was not called.
func (s *Store) TimeLeft() time.Duration {
	if at := s.StopsBy(); !at.IsZero() {
		return time.Until(at)
	}
	return time.Hour
}

// IsGone reports whether the project has no tree on this machine. It reports false if the check fails.
func (s *Store) IsGone(slug string) bool {
	_, err := os.Lstat(storedir.Repo(s.Root, slug))
	return errors.Is(err, fs.ErrNotExist)
}

// Problems returns the invalid files of the project with the given slug, or of all projects if slug is empty. The
// parameter most limits the number of results. If the server refused to send a file, the problem has the reason that
// Postmaster gave to the file's author.
func (s *Store) Problems(ctx context.Context, slug string, most int) ([]format.Problem, error) {
	all, err := s.Index.Problems(ctx, slug, most)
	if err != nil {
		return nil, err
	}
	treeOf := func(slug string) *tree.Tree {
		if m := s.Projects.Mail(slug); m != nil {
			return m.Tree
		}
		return nil
	}
	return all, unsent.Explain(ctx, s.Index, treeOf, all)
}

// IsForeignUser reports whether the caller is an OS user other than the store's user and root.
func (s *Store) IsForeignUser(by Caller) bool { return !by.Root && by.UID != s.User() }

// RunsAs reports whether this server can run commands as the OS user uid.
func (s *Store) RunsAs(uid int) bool {
	return uid >= 0 && (s.User() == 0 || s.User() == uid)
}

// Caller is the OS user that makes the request, according to the kernel (peer credentials).
type Caller struct {
	UID  int
	Root bool // root may do everything
}

// NoOwner is the owner of an agent whose entry in owners.json is negative. Only root may use such an agent.
const NoOwner = -1

// Owns reports whether the caller may use mailboxes that belong to the OS user with the uid owner.
func (by Caller) Owns(owner int) bool { return by.Root || by.UID >= 0 && by.UID == owner }

// projectsWith returns the names of at most MaxListed open projects that have the given agent, thread or message, for
// use in a sentence.
func (s *Store) projectsWith(ctx context.Context, what format.Kind, name string) ([]string, error) {
	slugs, err := s.Index.ProjectsWith(ctx, what, name)
	var names []string
	for _, slug := range slugs[:min(MaxListed, len(slugs))] {
		if p := s.Projects.Mail(slug); p != nil {
			names = append(names, p.Name())
		}
	}
	return names, err
}
