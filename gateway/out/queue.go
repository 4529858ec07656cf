package out

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"mailtree/gateway/message"
	"mailtree/maildir/outgoing"
	"mailtree/maildir/refusal"
)

// The wait between attempts starts at firstWait and doubles after each attempt, up to longestWait. Once the message is
// older than tooOld, there are no more attempts.
const (
	firstWait   = 5 * time.Minute
	longestWait = 4 * time.Hour
	tooOld      = 5 * 24 * time.Hour
	maxParallel = 8 // maximum number of concurrent deliveries
	maxToDomain = 2 // maximum number of concurrent deliveries to one domain, so that slow servers do not block mail to other domains
)

// Store keeps the queue's items. The Queue calls it from one goroutine at a time.
type Store interface {
	// Open returns the items that are not finished.
	Open(ctx context.Context) ([]outgoing.Item, error)
	// Find returns the items of the message with the given Message-ID.
	Find(ctx context.Context, messageID string) ([]outgoing.Item, error)
	// Get returns the item with the given id, or ErrNoItem.
	Get(ctx context.Context, id string) (outgoing.Item, error)
	// Save saves an item. It returns once the item is durable.
	Save(ctx context.Context, i outgoing.Item) error
	// Raw returns the signed email of an item. It returns ErrTakenBack if the message no longer exists, and a *Refusal
	// if the message cannot be composed.
	Raw(ctx context.Context, i outgoing.Item) ([]byte, error)
	// Report notifies the sender, in the message's thread, that the given items failed or have an unknown outcome. If
	// the server stops before all items have been saved as reported, Report is called again for the remaining items. In
	// that case, Report must not notify the sender again. Report can recognize the case by the item with the highest
	// id, which is always among the remaining items.
	Report(ctx context.Context, items []outgoing.Item) error
}

// errStore wraps errors from the store, so that deliver can distinguish them from errors from the Transport.
var errStore = errors.New("local error")

// ErrNoItem means that the queue does not contain the item.
var ErrNoItem = errors.New("no such item in the queue")

// ErrTakenBack means that the item's message was withdrawn or deleted, or that its project no longer exists. The
// message is not sent, and no one is notified.
var ErrTakenBack = errors.New("the message was withdrawn or deleted before it was sent. If you restored it, send it " +
	"again: a restored message is not sent automatically")

// Queue sends the items in its store.
type Queue struct {
	store     Store
	transport Transport
	now       func() time.Time
	log       *slog.Logger

	mu     sync.Mutex        // guards store and active
	active map[string]string // the domain of each item that is being delivered, by item id
	wg     sync.WaitGroup
	wake   chan struct{}
}

// NewQueue returns a queue without starting it.
func NewQueue(store Store, transport Transport, now func() time.Time, log *slog.Logger) *Queue {
	return &Queue{store: store, transport: transport, now: now, log: log, active: map[string]string{}, wake: make(chan struct{}, 1)}
}

// Wake notifies Run that an item has been added to the store. It does not block.
func (q *Queue) Wake() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// Run sends mail until ctx is done. It returns once no delivery is in progress.
func (q *Queue) Run(ctx context.Context) {
	defer q.wg.Wait()
	for {
		next, err := q.pass(ctx)
		if err != nil && ctx.Err() == nil {
			q.log.Error("cannot read the outgoing mail queue", "error", err)
		}
		wait := time.NewTimer(min(max(next.Sub(q.now()), time.Second), time.Minute))
		select {
		case <-ctx.Done():
			wait.Stop()
			return
		case <-q.wake:
		case <-wait.C:
		}
		wait.Stop()
	}
}

// pass examines all unfinished items. It starts to deliver items that are due. It marks items as unknown if an earlier
// server stopped while it was sending them. It also reports failed items. It returns the time by which it must be
// called again.
func (q *Queue) pass(ctx context.Context) (next time.Time, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	next = q.now().Add(time.Minute)
	items, err := q.store.Open(ctx)
	if err != nil {
		return next, err
	}
	messages := map[string][]outgoing.Item{}
	for _, i := range items {
		switch {
		case q.active[i.ID] != "":
		case i.State == outgoing.Sending:
			i.State, i.Reply = outgoing.Unknown, "the server stopped before the remote server replied, so the message "+
				"may have been accepted"
			err = errors.Join(err, q.store.Save(ctx, i))
		case i.State != outgoing.Queued && i.State != outgoing.Deferred:
		case waits(&i, q.now()):
			if i.Next.Before(next) {
				next = i.Next
			}
		case len(q.active) < maxParallel && q.under(i.Domain()) < maxToDomain:
			q.active[i.ID] = i.Domain()
			q.wg.Go(func() { q.deliver(ctx, i) })
		}
		messages[i.Message] = append(messages[i.Message], i)
	}
	for _, all := range messages {
		err = errors.Join(err, q.report(ctx, all))
	}
	return next, err
}

// waits reports whether an item is not due yet. If the remaining wait is longer than the pause after the last attempt,
// the item was saved while the clock was ahead. Such an item is due immediately.
func waits(i *outgoing.Item, now time.Time) bool {
	left := i.Next.Sub(now)
	return left > 0 && left <= pause(i.Attempts)
}

// pause returns how long an item waits after the given number of attempts.
func pause(attempts int) time.Duration {
	if attempts == 0 {
		return 0
	}
	return min(firstWait<<min(attempts-1, 10), longestWait)
}

// under returns the number of deliveries in progress to a domain.
func (q *Queue) under(domain string) (n int) {
	for _, d := range q.active {
		if d == domain {
			n++
		}
	}
	return n
}

// report notifies a message's sender about failed and unknown recipients once every recipient has been tried. It does
// not wait for recipients that will be tried again. Their results are reported later. The items are saved in order of
// their ids. If the server is killed before all are saved, at least the item with the highest id is still unreported.
// Report uses this item to recognize that it has already sent the notice.
func (q *Queue) report(ctx context.Context, items []outgoing.Item) error {
	var ends []outgoing.Item
	for _, i := range items {
		switch {
		case i.State == outgoing.Queued || i.State == outgoing.Sending:
			return nil
		case !i.Pending() && !i.Ended():
			ends = append(ends, i)
		}
	}
	if len(ends) == 0 {
		return nil
	}
	if err := q.store.Report(ctx, ends); err != nil {
		return err
	}
	slices.SortFunc(ends, func(a, b outgoing.Item) int { return strings.Compare(a.ID, b.ID) })
	for _, i := range ends {
		i.Reported = true
		if err := q.store.Save(ctx, i); err != nil {
			return err
		}
	}
	return nil
}

// deliver tries to send one item and saves the result. If saving fails, the item keeps its earlier state in the
// store. If that state is Sending, the item becomes Unknown later.
func (q *Queue) deliver(ctx context.Context, i outgoing.Item) {
	reply, err := q.attempt(ctx, &i)
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.active, i.ID)
	if errors.Is(err, errStore) { // the queue tries the store again after a pause
		q.log.Error("failed to send mail", "to", i.To, "error", err)
		return
	}
	defer q.Wake()
	if ctx.Err() != nil && err != nil && i.State != outgoing.Sending {
		return // the queue stopped before the message was sent, so the item is still due
	}
	settle(&i, reply, err, q.now())
	if err := q.store.Save(context.WithoutCancel(ctx), i); err != nil {
		q.log.Error("cannot save the delivery status of an email", "to", i.To, "state", i.State, "error", err)
	}
}

// attempt delivers an item through the transport. Just before the end of the message is sent, attempt saves the item
// as Sending.
func (q *Queue) attempt(ctx context.Context, i *outgoing.Item) (reply string, err error) {
	q.mu.Lock()
	raw, err := q.store.Raw(ctx, *i)
	q.mu.Unlock()
	var refusal *Refusal
	if errors.As(err, &refusal) || errors.Is(err, ErrTakenBack) {
		return "", err
	}
	if err != nil {
		return "", fmt.Errorf("%w: %w", errStore, err)
	}
	return q.transport.Deliver(ctx, i, raw, func() error {
		q.mu.Lock()
		defer q.mu.Unlock()
		sending := *i
		sending.State = outgoing.Sending
		if err := q.store.Save(ctx, sending); err != nil {
			return fmt.Errorf("%w: %w", errStore, err)
		}
		*i = sending
		return nil
	})
}

// settle sets an item's state after an attempt.
func settle(i *outgoing.Item, reply string, err error, now time.Time) {
	i.Attempts++
	wait := pause(i.Attempts)
	var refusal *Refusal
	switch {
	case err == nil:
		i.State, i.Reply = outgoing.Sent, reply
	case errors.Is(err, ErrTakenBack):
		i.State, i.Reply, i.Reported = outgoing.Failed, err.Error(), true
	case errors.Is(err, ErrUnanswered):
		i.State, i.Reply = outgoing.Unknown, err.Error()
	case errors.As(err, &refusal):
		i.State, i.Reply = outgoing.Failed, refusal.Reply
	case now.Add(wait).After(i.Queued.Add(tooOld)):
		i.State, i.Reply = outgoing.Failed, "gave up after five days: "+err.Error()
	default:
		i.State, i.Reply, i.Next = outgoing.Deferred, err.Error(), now.Add(wait)
	}
}

// Bounce marks items as Failed if a delivery status report lists them as failed. The caller must have checked that the
// report came from the null sender. Reports about unknown items are ignored.
func (q *Queue) Bounce(ctx context.Context, b *message.Bounce) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if b.MessageID == "" {
		return nil
	}
	items, err := q.store.Find(ctx, b.MessageID)
	if err != nil {
		return err
	}
	for _, i := range items {
		for _, r := range b.Recipients {
			if r.Action != "failed" || !strings.EqualFold(r.Address, i.To) || i.State != outgoing.Sent && i.State != outgoing.Unknown {
				continue
			}
			i.State, i.Reported = outgoing.Failed, true // the bounce itself appears in the thread
			i.Reply = strings.TrimSpace(r.Status + " " + r.Diagnostic)
			if err := q.store.Save(ctx, i); err != nil {
				return err
			}
		}
	}
	return nil
}

// List returns the items that are not finished.
func (q *Queue) List(ctx context.Context) ([]outgoing.Item, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.store.Open(ctx)
}

// Retry queues a failed, unknown or waiting item again, as if it were new. Retry is called at the user's request. It
// returns the same errors as alter.
func (q *Queue) Retry(ctx context.Context, id string) error {
	defer q.Wake()
	return q.alter(ctx, id, func(i *outgoing.Item) {
		i.State, i.Reported, i.Attempts, i.Queued, i.Next = outgoing.Queued, false, 0, q.now(), q.now()
	})
}

// Drop stops all attempts to send a waiting item. It returns the same errors as alter.
func (q *Queue) Drop(ctx context.Context, id string) error {
	return q.alter(ctx, id, func(i *outgoing.Item) {
		if i.Pending() {
			i.State, i.Reply = outgoing.Failed, "dropped by a user; last reply or error: "+i.Reply
		}
		i.Reported = true
	})
}

// alter changes an item. If there is no item with that id, it returns ErrNotFound. If the item was sent or is being
// sent, it returns ErrConflict. It also returns any error from the store.
func (q *Queue) alter(ctx context.Context, id string, to func(*outgoing.Item)) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	i, err := q.store.Get(ctx, id)
	switch {
	case errors.Is(err, ErrNoItem):
		return &refusal.Error{What: refusal.NotFound("No queued email {name}. Run `mailtree gateway queue` to list the queue."), Name: id}
	case err != nil:
		return err
	case i.State == outgoing.Sent:
		return &refusal.Error{What: refusal.Conflict("The email {name} was already sent."), Name: id}
	case q.active[id] != "" || i.State == outgoing.Sending:
		return &refusal.Error{What: refusal.Conflict("The email {name} is being sent right now. Try again when the attempt has finished."), Name: id}
	}
	to(&i)
	return q.store.Save(ctx, i)
}
