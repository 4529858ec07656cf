package maildir

import (
	"context"
	"errors"
	"time"

	"mailtree/maildir/core"
	"mailtree/maildir/format"
	"mailtree/maildir/index"
	"mailtree/maildir/refusal"
	"mailtree/maildir/writer"
)

// Pop returns the oldest unread delivery and durably marks it as read. It returns nil if there is none. It never
// returns the same delivery twice, not even to callers in different processes, because only one process can create the
// mark. It returns ErrNotFound if the agent does not exist. See docs/reference/tools.md, "Reading".
func (b *Box) Pop(ctx context.Context) (*index.Delivery, error) {
	return b.popWithin(ctx, nil)
}

// PopWait is like Pop, but waits if there is no unread delivery. It returns as soon as it has a delivery, or nil when
// the wait ends. If ctx ends first, it returns ctx's error, and pops nothing unless a pop was already in progress. If
// several callers wait for the same agent's mail, each delivery is returned to only one of them. The delivery
// contains as much of its body as fits into room, or all of it if room is nil. It returns any error from Pop, w.Admit
// or room.Reserve. See docs/reference/tools.md, "Reading".
func (b *Box) PopWait(ctx context.Context, w Waiting, room *index.Room) (d *index.Delivery, err error) {
	if err := b.p.mail.NeedAgent(ctx, refusal.Agent, b.agent); err != nil {
		return nil, err
	}
	err = b.await(ctx, w, room, func() (bool, error) {
		d, err = b.popWithin(ctx, room)
		return d != nil, err
	})
	return d, err
}

// errNoRoom ends the plan of a pop that must reserve room before it can continue. At that point, the pop has not
// marked any delivery.
var errNoRoom = errors.New("not enough space is reserved for the body")

// popWithin is like Pop, but returns only as much of the body as fits into room.
func (b *Box) popWithin(ctx context.Context, room *index.Room) (got *index.Delivery, err error) {
	defer b.p.mail.NoteSeen(ctx, b.agent)
	err = room.Attempt(ctx, func() error {
		got, err = b.popOnce(ctx, room)
		if errors.Is(err, errNoRoom) {
			return nil // Attempt reserves room and tries again
		}
		return err
	})
	return got, err
}

func (b *Box) popOnce(ctx context.Context, room *index.Room) (*index.Delivery, error) {
	var got *index.Delivery
	tx := &writer.Tx{Op: writer.Op{Verb: "pop", Agent: b.agent}}
	tx.Plan = func(g *writer.Group) error {
		got = nil
		if err := b.p.mail.NeedAgent(g.Ctx, refusal.Agent, b.agent); err != nil {
			return err
		}
		d, err := b.p.pops.poppable(g, b.agent)
		if err != nil || d == nil {
			return err
		}
		if d, err = b.p.pops.read(g, d, room); err != nil {
			return err
		}
		d.Read, d.ReadAt = true, format.At(g.Now.Truncate(time.Microsecond))
		got, tx.ID, tx.Summary = d, d.ID, b.agent+" "+d.ID
		tx.Waited = max(0, g.Now.Sub(d.Created))
		tx.Create(format.ReadMark(d.CopyPath), format.FormatMark(g.Now))
		return nil
	}
	if err := b.p.mail.Act(ctx, tx); err != nil {
		return nil, err
	}
	return got, nil
}

// read reads the delivery to pop, with as much of its body as fits into room. The delivery is marked only afterward,
// so that it is not lost if it cannot be read. It returns errNoRoom, Group.Behind's error, and errors from the index.
func (k *pops) read(g *writer.Group, d *index.Delivery, room *index.Room) (*index.Delivery, error) {
	room.Empty() // release the room that an earlier plan of this pop reserved
	whole, err := k.mail.Store.Index.Delivery(g.Ctx, k.mail.Slug, d.Agent, d.ID, index.WithBody, room)
	switch {
	case err != nil:
		return nil, err
	case whole == nil:
		return nil, g.Behind(d.CopyPath)
	case room.MayGrow():
		k.next[d.Agent]-- // allow another pop to use this delivery
		return nil, errNoRoom
	}
	return whole, nil
}

// poppable returns the oldest unread delivery that exists on disk, can be marked, and has not been selected by another
// pop in the same group.
func (k *pops) poppable(g *writer.Group, agent string) (*index.Delivery, error) {
	for {
		d, err := k.oldest(g, agent)
		if err != nil || d == nil {
			return nil, err
		}
		mark := format.ReadMark(d.CopyPath)
		if g.Writes(mark) {
			continue
		}
		if err := g.Present(d.CopyPath); err != nil {
			return nil, err
		}
		if err := k.mail.FreeFor(g, mark); !errors.Is(err, ErrConflict) {
			return d, err
		}
	}
}

// oldest returns the agent's oldest unread delivery that it has not already returned for the same group, or nil if
// there is none.
func (k *pops) oldest(g *writer.Group, agent string) (*index.Delivery, error) {
	if k.group != g.Number {
		*k = pops{mail: k.mail, group: g.Number, unread: map[string][]index.Delivery{}, next: map[string]int{}}
	}
	n := k.next[agent]
	if n == len(k.unread[agent]) { // read more rows, if there are any
		rows, err := k.mail.Store.Index.OldestUnread(g.Ctx, k.mail.Slug, agent, 1+8*n)
		if err != nil || len(rows) <= n {
			return nil, err
		}
		k.unread[agent] = rows
	}
	k.next[agent]++
	return &k.unread[agent][n], nil
}

// pops caches the unread deliveries that the pops of one group have read from the index. This is safe because inboxes
// do not change while a group is planned. Only plans use the cache, and all plans of a project run in one goroutine.
type pops struct {
	mail   *core.Mail
	group  uint64                      // the group's number
	unread map[string][]index.Delivery // the oldest unread deliveries, by agent
	next   map[string]int              // index of the first untried delivery, by agent
}
