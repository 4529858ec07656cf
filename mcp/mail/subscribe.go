package mail

import (
	"context"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mailtree/maildir/format"
	"mailtree/maildir/index"
	"mailtree/maildir/refusal"
	"mailtree/mcp/tool"
)

// The same two handlers serve the subscriptions of both protocol eras. In the older era, a session calls
// resources/subscribe. In the newer era, a client calls subscriptions/listen. The SDK then calls subscribe when the
// stream opens, and unsubscribe when the stream ends. If a session of the older era ends without unsubscribing, the SDK
// calls neither handler. The toolset therefore records the sessions, and before each use checks which of them still
// exist.

// maxSubscriptions is the maximum number of subscribed URIs in all sessions together.
const maxSubscriptions = 10000

// subscription is a subscribed URI with its subscribers.
type subscription struct {
	ref      ref
	slug     string // slug of ref.project; "" if the URI does not specify a project or the project does not exist yet
	sessions map[*mcp.ServerSession]int
	sending  bool // a goroutine is notifying the subscribers
	again    bool // more changes arrived while sending, so the subscribers must be notified again
}

func (t *Toolset) subscribe(ctx context.Context, req *mcp.SubscribeRequest) error {
	uri := req.Params.URI
	if uri == skillURI {
		return nil // the skill never changes while the server runs
	}
	r, err := parseRef(uri)
	if err != nil {
		return t.resourceError(ctx, uri, req.ProtocolVersion(), err)
	}
	if _, err := t.start(ctx); err != nil {
		return t.resourceError(ctx, uri, req.ProtocolVersion(), err)
	}
	if named := r; t.store != nil {
		if _, err := t.locate(ctx, &named); err == nil {
			r.name = named.name // otherwise keep the name as given; it may not exist yet
		}
	}
	if err := t.enterSubscription(ctx, req, r); err != nil {
		return err
	}
	// Look up the slug after adding the subscriber. If another request creates the project meanwhile, either this call
	// finds it, or resolve does at the project's first change.
	t.settleSubscription(uri, t.slug(ctx, r))
	return nil
}

// enterSubscription adds a subscriber.
func (t *Toolset) enterSubscription(ctx context.Context, req *mcp.SubscribeRequest, r ref) error {
	uri := req.Params.URI
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.subs[uri]
	if s == nil {
		if len(t.subs) >= maxSubscriptions {
			t.sweep()
		}
		if len(t.subs) >= maxSubscriptions {
			return t.resourceError(ctx, uri, req.ProtocolVersion(), tool.Refused(refusal.ErrUnavailable,
				"There are too many subscriptions: unsubscribe from some, or read the resource when you need it."))
		}
		s = &subscription{ref: r, sessions: map[*mcp.ServerSession]int{}}
		t.subs[uri] = s
	}
	s.sessions[req.Session]++
	return nil
}

func (t *Toolset) unsubscribe(_ context.Context, req *mcp.UnsubscribeRequest) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.subs[req.Params.URI]
	if s == nil {
		return nil
	}
	if s.sessions[req.Session]--; s.sessions[req.Session] <= 0 {
		delete(s.sessions, req.Session)
	}
	if len(s.sessions) == 0 {
		delete(t.subs, req.Params.URI)
	}
	return nil
}

// slug returns the slug of the project in a reference. It returns "" if the reference does not specify a project or the
// project does not exist yet.
func (t *Toolset) slug(ctx context.Context, r ref) string {
	if r.project == "" || t.store == nil {
		return ""
	}
	p, err := t.store.Project(ctx, r.project)
	if err != nil {
		return ""
	}
	return p.Slug
}

// settleSubscription sets a subscription's project, unless slug is "".
func (t *Toolset) settleSubscription(uri, slug string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.subs[uri]; s != nil && slug != "" {
		s.slug = slug
	}
}

// sweep removes the sessions that have ended. The caller must hold t.mu.
func (t *Toolset) sweep() {
	living := map[*mcp.ServerSession]bool{}
	for s := range t.Server().Sessions() {
		living[s] = true
	}
	for uri, s := range t.subs {
		for session := range s.sessions {
			if !living[session] {
				delete(s.sessions, session)
			}
		}
		if len(s.sessions) == 0 {
			delete(t.subs, uri)
		}
	}
}

// Run notifies subscribers of every change, including their own changes, until ctx is done. Then it waits for the
// notifications in progress and returns nil.
func (t *Toolset) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	mark := int64(-1) // not yet known
	for ctx.Err() == nil {
		batch, err := t.next(ctx, &mark)
		switch {
		case ctx.Err() != nil:
		case err != nil:
			t.log.Error("mail: failed to wait for changes; retrying in a second", "error", err)
			select {
			case <-ctx.Done():
			case <-time.After(time.Second):
			}
		default:
			t.tell(ctx, &wg, t.touched(ctx, batch))
		}
	}
	return nil
}

// start returns the position in the feed after which subscribers are notified of changes. The first call, by Run or by
// the first subscription, determines the position. A client that subscribes before Run begins therefore does not miss
// any changes.
func (t *Toolset) start(ctx context.Context) (int64, error) {
	t.starting.Lock()
	defer t.starting.Unlock()
	if t.from < 0 && t.store != nil {
		last, err := t.store.LastChange(ctx)
		if err != nil {
			return -1, err
		}
		t.from = last
	}
	return t.from, nil
}

// next waits for changes after mark and advances mark past them. The first call only determines the position.
func (t *Toolset) next(ctx context.Context, mark *int64) (batch []index.Change, err error) {
	if *mark < 0 {
		*mark, err = t.start(ctx)
		return nil, err
	}
	batch, err = t.store.WaitChanges(ctx, *mark, 500)
	if len(batch) > 0 {
		*mark = batch[len(batch)-1].Seq
	}
	return batch, err
}

// touched returns the subscribed URIs that a batch of changes affects, without duplicates.
func (t *Toolset) touched(ctx context.Context, batch []index.Change) []string {
	t.resolve(ctx, batch)
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.subs) > 0 {
		t.sweep()
	}
	var out []string
	for uri, s := range t.subs {
		for i := range batch {
			if s.concerns(&batch[i]) {
				out = append(out, uri)
				break
			}
		}
	}
	return out
}

// resolve finds the projects of subscriptions whose project did not exist when the client subscribed. It looks for them
// when a batch contains a project's first change.
func (t *Toolset) resolve(ctx context.Context, batch []index.Change) {
	t.mu.Lock()
	fresh := false
	for i := range batch {
		fresh = fresh || !t.projects[batch[i].Project]
		t.projects[batch[i].Project] = true
	}
	late := map[string]ref{}
	for uri, s := range t.subs {
		if fresh && s.slug == "" && s.ref.project != "" {
			late[uri] = s.ref
		}
	}
	t.mu.Unlock()
	for uri, r := range late {
		t.settleSubscription(uri, t.slug(ctx, r))
	}
}

// concerns reports whether a change may affect the content of the subscribed resource.
func (s *subscription) concerns(c *index.Change) bool {
	if s.ref.project != "" && s.slug != c.Project {
		return false
	}
	if c.RemovesProject() {
		return true
	}
	content := c.Kind == format.KindCanonical || c.Kind == format.KindInbox || c.Kind == format.KindOutbox
	switch s.ref.kind {
	case format.KindProfile:
		box := c.Kind == format.KindInbox || c.Kind.Mark()
		// If a message is edited, every inbox that contains it changes, but the change does not list these inboxes.
		return box && c.Agent == s.ref.name || c.Kind == format.KindCanonical && c.Op != index.Added
	case format.KindClaim:
		return c.Kind == format.KindClaim || c.Kind == format.KindReleased
	case format.KindCanonical:
		content = content || c.Kind.Mark() // the message's receipts
		return content && c.ID == s.ref.name
	case format.KindAttachment:
		return false // an attachment's content never changes, because its name is its digest
	}
	return content && (c.Thread == s.ref.name || c.ID == s.ref.name)
}

// tell notifies the subscribers of each URI in a separate goroutine, because a subscriber that does not read its stream
// blocks the writer. If more changes arrive meanwhile, tell notifies the subscribers once more.
func (t *Toolset) tell(ctx context.Context, wg *sync.WaitGroup, uris []string) {
	for _, uri := range uris {
		t.mu.Lock()
		s := t.subs[uri]
		start := s != nil && !s.sending
		if s != nil {
			s.sending, s.again = true, true
		}
		t.mu.Unlock()
		if start {
			wg.Go(func() { t.send(ctx, uri, s) })
		}
	}
}

func (t *Toolset) send(ctx context.Context, uri string, s *subscription) {
	for {
		t.mu.Lock()
		more := s.again
		s.again, s.sending = false, more
		t.mu.Unlock()
		if !more {
			return
		}
		if err := t.Server().ResourceUpdated(ctx, &mcp.ResourceUpdatedNotificationParams{URI: uri}); err != nil {
			t.log.Warn("mail: failed to notify subscribers", "uri", uri, "error", err)
		}
	}
}
