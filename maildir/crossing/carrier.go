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

// Carrier carries the messages of a store between its projects. It is safe for concurrent use.
type Carrier struct {
	store *core.Store
	bell  chan struct{} // wakes Run

	mu    sync.Mutex
	busy  map[string]chan struct{} // by message id: closed when the message is no longer being carried
	doubt map[string]bool          // ids of messages whose last Change may still take effect
	later map[string]bool          // ids of messages about which only the next start knows: see failed

	keeping int             // number of callers of Keep that have not ended
	kept    map[string]bool // paths of items that are only waiting for the end of Keep
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

// Poke makes Run look at all items soon.
func (c *Carrier) Poke() { core.Ring(c.bell) }

func (c *Carrier) itemsOf(slug string) *folder {
	return folderOf(c.store.Root, slug, c.store.Key.Seed())
}

// IsWaiting reports whether a message of the project from may not have reached the project to yet.
func (c *Carrier) IsWaiting(from, id, to string) bool {
	f := c.itemsOf(from)
	return f.has(id, to) && !c.isKept(f.fileOf(id, to))
}

// Waits returns the slugs of the projects that a message of the project from may not have reached yet. The message must
// list all of its bcc recipients.
func (c *Carrier) Waits(from *core.Mail, m *format.Message) []string {
	return slices.DeleteFunc(c.Targets(m), func(to string) bool { return !c.IsWaiting(from.Slug, m.ID, to) })
}

// hold waits until nobody else carries a message. The caller must then call release. It returns ctx's error.
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

// Targets returns the slugs of the other projects that a message has recipients in, sorted.
func (c *Carrier) Targets(m *format.Message) (slugs []string) {
	for _, name := range m.Recipients() {
		if p := c.store.PartyOf(name); p.Project != "" && !slices.Contains(slugs, p.Project) {
			slugs = append(slugs, p.Project)
		}
	}
	slices.Sort(slugs)
	return slugs
}

// item returns the item that carries a message of the project from to another project. The message must list all of its
// bcc recipients. The item names only those of the other project (Invariant I7).
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

// carryAll carries a message, which the caller holds, to several projects at once. It returns the projects that the
// message still waits for.
func (c *Carrier) carryAll(ctx context.Context, from *core.Mail, id string, to []string, has presence) (queued []string) {
	errs := make([]error, len(to))
	var all sync.WaitGroup
	for n, slug := range to {
		all.Go(func() { errs[n] = c.carry(ctx, from, id, slug, has) })
	}
	all.Wait()
	for n, slug := range to {
		if errs[n] != nil {
			c.store.Log.Debug("a message waits for another project", "project", from.Slug, "to", slug, "id", id, "error", errs[n])
			queued = append(queued, slug)
		}
	}
	if len(queued) > 0 {
		c.Poke()
	}
	return queued
}

// failed has Run look at the items of a message whose operation ended with an error. If the writer could not undo the
// operation, the next start may carry it out, so the items wait until then.
func (c *Carrier) failed(id string, err error) {
	var e *refusal.Error
	if errors.As(err, &e) && e.What == refusal.WriteUnsure {
		c.mu.Lock()
		c.later[id] = true
		c.mu.Unlock()
	}
	c.Poke()
}

// presence says whether the project from has a message of its own, according to the tree of that project.
type presence func(ctx context.Context, from *core.Mail, i *Item) (bool, error)

// carry makes another project agree with the sender's tree about a message, and removes the item. The caller holds the
// message. An error means that the item still waits.
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

// save durably writes an item.
func (c *Carrier) save(i *Item) error {
	c.step("keep " + i.Message)
	return c.itemsOf(i.From).saveItem(i)
}

// step informs a fault test which step the carrier has reached.
func (c *Carrier) step(name string) {
	if f := c.store.Step; f != nil {
		f(name)
	}
}

// errNotOpen means that a project is not open yet.
var errNotOpen = errors.New("the project is not open")

// hasNow reports that the project has a message that was just sent. If a Change of the message is in doubt, it asks the
// writer.
func (c *Carrier) hasNow(ctx context.Context, from *core.Mail, i *Item) (bool, error) {
	c.mu.Lock()
	doubt := c.doubt[i.Message]
	c.mu.Unlock()
	if doubt {
		return c.hasFor(ctx, from, i)
	}
	return true, nil
}

// hasFor asks the writer of the project from whether the project has a message, in the canonical file or in the
// sender's copy. The answer is given in a group of its own, so every earlier operation on the message has ended.
func (c *Carrier) hasFor(ctx context.Context, from *core.Mail, i *Item) (bool, error) {
	if from.History.State().Mode == history.Detached { // another branch may lack the message
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

// needAbsent returns Group.Behind if the canonical file of an item's message exists although the index lacks it.
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

// errAway means that another branch than the mail's is checked out in the sender's tree.
var errAway = errors.New("another branch is checked out")

// Change performs an operation that removes or restores a message which an agent of the project from sent: do. If the
// operation succeeds, the other projects then get or lose their copies. Change returns the projects that do not agree
// with the sender's tree yet. The message m must list all of its bcc recipients. Change returns errors from do, ctx's
// error, and errors from writing the items, in which case do was not called.
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
