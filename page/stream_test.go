package page_test

import (
	"bufio"
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"mailtree/maildir"
	"mailtree/maildir/format"
	"mailtree/page"
)

// TestStream checks that a browser gets an event for new mail in the project it shows, or in any project if it shows
// all of them.
func TestStream(t *testing.T) {
	t.Parallel()
	s := open(t, page.Config{Person: "pat"})
	front := s.second()
	s.hears(s.base+"/stream", s.p, "Ann")
	s.hears("/stream", s.p, "Ann")
	s.hears("/stream", front, "Xia")
}

// hears checks that the stream at the given path reports new mail from an agent of p.
func (s *site) hears(path string, p *maildir.Project, from string) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), 2*time.Minute) // the stream itself does not end
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+path, nil)
	if err != nil {
		s.Fatal(err)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		s.Fatal(err)
	}
	defer res.Body.Close()
	if got := res.Header.Get("Content-Type"); got != "text/event-stream" {
		s.Fatalf("the stream is %q", got)
	}
	lines := bufio.NewScanner(res.Body)
	for lines.Scan() && !strings.HasPrefix(lines.Text(), "retry:") { // the stream has begun
	}
	d := maildir.Draft{To: []string{"pat"}, Subject: "New", Body: "b"}
	if _, err := p.Box(from, format.Origin{}).Send(s.Context(), d); err != nil {
		s.Fatal(err)
	}
	for lines.Scan() {
		if lines.Text() == "event: change" {
			return
		}
	}
	s.Errorf("the stream ends without an event: %v", lines.Err())
}

// TestFragment checks that the script gets only the part of the view that it replaces, without the HTML head.
func TestFragment(t *testing.T) {
	t.Parallel()
	s := open(t, page.Config{Person: "pat"})
	s.send("Ann", maildir.Draft{To: []string{"pat"}, Subject: "New", Body: "b"})
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+s.base+"/inbox", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Mailtree-Fragment", "1")
	_, text := s.browser().do(r)
	contains(t, text, `<nav aria-label="Views" id="menu" data-live>`, `<div id="list" data-live>`, "New")
	if strings.Contains(text, "<html") {
		t.Errorf("the whole page was returned:\n%s", text)
	}
}

// part returns the part of a view that the script replaces, for changes since a tick.
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

const longPast = "100" // a tick in the distant past
