package page_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"mailtree/maildir"
	"mailtree/page"
)

var nextLink = regexp.MustCompile(`<a rel="next" href="([^"]+)">`)

// follow returns all pages of a list: the view and what its link to the next page leads to.
func (b *browser) follow(view string) (pages []string) {
	b.Helper()
	path, _, _ := strings.Cut(view, "?")
	for at := view; len(pages) < 20; {
		pages = append(pages, b.see(at))
		next := nextLink.FindStringSubmatch(pages[len(pages)-1])
		if next == nil {
			return pages
		}
		at = path + strings.ReplaceAll(next[1], "&amp;", "&")
	}
	b.Fatal("the pages have no end")
	return nil
}

// TestThreads: the list has each thread once, with its own subject and the counts of all its messages.
func TestThreads(t *testing.T) {
	s := open(t, page.Config{Person: "pat"})
	for i := range 60 {
		d := maildir.Draft{To: []string{"pat"}, Subject: fmt.Sprint("Talk ", i), Body: "**first** word", ThreadID: fmt.Sprint("T-", i)}
		s.send("Ann", d)
		d.Subject, d.Body = "Aside", "the `second` word"
		s.send("Bob", d)
	}
	b := s.browser()
	pages := b.follow(s.base + "/threads")
	if len(pages) != 2 {
		t.Fatalf("60 threads have %d pages", len(pages))
	}
	contains(t, pages[0], "Talk 59", "Talk 10", "the second word", "2 unread", `title="2 messages">2<`,
		`<bdi class="name">Bob</bdi>, <bdi class="name">Ann</bdi>`, "Older")
	contains(t, pages[1], "Talk 9<", "Talk 0")
	for i := range 60 {
		if n := strings.Count(strings.Join(pages, ""), fmt.Sprintf("<bdi>Talk %d</bdi>", i)); n != 1 {
			t.Errorf("thread %d is listed %d times", i, n)
		}
	}
	found := b.follow(s.base + "/threads?q=subject:7")
	if len(found) != 1 || strings.Count(found[0], `class="row"`) != 1 {
		t.Errorf("a search finds %d pages:\n%s", len(found), found[0])
	}
	contains(t, found[0], "Talk 7<", `href="`+s.base+`/search?q=subject%3a7"`)
	contains(t, b.see(s.base+"/threads?q=zirconium"), "No thread like that.")
}
