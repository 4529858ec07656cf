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
	"time"

	"mailtree/maildir/format"
	"mailtree/maildir/refusal"
	"mailtree/maildir/seat"
	"mailtree/maildir/store"
	"mailtree/maildir/storedir"
	"mailtree/maildir/writer"
)

// Mail is what all verbs of a project share: the kept tree, who its agents are, what a message or a mark writes, and
// how a name that nothing has is refused. It knows none of the verbs. It is safe for concurrent use.
type Mail struct {
	*store.Keeper
	Store   *Store
	Human   string
	made    time.Time
	folder  os.FileInfo   // of the tree when the project was opened
	Removed chan struct{} // closed when the project is found to be removed

	Synced  atomic.Bool // the mail is shared with other machines
	Days    dayFolders
	advised adviceCount
	Seats   *seat.Book

	mu      sync.Mutex
	agents  map[string]bool // names known to exist
	left    uint64          // how many times names were removed from agents
	seen    map[string]*sighting
	sighted chan struct{} // wakes KeepNotes
	told    chan struct{} // wakes KeepNotes
}

// Open opens the tree of a project and recovers it. It calls mail, which returns what the keeper reports to, before
// anything can be reported. It returns fs.ErrNotExist if there is no repo folder.
func Open(s *Store, slug string, mail func(c *Mail) store.Mail) (*Mail, error) {
	dir := storedir.Repo(s.Root, slug)
	fi, err := os.Lstat(dir)
	if err != nil {
		return nil, err
	}
	if !fi.IsDir() {
		return nil, &Error{What: refusal.Invalid("{=other} is not a folder."), Other: dir}
	}
	t, err := storedir.OpenTree(s.Root, slug, s.MaxFile)
	if err != nil {
		return nil, err
	}
	t.Fail = s.Fail
	defer t.Close() // from now on the tree is open only while it is used
	log := s.Log.With("project", slug)
	c := &Mail{
		Store:   s,
		folder:  fi,
		Removed: make(chan struct{}),
		agents:  map[string]bool{},
		seen:    map[string]*sighting{},
		sighted: make(chan struct{}, 1),
		told:    make(chan struct{}, 1),
	}
	shared, err := storedir.LoadShared(s.Root, slug)
	if err != nil {
		log.Error("the project is not shared with other machines: the file that says so cannot be read", "error", err)
	}
	c.Synced.Store(shared.On)
	c.Seats = seat.NewBook(t, s.Now, s.Log.With("project", slug), func() { Ring(c.told) })
	if data, _, err := t.Read(format.ProjectFile, format.MaxSmall); err == nil {
		if c.Human, c.made, err = format.ParseProject(data); err != nil {
			log.Warn("project.json is not valid; the project is known by its slug only", "error", err)
		}
	}
	c.Human = cmp.Or(shared.Key, c.Human)
	c.Keeper, err = store.Open(store.Config{
		Slug:   slug,
		Tree:   t,
		Mail:   mail(c),
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

// Gone returns a channel that is closed when the project is found to be removed.
func (c *Mail) Gone() <-chan struct{} { return c.Removed }

// IsShared reports whether the project's mail is shared with other machines.
func (c *Mail) IsShared() bool { return c.Synced.Load() }

// Name returns the project's name for sentences.
func (c *Mail) Name() string {
	if c.Human != "" {
		return c.Human
	}
	return c.Slug
}

// HumanKey returns the absolute path that names the project; "" if project.json does not say.
func (c *Mail) HumanKey() string { return c.Human }

// Created returns when the project was made; zero if project.json does not say.
func (c *Mail) Created() time.Time { return c.made }

// Act writes an operation of an agent. It returns ErrConflict for an agent of another machine, unless a person
// acts, ErrNotFound if the project is removed meanwhile, and the errors of the writer.
func (c *Mail) Act(ctx context.Context, tx *writer.Tx) error {
	if err := c.MayAct(ctx, tx.Agent); err != nil {
		return err
	}
	err := c.Writer.Do(ctx, tx)
	if errors.Is(err, writer.ErrStopped) && c.IsRemoved() {
		return c.WasRemoved()
	}
	return err
}

// Perform is Act, and notes that the agent was active.
func (c *Mail) Perform(ctx context.Context, agent string, tx *writer.Tx) error {
	defer c.NoteSeen(ctx, agent)
	return c.Act(ctx, tx)
}

// MayAct refuses a program that would act as an agent of another machine.
func (c *Mail) MayAct(ctx context.Context, agent string) error {
	if door := format.DoorOf(ctx); door == format.DoorPage || door == format.DoorCLI {
		return nil
	}
	return c.NeedOurs(ctx, agent)
}

// IsRemoved reports whether the project's folder is gone or was replaced by another folder. If the machine
// cannot tell, it reports false.
func (c *Mail) IsRemoved() bool {
	fi, err := os.Lstat(c.Tree.Dir())
	return errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(fi, c.folder)
}

// WasRemoved refuses a call that was under way when the project's folder was removed.
func (c *Mail) WasRemoved() error {
	return &Error{What: refusal.NotFound("The mail of project {name} was removed while the call waited."), Name: c.Name()}
}

// Ring wakes the goroutine that receives from bell, a channel with room for one value. It never waits.
func Ring(bell chan struct{}) {
	select {
	case bell <- struct{}{}:
	default:
	}
}

// Facts that operations of the mail decide on (writer.Tx.Facts).
const ClaimsFact = "claims"

func NameFact(agent string) string { return "name " + strings.ToLower(agent) }

func MarkFact(agent string) string { return "mark " + agent }

func KeyFact(from, key string) string { return "key " + from + "\n" + key }

// PersonProgram is the program name of agents that are people.
const PersonProgram = "person"
