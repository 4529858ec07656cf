package page_test

import (
	"bufio"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"mailtree/maildir"
	"mailtree/page"
)

// TestStream: a browser hears of mail that comes, and not of other projects'.
func TestStream(t *testing.T) {
	s := open(t, page.Config{Person: "pat"})
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+s.base+"/stream", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if got := res.Header.Get("Content-Type"); got != "text/event-stream" {
		t.Fatalf("the stream is %q", got)
	}
	lines := bufio.NewScanner(res.Body)
	for lines.Scan() && !strings.HasPrefix(lines.Text(), "retry:") { // the stream has begun
	}
	s.send(maildir.Draft{From: "Ann", To: []string{"pat"}, Subject: "New", Body: "b"})
	for lines.Scan() {
		if lines.Text() == "event: change" {
			return
		}
	}
	t.Errorf("the stream ends without an event: %v", lines.Err())
}

// TestFragment: the script gets the part that it swaps, without the head.
func TestFragment(t *testing.T) {
	s := open(t, page.Config{Person: "pat"})
	s.send(maildir.Draft{From: "Ann", To: []string{"pat"}, Subject: "New", Body: "b"})
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+s.base+"/inbox", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Mailtree-Fragment", "1")
	_, text := s.browser().do(r)
	contains(t, text, `<nav aria-label="Views" id="menu" data-live>`, `<div id="list" data-live>`, "New")
	if strings.Contains(text, "<html") {
		t.Errorf("the whole page comes:\n%s", text)
	}
}

// part is the part of a view that the script swaps, as it is since a tick.
func (b *browser) part(path, tick string) string {
	b.Helper()
	r, err := http.NewRequestWithContext(b.Context(), http.MethodGet, b.url+b.base+path, nil)
	if err != nil {
		b.Fatal(err)
	}
	r.Header.Set("Mailtree-Fragment", tick)
	_, text := b.do(r)
	return text
}

const longPast = "100" // a tick long past

// TestShared: what one page of a session gets serves the others that ask since the same tick, and
// no other session, no later tick and no failure.
func TestShared(t *testing.T) {
	s := open(t, page.Config{Person: "pat"})
	b := s.person()
	if _, err := s.p.Claim(t.Context(), claimOf("Bob", "a/*.go")); err != nil {
		t.Fatal(err)
	}
	part := (*browser).part
	later := strconv.FormatInt(time.Now().Add(time.Hour).Unix(), 10)
	first := part(b, "/claims", longPast) // with an idempotency key, which differs each time
	contains(t, first, "a/*.go")
	if part(b, "/claims", longPast) != first {
		t.Error("the part is made twice")
	}
	for what, other := range map[string]string{
		"now":             part(b, "/claims", "1"),
		"a later tick":    part(b, "/claims", later),
		"another address": part(b, "/claims?x", longPast),
		"nobody":          part(s.browser(), "/claims", longPast),
	} {
		if other == first {
			t.Errorf("%s gets what was made before", what)
		}
	}
	contains(t, part(b, "/thread/new", longPast), "No thread")
	sent := s.send(maildir.Draft{From: "Ann", To: []string{"pat"}, Subject: "New", Body: "b", ThreadID: "new"})
	contains(t, part(b, "/thread/new", longPast), sent.ID)
}
