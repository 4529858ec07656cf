package core

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"
	"sync"
	"sync/atomic"

	"mailtree/maildir/format"
	"mailtree/maildir/refusal"
	"mailtree/maildir/seat"
	"mailtree/maildir/store"
	"mailtree/maildir/storedir"
	"mailtree/maildir/tree"
	"mailtree/maildir/writer"
)

// Mail contains the state and helpers that all operations on a project share: the tree, the agents, the planning of
// message files and marks, and the errors for unknown names. It implements no operations of its own. It is safe for
// concurrent use.
type Mail struct {
	*store.Keeper
	Store   *Store
	is      atomic.Pointer[identity]
	folder  os.FileInfo   // the tree's folder at the time the project was opened
	removed chan struct{} // closed by NoteRemoved

	days    dayFolders
	noticed noticeCount
	Seats   *seat.Book

	mu          sync.Mutex
	agents      map[string]bool // names of agents that exist, as a cache
	left        uint64          // how many times names have been removed from agents
	seen        map[string]*lastSeen
	seenChanged chan struct{} // wakes KeepNotes
	told        chan struct{} // wakes KeepNotes when an agent has received a notice
}

// Open opens the tree of a project and recovers it. It calls reports once, and the keeper reports to the store.Mail
// that the call returns. Open returns fs.ErrNotExist if the repo folder does not exist, any error from
// projectformat.Refuse, or a machine fault. If Open returns an error from Refuse, it has changed nothing.
func Open(s *Store, slug string, reports func(c *Mail) store.Mail) (*Mail, error) {
	dir := storedir.Repo(s.Root, slug)
	fi, err := os.Lstat(dir)
	if err != nil {
		return nil, err
	}
	if !fi.IsDir() {
		return nil, &refusal.Error{What: refusal.Invalid("{=other} is not a folder."), Other: dir}
	}
	t, err := tree.OpenNoLink(dir, s.MaxFile)
	if err != nil {
		return nil, err
	}
	t.Fail = s.Fail
	defer t.Close() // after Open returns, the tree keeps its folder open only during each use
	log := s.Log.With("project", slug)
	c := &Mail{
		Store:       s,
		folder:      fi,
		removed:     make(chan struct{}),
		agents:      map[string]bool{},
		seen:        map[string]*lastSeen{},
		seenChanged: make(chan struct{}, 1),
		told:        make(chan struct{}, 1),
	}
	is, err := s.readIdentity(slug, t, log)
	if err == nil {
		err = is.refuse
	}
	if err != nil {
		return nil, err
	}
	c.is.Store(is)
	c.Seats = seat.NewBook(t, s.Now, s.Log.With("project", slug), func() { Ring(c.told) })
	c.Keeper, err = store.Open(store.Config{
		Slug:   slug,
		Tree:   t,
		Mail:   reports(c),
		Limits: s.Limits,
		Log:    log,
		Now:    s.Now,
		Writer: writer.Config{
			Key:      s.Key.Seed(),
			Patience: s.Patience,
			Step:     s.Step,
			Observe:  s.Observe,
		},
		OpenHistory: s.OpenHistory,
	})
	return c, err
}

// NoteRemoved closes the channel that Gone returns. It must be called only once.
func (c *Mail) NoteRemoved() { close(c.removed) }

// Gone returns a channel that is closed when the project ends, either because its folder was removed or because the
// server must stop using it.
func (c *Mail) Gone() <-chan struct{} { return c.removed }

// Name returns the project's name for use in a sentence.
func (c *Mail) Name() string { return cmp.Or(c.HumanKey(), c.Slug) }

// Act writes an agent's operation. It returns ErrConflict if the agent belongs to another machine, unless the caller is
// a user. It returns ErrNotFound if the project is removed during the call, or any error from Refused or the writer.
func (c *Mail) Act(ctx context.Context, tx *writer.Tx) error { return c.actAs(ctx, tx.Agent, tx) }

// actAs is like Act, but for an operation whose agent is not known until the plan sets the agent.
func (c *Mail) actAs(ctx context.Context, agent string, tx *writer.Tx) error {
	if err := c.Refused(); err != nil {
		return err
	}
	if err := c.CheckMachine(ctx, agent); err != nil {
		return err
	}
	err := c.Writer.Do(ctx, tx)
	if errors.Is(err, writer.ErrStopped) && (c.Refused() != nil || c.IsRemoved()) {
		return c.WasRemoved()
	}
	return err
}

// Perform is like Act, but also records that the agent was active.
func (c *Mail) Perform(ctx context.Context, agent string, tx *writer.Tx) error {
	defer c.NoteSeen(ctx, agent)
	return c.actAs(ctx, agent, tx)
}

// CheckMachine returns an error if the caller is a program and the agent belongs to another machine.
func (c *Mail) CheckMachine(ctx context.Context, agent string) error {
	if door := format.DoorOf(ctx); door == format.DoorPage || door == format.DoorCLI {
		return nil
	}
	return c.NeedThisMachine(ctx, agent)
}

// IsRemoved reports whether the project's folder was removed or replaced by another folder. If the file system does not
// respond, it reports false.
func (c *Mail) IsRemoved() bool {
	fi, err := os.Lstat(c.Tree.Dir())
	return errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(fi, c.folder)
}

// WasRemoved returns the error for a call that failed because the project ended during the call. Either the project's
// folder was removed, or the server had to stop using the project (Refused).
func (c *Mail) WasRemoved() error {
	if err := c.Refused(); err != nil {
		return err
	}
	return &refusal.Error{What: refusal.NotFound("Project {name} was removed during the call."), Name: c.Name()}
}

// Ring wakes the goroutine that receives from bell, a channel with a buffer of one. Ring never blocks.
func Ring(bell chan struct{}) {
	select {
	case bell <- struct{}{}:
	default:
	}
}

// ClaimsFact is the entry in writer.Tx.Facts for operations that depend on claims.
const ClaimsFact = "claims"

// NameFact returns the entry in writer.Tx.Facts for operations that depend on an agent's name.
func NameFact(agent string) string { return "name " + strings.ToLower(agent) }

// MarkFact returns the entry in writer.Tx.Facts for operations that depend on the marks of an agent's deliveries.
func MarkFact(agent string) string { return "mark " + agent }

// KeyFact returns the entry in writer.Tx.Facts for operations that depend on a sender's idempotency key.
func KeyFact(from, key string) string { return "key " + from + "\n" + key }

// PersonProgram is the program name of users' agents.
const PersonProgram = "person"
