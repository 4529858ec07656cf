package mail

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mailtree/fixtures/storetest"
	"mailtree/maildir"
	"mailtree/mcp/tool"
)

func TestConcerns(t *testing.T) {
	inbox := maildir.Change{Project: "p", Kind: maildir.KindInbox, Op: maildir.Added, Agent: "Blue", ID: "m1", Thread: "T"}
	read := maildir.Change{Project: "p", Kind: maildir.KindRead, Op: maildir.Added, Agent: "Blue", ID: "m1", Thread: "T"}
	made := maildir.Change{Project: "p", Kind: maildir.KindCanonical, Op: maildir.Added, Agent: "Red", ID: "m1", Thread: "T"}
	edited := made
	edited.Op = maildir.Changed
	profile := maildir.Change{Project: "p", Kind: maildir.KindProfile, Op: maildir.Changed, Agent: "Blue"}
	changes := []maildir.Change{inbox, read, made, edited, profile}
	for _, tt := range []struct {
		uri, slug string
		want      []bool // of changes
	}{
		{"resource://inbox/Blue", "", []bool{true, true, false, true, false}},
		{"resource://inbox/Red", "", []bool{false, false, false, true, false}},
		{"resource://inbox/Blue?project=/p", "p", []bool{true, true, false, true, false}},
		{"resource://inbox/Blue?project=/q", "q", []bool{false, false, false, false, false}},
		{"resource://inbox/Blue?project=/new", "", []bool{false, false, false, false, false}},
		{"resource://message/m1", "", []bool{true, false, true, true, false}},
		{"resource://message/m2", "", []bool{false, false, false, false, false}},
		{"resource://thread/T", "", []bool{true, false, true, true, false}},
		{"resource://thread/m1", "", []bool{true, false, true, true, false}},
		{"resource://thread/U", "", []bool{false, false, false, false, false}},
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

// TestSubscribers: subscribers of both eras are told of a change, and forgotten when they have gone.
func TestSubscribers(t *testing.T) {
	for _, stateless := range []bool{false, true} {
		t.Run(map[bool]string{false: "session", true: "listen"}[stateless], func(t *testing.T) {
			t.Parallel()
			ts := New(tool.Config{})
			srv := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return ts.Server() },
				&mcp.StreamableHTTPOptions{Stateless: stateless, JSONResponse: true, PropagateRequestCancellation: true}))
			t.Cleanup(srv.Close)
			told := make(chan string, 10000)
			client := mcp.NewClient(&mcp.Implementation{Name: "t", Version: "1"}, &mcp.ClientOptions{
				ResourceUpdatedHandler: func(_ context.Context, r *mcp.ResourceUpdatedNotificationRequest) { told <- r.Params.URI },
			})
			session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: srv.URL}, nil)
			if err != nil {
				t.Fatal(err)
			}
			const uri = "resource://inbox/Blue"
			if err := session.Subscribe(t.Context(), &mcp.SubscribeParams{URI: uri}); err != nil {
				t.Fatal(err)
			}
			batch := []maildir.Change{{Kind: maildir.KindInbox, Agent: "Blue"}, {Kind: maildir.KindRead, Agent: "Blue"}}
			var wg sync.WaitGroup
			await(t, func() bool { // the client's stream may not be open yet
				ts.tell(t.Context(), &wg, ts.touched(t.Context(), batch))
				wg.Wait()
				return len(told) > 0
			})
			if touched, got := ts.touched(t.Context(), batch), <-told; !slices.Equal(touched, []string{uri}) || got != uri {
				t.Errorf("touched %q, told %q", touched, got)
			}
			if err := session.Close(); err != nil {
				t.Error(err)
			}
			await(t, func() bool { return len(ts.touched(t.Context(), batch)) == 0 })
			ts.mu.Lock()
			defer ts.mu.Unlock()
			if len(ts.subs) != 0 {
				t.Errorf("%d subscriptions left", len(ts.subs))
			}
		})
	}
}

// TestSubscribeMeanwhile: who subscribes in a project that is being made hears of what comes there.
func TestSubscribeMeanwhile(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, storetest.Config{NoWatcher: true})
	ts := New(tool.Config{Store: s.Store})
	ts.mu.Lock()
	subscribed := make(chan error, 1)
	go func() {
		subscribed <- ts.subscribe(t.Context(), &mcp.SubscribeRequest{Params: &mcp.SubscribeParams{URI: "resource://inbox/Blue?project=/abs/new"}})
	}()
	time.Sleep(50 * time.Millisecond) // it waits for the lock
	p, err := s.EnsureProject(t.Context(), "/abs/new")
	if err != nil {
		t.Fatal(err)
	}
	ts.projects[p.Slug()] = true // the first changes have come
	ts.mu.Unlock()
	if err := <-subscribed; err != nil {
		t.Fatal(err)
	}
	batch := []maildir.Change{{Project: p.Slug(), Kind: maildir.KindInbox, Agent: "Blue"}}
	ts.resolve(t.Context(), batch)
	ts.mu.Lock()
	defer ts.mu.Unlock()
	for _, one := range ts.subs {
		if !one.concerns(&batch[0]) {
			t.Errorf("the project was found to be %q", one.slug)
		}
	}
}

// await polls for a condition.
func await(t *testing.T, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(60 * time.Second); !ok(); {
		if time.Now().After(end) {
			t.Fatal("waited ten seconds in vain")
		}
		time.Sleep(time.Millisecond)
	}
}
