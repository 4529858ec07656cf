package page_test

import (
	"fmt"
	"html"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"mailtree/maildir"
	"mailtree/maildir/format"
	"mailtree/page"
)

var nextLink = regexp.MustCompile(`<a rel="next" href="([^"]+)">`)

// follow returns all pages of a list, which it loads by following the links to the next page.
func (b *browser) follow(view string) (pages []string) {
	b.Helper()
	path, _, _ := strings.Cut(view, "?")
	for at := view; len(pages) < 20; {
		pages = append(pages, b.see(at))
		next := nextLink.FindStringSubmatch(pages[len(pages)-1])
		if next == nil {
			return pages
		}
		if at = html.UnescapeString(next[1]); strings.HasPrefix(at, "?") {
			at = path + at
		}
	}
	b.Fatal("the pages have no end")
	return nil
}

// TestThreads checks that the list contains each thread once, with the thread's subject and with counts that include
// all of its messages.
func TestThreads(t *testing.T) {
	t.Parallel()
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
	contains(t, pages[0], "Talk 59", "Talk 10", "the second word", "2 unread",
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
	contains(t, b.see(s.base+"/threads?q=zirconium"), "No matching threads.")
}

// TestIcon checks that the icon can also be loaded from /favicon.ico.
func TestIcon(t *testing.T) {
	t.Parallel()
	s := open(t, page.Config{Person: "pat"})
	res, _ := s.browser().get("/favicon.ico")
	if _, text := s.browser().get(res.Header.Get("Location")); !strings.Contains(text, "<svg") {
		t.Errorf("%s %q\n%s", res.Status, res.Header.Get("Location"), text)
	}
}

// TestAllMail checks that the view of all mail distinguishes unread messages from read ones.
func TestAllMail(t *testing.T) {
	t.Parallel()
	s := open(t, page.Config{Person: "pat"})
	seen := s.send("Ann", maildir.Draft{To: []string{"pat"}, Subject: "Seen", Body: "b"})
	s.send("Ann", maildir.Draft{To: []string{"pat"}, Subject: "Re: Fresh", Body: "b"})
	const read = true
	if _, err := s.p.Box("pat", format.Origin{}).SetRead(t.Context(), seen.ID, read); err != nil {
		t.Fatal(err)
	}
	text := s.browser().see(s.base + "/inbox")
	_, fresh, _ := strings.Cut(text, `<li class="unread">`)
	if fresh, _, _ = strings.Cut(fresh, "</li>"); strings.Count(text, `class="unread"`) != 1 || !strings.Contains(fresh, "<bdi>Fresh</bdi>") {
		t.Errorf("the unread row is %q:\n%s", fresh, text)
	}
}

// TestActivity checks that all pages of the activity together show each operation exactly once, and that
// acknowledging a message is not also shown as reading it.
func TestActivity(t *testing.T) {
	t.Parallel()
	s := open(t, page.Config{Person: "pat"})
	b := s.browser()
	if text := b.see(s.base + "/activity?agent=Nob"); !strings.Contains(text, "No activity yet.") {
		t.Errorf("an agent that does not exist:\n%s", text)
	}
	for i := range 130 {
		sent := s.send("Ann", maildir.Draft{To: []string{"Bob"}, Subject: fmt.Sprintf("Message %d.", i), Body: "b", AckRequired: true})
		if _, err := s.p.Box("Bob", format.Origin{}).Acknowledge(t.Context(), sent.ID); err != nil {
			t.Fatal(err)
		}
	}
	pages := b.follow(s.base + "/activity")
	if len(pages) != 3 {
		t.Errorf("263 operations have %d pages", len(pages))
	}
	all := strings.Join(pages, "")
	for i := range 130 {
		if n := strings.Count(all, fmt.Sprintf("<bdi>Message %d.</bdi>", i)); n != 2 {
			t.Errorf("message %d is in %d rows", i, n)
		}
	}
	if n := strings.Count(all, `<span class="why">read</span>`); n != 0 {
		t.Errorf("%d acknowledgements are shown as reading", n)
	}
	contains(t, pages[0], `<a href="?agent=Ann"><bdi class="name">Ann</bdi></a>`, `aria-current="true">All agents`, `class="day"`)
	bobs := b.follow(s.base + "/activity?agent=Bob")
	if len(bobs) != 2 || strings.Contains(strings.Join(bobs, ""), ">wrote<") {
		t.Errorf("Bob's operations have %d pages", len(bobs))
	}
	contains(t, bobs[1], "joined", `<a href="?agent=Bob" aria-current="true">`)
}

// TestActivityWindow checks the activity of an agent that caused none of the newest changes. The view must say how
// far back it has read, and link to older changes.
func TestActivityWindow(t *testing.T) {
	t.Parallel()
	s := open(t, page.Config{Person: "pat"})
	var all []string
	for i := range 40 {
		all = append(all, fmt.Sprint("Agent", i))
		if err := s.p.Agents.EnsureAgent(t.Context(), all[i], maildir.Registration{Program: "test"}); err != nil {
			t.Fatal(err)
		}
	}
	for range 125 { // more changes than one page reads
		s.send(all[0], maildir.Draft{To: all, Subject: "s", Body: "b"})
	}
	pages := s.browser().follow(s.base + "/activity?agent=Bob")
	if len(pages) != 2 || strings.Contains(pages[0], "Nothing has happened") {
		t.Fatalf("%d pages\n%s", len(pages), pages[0])
	}
	contains(t, pages[0], "No activity since ", "Older")
	contains(t, pages[1], "joined")
}

// TestSearch checks that the results of a search say how many messages were found, show the matches without markup, and
// contain no duplicates.
func TestSearch(t *testing.T) {
	t.Parallel()
	s := open(t, page.Config{Person: "pat"})
	b := s.browser()
	s.send("Ann", maildir.Draft{To: []string{"pat"}, Subject: "Marks", Body: "See **bold _zebra_** in `web/**/zebra.go`\n\n```go\nzebra := 1 // a * b\n```\n- [zebra](http://a.b/c)\n\n| a | b |\n|---|--:|\n| zebra | 1 |\n"})
	s.send("Ann", maildir.Draft{To: []string{"pat"}, Subject: "A zebra here", Body: "nothing"})
	view := b.see(s.base + "/search?q=zebra")
	contains(t, view, "2 messages</h1>", `<bdi>See bold <mark>zebra</mark> in web/**/<mark>zebra</mark>.go <mark>zebra</mark> := 1 // a * b <mark>zebra</mark> a b <mark>zebra</mark> 1</bdi>`,
		`href="`+s.base+`/threads?q=zebra"`)
	if n := strings.Count(view, `class="hit"`); n != 1 {
		t.Errorf("there are %d lines", n)
	}
	contains(t, b.see(s.base+"/search?q=quagga"), "No messages match <bdi>quagga</bdi>.", "from:")
	for i := range 60 {
		s.send("Ann", maildir.Draft{To: []string{"pat"}, Subject: fmt.Sprint("s ", i), Body: "a zebra"})
	}
	pages := b.follow(s.base + "/search?q=zebra")
	if len(pages) != 2 {
		t.Errorf("62 messages have %d pages", len(pages))
	}
	for _, text := range pages {
		contains(t, text, "62 messages</h1>")
	}
}

// TestFoundThreads checks that a search shows each thread once, with the lines that match, and that a row opens its
// thread next to the hits. If a query is refused, the reason must appear next to the search field.
func TestFoundThreads(t *testing.T) {
	t.Parallel()
	s := open(t, page.Config{})
	var ids []string
	for i := range 3 {
		sent := s.send("Ann", maildir.Draft{To: []string{"pat"}, Subject: "Stripes", Body: fmt.Sprint("zebra ", i), ThreadID: "T-1"})
		ids = append(ids, sent.ID)
	}
	other := s.send("Bob", maildir.Draft{To: []string{"pat"}, Subject: "Zoo", Body: "a zebra and more"})
	b := s.person()
	text := b.see(s.base + "/search?q=zebra")
	if rows, hits := strings.Count(text, `class="row"`), strings.Count(text, `class="hit"`); rows != 2 || hits != 4 {
		t.Errorf("%d rows, %d hits:\n%s", rows, hits, text)
	}
	link := s.base + "/thread/T-1?in=search&amp;q=zebra#" + ids[2]
	contains(t, text, `href="`+link+`"`)
	text = b.see(s.base + "/thread/T-1?in=search&q=zebra")
	next := s.base + "/thread/" + other.ID + "?in=search&amp;q=zebra#" + other.ID
	contains(t, text, "4 messages</h2>", `<mark>zebra</mark>`, `href="`+next+`"`, `href="`+s.base+`/search?q=zebra">‹ Search`, `aria-current="true"><span class="who">`)
	contains(t, b.see(s.base+"/thread/"+other.ID+"?in=threads"), "‹ Threads", "data-next")
	res, text := b.get(s.base + "/search?q=importance:x")
	if res.StatusCode != http.StatusBadRequest {
		t.Errorf("a wrong query: %s", res.Status)
	}
	contains(t, text, `<p class="note">`, `value="importance:x"`)
	res, text = b.get(s.base + "/search?q=zebra+thread:nosuch-thread+is:read")
	if res.StatusCode != http.StatusBadRequest {
		t.Errorf("another wrong query: %s", res.Status)
	}
	contains(t, text, "write is:unread", "<h1>Search</h1>")
	text = b.see(s.base + "/search?q=zebra+is:unread")
	contains(t, text, "4 messages</h1>")
	if text = b.see(s.base + "/search?q=zebra+has:file"); !strings.Contains(text, "No messages match") {
		t.Errorf("files:\n%s", text)
	}
}
