package crossing

import (
	"context"
	"errors"
	"slices"
	"sync"

	"mailtree/maildir/core"
	"mailtree/maildir/format"
	"mailtree/maildir/history"
	"mailtree/maildir/refusal"
	"mailtree/maildir/writer"
)

// Carrier delivers messages from one project of a store to another. It is safe for concurrent use.
type Carrier struct {
	store *core.Store
	bell  chan struct{} // wakes Run

	mu    sync.Mutex
	busy  map[string]chan struct{} // by message id: closed when the message is no longer being carried
	doubt map[string]bool          // ids of messages whose last Change may still take effect
	later map[string]bool          // ids of messages whose outcome is unknown until the next start (see failed)

	keeping int             // number of Keep calls whose done function has not been called yet
	kept    map[string]bool // paths of finished items that are removed when Keep ends
}

// New returns the carrier of a store.
func New(store *core.Store) *Carrier {
	return &Carrier{
		store: store,
		bell:  make(chan struct{}, 1),
		busy:  map[string]chan struct{}{},
		doubt: map[string]bool{},
		later: map[string]bool{},
		kept:  map[string]bool{},
	}
}

// Poke makes Run check all items soon.
func (c *Carrier) Poke() { core.Ring(c.bell) }

func (c *Carrier) itemsOf(slug string) *folder {
	return folderOf(c.store.Root, slug, c.store.Key.Seed())
}

// IsWaiting reports whether a message from the project "from" may still have to be carried to the project "to".
func (c *Carrier) IsWaiting(from, id, to string) bool {
	f := c.itemsOf(from)
	return f.has(id, to) && !c.isKept(f.fileOf(id, to))
}

// Waits returns the slugs of the projects that m, a message from the project "from", may not have reached yet. m must
// list all of its bcc recipients.
func (c *Carrier) Waits(from *core.Mail, m *format.Message) []string {
	return slices.DeleteFunc(c.Targets(m), func(to string) bool { return !c.IsWaiting(from.Slug, m.ID, to) })
}

// hold waits until no other goroutine is carrying the message with the given id, and then reserves the message for the
// caller. The caller must call release afterwards. If ctx is canceled first, hold returns ctx's error.
func (c *Carrier) hold(ctx context.Context, id string) (release func(), err error) {
	for {
		c.mu.Lock()
		other := c.busy[id]
		if other == nil {
			done := make(chan struct{})
			c.busy[id] = done
			c.mu.Unlock()
			return func() {
				c.mu.Lock()
				defer c.mu.Unlock()
				delete(c.busy, id)
				close(done)
			}, nil
		}
		c.mu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// Targets returns the slugs of the other projects in which a message has recipients, sorted.
func (c *Carrier) Targets(m *format.Message) (slugs []string) {
	for _, name := range m.Recipients() {
		if p := c.store.PartyOf(name); p.Project != "" && !slices.Contains(slugs, p.Project) {
			slugs = append(slugs, p.Project)
		}
	}
	slices.Sort(slugs)
	return slugs
}

// item returns the item that carries m, a message from the project "from", to another project. m must list all of its
// bcc recipients. The item names only the bcc recipients in the other project (Invariant I7).
func (c *Carrier) item(from *core.Mail, m *format.Message, to string) (*Item, error) {
	own := *m
	own.From, own.To, own.CC, own.BCC = from.SeenFrom(to, m.From), seen(from, to, m.To), seen(from, to, m.CC), nil
	own.Project = to
	if other := c.store.Projects.Mail(to); other != nil {
		own.Project = other.Name()
	}
	i := &Item{From: from.Slug, To: to, Message: m.ID, Queued: c.store.Now().UTC()}
	for _, name := range m.BCC {
		if p := c.store.PartyOf(name); p.Project == to {
			i.BCC = append(i.BCC, p.Name)
		}
	}
	file := format.FormatMessage(&own)
	i.File = string(file)
	if len(i.BCC) > 0 {
		own.BCC = i.BCC[:1]
		file = format.FormatMessage(&own)
	}
	return i, from.CheckSize(format.Seal(c.store.Key, file))
}

func seen(from *core.Mail, slug string, names []string) (all []string) {
	for _, name := range names {
		all = append(all, from.SeenFrom(slug, name))
	}
	return all
}

// carryAll carries a message to several projects concurrently. The caller must have reserved the message with hold.
// carryAll returns the projects that the message has not reached.
func (c *Carrier) carryAll(ctx context.Context, from *core.Mail, id string, to []string, has presence) (queued []string) {
	errs := make([]error, len(to))
	var all sync.WaitGroup
	for n, slug := range to {
		all.Go(func() { errs[n] = c.carry(ctx, from, id, slug, has) })
	}
	all.Wait()
	for n, slug := range to {
		if errs[n] != nil {
			c.store.Log.Debug("a message to another project is still queued", "project", from.Slug, "to", slug, "id", id, "error", errs[n])
			queued = append(queued, slug)
		}
	}
	if len(queued) > 0 {
		c.Poke()
	}
	return queued
}

// failed makes Run check the items of a message whose operation ended with an error. If the writer could not undo the
// operation, the next start of the server may complete it, so the items wait until then.
func (c *Carrier) failed(id string, err error) {
	var e *refusal.Error
	if errors.As(err, &e) && e.What == refusal.WriteUnsure {
		c.mu.Lock()
		c.later[id] = true
		c.mu.Unlock()
	}
	c.Poke()
}

// presence is a function that reports whether the tree of the sender's project contains an item's message.
type presence func(ctx context.Context, from *core.Mail, i *Item) (bool, error)

// carry writes or removes a message's copies in another project, so that they agree with the sender's tree, and then
// removes the item. The caller must have reserved the message with hold. If carry returns an error, the item remains.
func (c *Carrier) carry(ctx context.Context, from *core.Mail, id, to string, has presence) error {
	f := c.itemsOf(from.Slug)
	i, err := f.loadItem(name(id, to))
	if err != nil || i == nil {
		return err
	}
	is, err := has(ctx, from, i)
	if err != nil {
		return err
	}
	other := c.store.Projects.Mail(to)
	switch {
	case other == nil && c.store.IsGone(to):
		if is {
			err = c.tellGone(ctx, from, i)
		}
	case other == nil:
		err = c.store.Projects.LeftOut()[to]
		if err == nil {
			err = errNotOpen
		}
	case is:
		err = c.deliver(ctx, from, other, i)
	default:
		err = c.withdraw(ctx, other, i)
	}
	if err != nil {
		return err
	}
	return c.finish(f, id, to)
}

// finish removes an item, unless a caller of Keep needs it.
func (c *Carrier) finish(f *folder, id, to string) error {
	c.mu.Lock()
	keep := c.keeping > 0
	if keep {
		c.kept[f.fileOf(id, to)] = true
	}
	c.mu.Unlock()
	if keep {
		return nil
	}
	c.step("forget " + id)
	return f.removeItem(id, to)
}

func (c *Carrier) save(i *Item) error {
	c.step("keep " + i.Message)
	return c.itemsOf(i.From).saveItem(i)
}

// step tells a fault test which step the carrier has reached.
func (c *Carrier) step(name string) {
	if f := c.store.Step; f != nil {
		f(name)
	}
}

var errNotOpen = errors.New("the project is not open")

// hasNow is the presence function for a message that was just sent. It returns true, unless an earlier Change of the
// message may still take effect. In that case, it calls hasFor.
func (c *Carrier) hasNow(ctx context.Context, from *core.Mail, i *Item) (bool, error) {
	c.mu.Lock()
	doubt := c.doubt[i.Message]
	c.mu.Unlock()
	if doubt {
		return c.hasFor(ctx, from, i)
	}
	return true, nil
}

// hasFor is the presence function that asks the writer of the sender's project whether the canonical file or the
// sender's copy exists. The writer runs the check in a group of its own, so every earlier operation on the message
// has ended.
func (c *Carrier) hasFor(ctx context.Context, from *core.Mail, i *Item) (bool, error) {
	if from.History.State().Mode == history.Detached { // another branch may not contain the message
		return false, errAway
	}
	is := false
	tx := &writer.Tx{Op: writer.Op{Verb: verb, ID: i.Message}, Alone: true, Sure: true}
	tx.Plan = func(g *writer.Group) error {
		files, err := c.store.Index.Files(g.Ctx, from.Slug, i.Message)
		if err != nil {
			return err
		}
		is = slices.ContainsFunc(files, func(path string) bool {
			kind := format.Locate(path).Kind
			return kind == format.KindCanonical || kind == format.KindOutbox
		})
		if is {
			return nil
		}
		return c.needAbsent(g, i)
	}
	if err := from.Writer.Do(ctx, tx); err != nil {
		return false, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.doubt, i.Message)
	return is, nil
}

// needAbsent returns the error from Group.Behind if the canonical file of an item's message exists but is not in the
// index.
func (c *Carrier) needAbsent(g *writer.Group, i *Item) error {
	m, err := format.ParseMessage(i.Message, []byte(i.File))
	if err != nil {
		return nil
	}
	path := format.CanonicalPath(m.ID, m.Created)
	if _, err := g.Stat(path); err == nil {
		return g.Behind(path)
	}
	return nil
}

// errAway means that the branch of the mail is not checked out in the sender's tree.
var errAway = errors.New("another branch is checked out")

// Change calls do, an operation that removes or restores the message m in its sender's project, "from". If do succeeds,
// Change then removes or restores the copies in the other projects. It returns the projects that do not agree with the
// sender's tree yet. m must list all of its bcc recipients. Change returns any error from do or ctx. If the items
// cannot be written, it returns that error and does not call do.
func (c *Carrier) Change(ctx context.Context, from *core.Mail, m *format.Message, do func() error) (queued []string, err error) {
	to := c.Targets(m)
	if len(to) == 0 {
		return nil, do()
	}
	release, err := c.hold(ctx, m.ID)
	if err != nil {
		return nil, err
	}
	defer release()
	for _, slug := range to {
		i, err := c.item(from, m, slug)
		if f := c.itemsOf(from.Slug); err == nil {
			c.mu.Lock()
			delete(c.kept, f.fileOf(m.ID, slug))
			c.mu.Unlock()
			err = c.save(i)
		}
		if err != nil {
			c.Poke()
			return nil, refusal.Disk(err)
		}
	}
	c.mu.Lock()
	c.doubt[m.ID] = true
	c.mu.Unlock()
	if err := do(); err != nil {
		c.failed(m.ID, err)
		return nil, err
	}
	return c.carryAll(ctx, from, m.ID, to, c.hasFor), nil
}
