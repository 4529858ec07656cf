package mail

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mailtree/fixtures/storetest"
	"mailtree/fixtures/waits"
	"mailtree/maildir"
	"mailtree/maildir/format"
	"mailtree/maildir/index"
	"mailtree/mcp/tool"
)

func TestMain(m *testing.M) {
	if err := storetest.Isolate(os.Setenv); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

func TestConcerns(t *testing.T) {
	inbox := index.Change{
		Project: "p",
		Kind:    format.KindInbox,
		Op:      index.Added,
		Agent:   "Blue",
		ID:      "m1",
		Thread:  "T",
	}
	read := index.Change{
		Project: "p",
		Kind:    format.KindRead,
		Op:      index.Added,
		Agent:   "Blue",
		ID:      "m1",
		Thread:  "T",
	}
	made := index.Change{
		Project: "p",
		Kind:    format.KindCanonical,
		Op:      index.Added,
		Agent:   "Red",
		ID:      "m1",
		Thread:  "T",
	}
	edited := made
	edited.Op = index.Changed
	profile := index.Change{
		Project: "p",
		Kind:    format.KindProfile,
		Op:      index.Changed,
		Agent:   "Blue",
	}
	claimed := index.Change{
		Project: "p",
		Kind:    format.KindClaim,
		Op:      index.Added,
		Agent:   "Blue",
	}
	removed := index.Change{Project: "p", Kind: format.KindProject, Op: index.Removed}
	changes := []index.Change{inbox, read, made, edited, profile, claimed, removed}
	for _, tt := range []struct {
		uri, slug string
		want      []bool // whether each of the changes concerns the subscription
	}{
		{"resource://inbox/Blue", "", []bool{true, true, false, true, false, false, true}},
		{"resource://inbox/Red", "", []bool{false, false, false, true, false, false, true}},
		{"resource://inbox/Blue?project=/p", "p", []bool{true, true, false, true, false, false, true}},
		{"resource://inbox/Blue?project=/q", "q", []bool{false, false, false, false, false, false, false}},
		{"resource://inbox/Blue?project=/new", "", []bool{false, false, false, false, false, false, false}},
		{"resource://message/m1", "", []bool{true, true, true, true, false, false, true}},
		{"resource://message/m2", "", []bool{false, false, false, false, false, false, true}},
		{"resource://thread/T", "", []bool{true, false, true, true, false, false, true}},
		{"resource://thread/m1", "", []bool{true, false, true, true, false, false, true}},
		{"resource://thread/U", "", []bool{false, false, false, false, false, false, true}},
		{"resource://claims/%2Fp", "p", []bool{false, false, false, false, false, true, true}},
		{"resource://claims/q", "q", []bool{false, false, false, false, false, false, false}},
	} {
		r, err := parseRef(tt.uri)
		if err != nil {
			t.Fatal(err)
		}
		s := &subscription{ref: r, slug: tt.slug}
		var got []bool
		for i := range changes {
			got = append(got, s.concerns(&changes[i]))
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: %s", tt.uri, diff)
		}
	}
}

// TestSubscribers checks that subscribers of both protocol eras are notified about a change, and are removed after they
// have disconnected.
func TestSubscribers(t *testing.T) {
	for _, stateless := range []bool{false, true} {
		t.Run(map[bool]string{false: "session", true: "listen"}[stateless], func(t *testing.T) {
			t.Parallel()
			ts := New(tool.Config{})
			session, told := connect(t, ts, stateless)
			const uri = "resource://inbox/Blue"
			if err := session.Subscribe(t.Context(), &mcp.SubscribeParams{URI: uri}); err != nil {
				t.Fatal(err)
			}
			batch := []index.Change{{Kind: format.KindInbox, Agent: "Blue"}, {Kind: format.KindRead, Agent: "Blue"}}
			var wg sync.WaitGroup
			await(t, func() bool { // repeat the change, because the client's stream may not be open yet
				ts.tell(t.Context(), &wg, ts.touched(t.Context(), batch))
				wg.Wait()
				return len(told) > 0
			})
			if touched, got := ts.touched(t.Context(), batch), <-told; !slices.Equal(touched, []string{uri}) || got != uri {
				t.Errorf("touched %q, notified %q", touched, got)
			}
			if err := session.Close(); err != nil {
				t.Error(err)
			}
			await(t, func() bool { return len(ts.touched(t.Context(), batch)) == 0 })
			ts.mu.Lock()
			defer ts.mu.Unlock()
			if len(ts.subs) != 0 {
				t.Errorf("%d subscriptions are left", len(ts.subs))
			}
		})
	}
}

// connect connects a client, and sends the client's notifications to the channel told.
func connect(t *testing.T, ts *Toolset, stateless bool) (session *mcp.ClientSession, told chan string) {
	t.Helper()
	srv := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return ts.Server() },
		&mcp.StreamableHTTPOptions{Stateless: stateless, JSONResponse: true, PropagateRequestCancellation: true}))
	t.Cleanup(srv.Close)
	told = make(chan string, 10000)
	client := mcp.NewClient(&mcp.Implementation{Name: "t", Version: "1"}, &mcp.ClientOptions{
		ResourceUpdatedHandler: func(_ context.Context, r *mcp.ResourceUpdatedNotificationRequest) { told <- r.Params.URI },
	})
	session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: srv.URL}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return session, told
}

// TestSubscribeEarly checks that a client that subscribes before the toolset runs is notified about changes made before
// Run begins.
func TestSubscribeEarly(t *testing.T) {
	t.Parallel()
	ts, p := newProject(t, "/p")
	session, told := connect(t, ts, true)
	defer session.Close()
	const uri = "resource://inbox/Ann?project=/p"
	if err := session.Subscribe(t.Context(), &mcp.SubscribeParams{URI: uri}); err != nil {
		t.Fatal(err)
	}
	send(t, p)
	run(t, ts)
	hears(t, told, uri)
}

// TestSubscribeToProjectBeingMade checks that a subscription finds its project even if the project is created at the
// same time.
func TestSubscribeToProjectBeingMade(t *testing.T) {
	t.Parallel()
	ts, _ := newProject(t, "/p")
	run(t, ts)
	session, told := connect(t, ts, true)
	defer session.Close()
	const uri = "resource://inbox/Ann?project=/q"
	ts.mu.Lock()
	done := make(chan error, 1)
	go func() { done <- session.Subscribe(t.Context(), &mcp.SubscribeParams{URI: uri}) }()
	waits.Until(t, "the subscription to be entered", func() bool { return waits.Waiting(`mail\.\(\*Toolset\)\.enterSubscription$`) })
	q := agentIn(t, ts.store, "/q")
	ts.projects[q.Slug] = true // as if the project's first change had been reported before the subscription
	ts.mu.Unlock()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	send(t, q)
	hears(t, told, uri)
}

// TestSubscribeToRemovedProject checks that a subscriber is notified when the project's folder in the store is removed,
// and about mail in a later project with the same key.
func TestSubscribeToRemovedProject(t *testing.T) {
	t.Parallel()
	ts, p := newProject(t, "/p")
	if err := p.FlushHistory(t.Context()); err != nil { // a commit in progress may create a file in the folder
		t.Fatal(err)
	}
	run(t, ts)
	session, told := connect(t, ts, true)
	defer session.Close()
	const uri = "resource://inbox/Ann?project=/p"
	if err := session.Subscribe(t.Context(), &mcp.SubscribeParams{URI: uri}); err != nil {
		t.Fatal(err)
	}
	await(t, func() bool { return os.RemoveAll(filepath.Dir(p.Dir())) == nil })
	hears(t, told, uri)
	await(t, func() bool { _, err := ts.store.Project(t.Context(), "/p"); return err != nil })
	send(t, agentIn(t, ts.store, "/p"))
	hears(t, told, uri)
}

// TestSubscribeShort checks that a client that subscribes with a message's short id is notified about the message's
// receipts.
func TestSubscribeShort(t *testing.T) {
	t.Parallel()
	ts, p := newProject(t, "/p")
	box := p.Box("Ann", format.Origin{})
	m, err := box.Send(t.Context(), maildir.Draft{To: []string{"Ann"}, Body: "b"})
	if err != nil {
		t.Fatal(err)
	}
	run(t, ts)
	session, told := connect(t, ts, true)
	defer session.Close()
	uri := "resource://message/" + format.ShortID(m.ID, time.Now())
	if err := session.Subscribe(t.Context(), &mcp.SubscribeParams{URI: uri}); err != nil {
		t.Fatal(err)
	}
	if _, err := box.SetRead(t.Context(), m.ID, true); err != nil {
		t.Fatal(err)
	}
	hears(t, told, uri)
}

// newProject returns a toolset, and a project in its store with the given key and an agent Ann.
func newProject(t *testing.T, key string) (*Toolset, *maildir.Project) {
	t.Helper()
	st := storetest.Open(t, storetest.Config{})
	return New(tool.Config{Store: st.Store}), agentIn(t, st.Store, key)
}

func agentIn(t *testing.T, st *maildir.Store, key string) *maildir.Project {
	t.Helper()
	p, err := st.EnsureProject(t.Context(), key)
	if err == nil {
		err = p.Agents.EnsureAgent(t.Context(), "Ann", maildir.Registration{})
	}
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func send(t *testing.T, p *maildir.Project) {
	t.Helper()
	if _, err := p.Box("Ann", format.Origin{}).Send(t.Context(), maildir.Draft{To: []string{"Ann"}, Body: "b"}); err != nil {
		t.Fatal(err)
	}
}

// run runs the toolset until the test ends.
func run(t *testing.T, ts *Toolset) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { ts.Run(ctx) })
	t.Cleanup(func() { cancel(); wg.Wait() })
}

func hears(t *testing.T, told <-chan string, uri string) {
	t.Helper()
	select {
	case got := <-told:
		if got != uri {
			t.Errorf("notified about %s", got)
		}
	case <-time.After(time.Minute):
		t.Error("not notified")
	}
}

// await waits until a condition is true.
func await(t *testing.T, ok func() bool) {
	t.Helper()
	waits.Until(t, "the awaited condition holds", ok)
}
