package page_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"mailtree/maildir"
	"mailtree/maildir/format"
	"mailtree/page"
)

// TestBounds checks that a view or a feed shows no more than 256 KiB of a body, and no more than 2 MiB in total. Both
// must link to the complete text, which is served in full.
func TestBounds(t *testing.T) {
	t.Parallel()
	s := open(t, page.Config{Person: "pat"})
	body := strings.Repeat("<&>\"' long lines ", 20_000)
	var last *maildir.Sent
	for i := range 55 {
		d := maildir.Draft{To: []string{"pat"}, Subject: fmt.Sprint("Part ", i), Body: "short", ThreadID: "long"}
		if i >= 40 {
			d.Body, d.TextOnly = body, true
		}
		last = s.send("Ann", d)
	}
	b := s.browser()
	for path, marks := range map[string]struct{ cut, none string }{
		"/thread/long/atom":    {"[262144 of 340000 bytes are shown; full text: http://", "[0 of 340000 bytes are shown"},
		"/thread/long?after=1": {"262144 of 340000 bytes are shown: <a href=", ""},
	} {
		_, text := b.get(s.base + path)
		if len(text) > 12<<20 {
			t.Errorf("%s: %d bytes", path, len(text))
		}
		contains(t, text, marks.cut, marks.none)
		if n := strings.Count(text, " long lines "); n*17 > 2<<20+55*300 { // the second term is for the excerpts
			t.Errorf("%s: %d bytes of bodies", path, n*17)
		}
	}
	_, feed := b.get(s.base + "/thread/long/atom")
	if n := strings.Count(feed, "<entry>"); n != 50 {
		t.Errorf("the feed has %d entries", n)
	}
	_, raw := b.get(s.base + "/message/" + last.ID + "/raw")
	if !strings.Contains(raw, body) {
		t.Errorf("the raw message has %d bytes", len(raw))
	}
}

// TestBoundHTML checks that the size of a view's HTML is limited even if rendering makes the bodies much larger.
func TestBoundHTML(t *testing.T) {
	t.Parallel()
	s := open(t, page.Config{Person: "pat"})
	body := strings.Repeat(strings.Repeat(">", 80)+"\n\n", 350)
	for range 15 {
		s.send("Ann", maildir.Draft{To: []string{"pat"}, Subject: "s", Body: body, ThreadID: "deep"})
	}
	_, text := s.browser().get(s.base + "/thread/deep")
	contains(t, text, "<blockquote>", "&gt;&gt;&gt;")
	if len(text) > 8<<20 {
		t.Errorf("%d bytes", len(text))
	}
}

// TestFragmentOfFiles checks that the request header for a part of a view has no effect on URLs that are not views.
func TestFragmentOfFiles(t *testing.T) {
	t.Parallel()
	s := open(t, page.Config{Person: "pat"})
	sent := s.send("Ann", maildir.Draft{To: []string{"pat"}, Subject: "s", Body: "b"})
	for path, want := range map[string]int{
		"/message/" + sent.ID + "/raw":     http.StatusOK,
		"/file/" + strings.Repeat("0", 40): http.StatusNotFound,
		"/stream":                          http.StatusOK,
	} {
		ctx, cancel := context.WithCancel(t.Context())
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+s.base+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Mailtree-Fragment", "100")
		res, err := http.DefaultClient.Do(r)
		if err != nil || res.StatusCode != want {
			t.Errorf("%s: %v, %v", path, res, err)
		}
		cancel()
		if err == nil {
			res.Body.Close()
		}
	}
}

// TestActivityBeside checks that changes in a busy project do not push operations out of another project's activity
// view.
func TestActivityBeside(t *testing.T) {
	t.Parallel()
	s := open(t, page.Config{Person: "pat"})
	s.send("Ann", maildir.Draft{To: []string{"pat"}, Subject: "The quiet one", Body: "b"})
	busy, err := s.store.EnsureProject(t.Context(), "/code/busy")
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for i := range 40 {
		all = append(all, fmt.Sprint("Agent", i))
		if err := busy.Agents.EnsureAgent(t.Context(), all[i], maildir.Registration{Program: "test"}); err != nil {
			t.Fatal(err)
		}
	}
	for range 30 { // more changes than the activity view reads
		if _, err := busy.Box(all[0], format.Origin{}).Send(t.Context(), maildir.Draft{To: all, Subject: "s", Body: "b"}); err != nil {
			t.Fatal(err)
		}
	}
	_, text := s.browser().get(s.base + "/activity")
	contains(t, text, "The quiet one")
}
