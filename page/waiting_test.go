package page_test

import (
	"context"
	"html"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mailtree/maildir"
	"mailtree/maildir/format"
	"mailtree/page"
)

// TestWaiting checks that questions, agents stopped by claims, and invalid files stay in the list until they are
// dealt with.
func TestWaiting(t *testing.T) {
	t.Parallel()
	s := open(t, page.Config{Person: "pat"})
	b := s.browser()
	waits := func(want bool, texts ...string) {
		t.Helper()
		view := b.see(s.base + "/")
		for _, text := range texts {
			if strings.Contains(view, text) != want {
				t.Errorf("%q is there: %v\n%s", text, !want, view)
			}
		}
	}
	asked := s.send("Ann", maildir.Draft{To: []string{"pat"}, Subject: "Which index?", Body: "b"})
	waits(true, "Which index?", "needs an answer")
	const read = true
	if _, err := s.p.Box("pat", format.Origin{}).SetRead(t.Context(), asked.ID, read); err != nil {
		t.Fatal(err)
	}
	waits(true, "Which index?", "needs an answer")
	s.send("pat", maildir.Draft{To: []string{"Ann"}, Subject: "Re: Which index?", Body: "b", ThreadID: asked.ID})
	waits(false, "needs an answer")

	for _, who := range []string{"Bob", "Ann"} {
		if _, err := s.p.Box(claimOf(who, "app/api/*.py").Agent, format.Origin{}).Claim(t.Context(), claimOf(who, "app/api/*.py")); err != nil {
			t.Fatal(err)
		}
	}
	waits(false, "Nothing needs you.")
	waits(true, "A claim stopped", "claim of <code>app/api/*.py</code> (held by")
	contains(t, b.see(s.base+"/claims"), "stopped <bdi class=\"name\">Ann</bdi>’s claim of <code>app/api/*.py</code>")
	if _, err := s.p.Box("Bob", format.Origin{}).Release(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	waits(false, "A claim stopped")

	bad := filepath.Join(s.p.Dir(), "claims", "bad.json")
	if err := os.WriteFile(bad, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.p.Rescan(t.Context()); err != nil {
		t.Fatal(err)
	}
	waits(true, "1 file with errors", "Problems <b>1</b>")
	contains(t, s.person().press(s.base+"/", s.base+"/dismiss"), "Dismissed.", "Nothing needs you.", "Problems <b>1</b>")
	if err := os.Remove(bad); err != nil {
		t.Fatal(err)
	}
	if err := s.p.Rescan(t.Context()); err != nil {
		t.Fatal(err)
	}
	waits(true, "Nothing needs you.")
}

// TestBegin checks that the list of a new project tells the user how to begin, one step at a time.
func TestBegin(t *testing.T) {
	t.Parallel()
	s := bare(t, page.Config{Person: "pat"})
	text := s.browser().see(s.base + "/")
	contains(t, text, "Nothing needs you.", "<code>mailtree setup claude</code>", "<code>/code/backend</code>", `<a href="`+s.base+`/compose">Send it a message.</a>`)
	s = open(t, page.Config{Person: "pat"})
	if text := s.browser().see(s.base + "/"); strings.Contains(text, "mailtree setup") {
		t.Errorf("with agents:\n%s", text)
	}
}

// TestAsleep checks that a nudge is offered only for agents that it can reach and whose clients are not asking for
// permission.
func TestAsleep(t *testing.T) {
	t.Parallel()
	var jump atomic.Int64
	s := open(t, page.Config{
		Now:   func() time.Time { return time.Now().Add(time.Duration(jump.Load())) },
		Nudge: func(context.Context, string, string, func(how, why string)) error { return nil },
	})
	k := maildir.SessionKey{Client: "gemini", ID: "1"}
	pane := maildir.Pane{Tmux: "/tmp/x,1,1", Pane: "%1"}
	if _, err := s.p.Sessions.Begin(t.Context(), maildir.SessionEvent{SessionKey: k, Dir: "/code/backend", Agent: "Bob", Pane: pane}); err != nil {
		t.Fatal(err)
	}
	sent := s.send("pat", maildir.Draft{To: []string{"Ann", "Bob"}, Subject: "s", Body: "b"})
	jump.Store(int64(time.Hour))
	b := s.person()
	first := b.see(s.base + "/")
	contains(t, first, "Can’t wake", "(1 unread, 1h) +1: it never had a session")
	text := b.see(s.base + "/agents")
	contains(t, text, `aria-label="Nudge Bob"`)
	if strings.Contains(first+text, `aria-label="Nudge Ann"`) {
		t.Errorf("Ann cannot be reached:\n%s\n%s", first, text)
	}
	const read = true
	if _, err := s.p.Box("Ann", format.Origin{}).SetRead(t.Context(), sent.ID, read); err != nil {
		t.Fatal(err)
	}
	s.asks("Ann", maildir.Pane{})
	for _, path := range []string{"/", "/agents"} {
		contains(t, b.see(s.base+path), `aria-label="Nudge Bob"`)
	}
	s.p.Sessions.SetAsking(k, true, "")
	for _, path := range []string{"/", "/agents"} {
		text = b.see(s.base + path)
		contains(t, text, "Bob")
		if strings.Contains(text, "Nudge Bob") {
			t.Errorf("Bob's client asks for permission:\n%s", text)
		}
	}
}

// TestWaitingOpen checks that without a session, no view shows bcc recipients that the user is waiting for, even if
// the signed-in user has just loaded the same view.
func TestWaitingOpen(t *testing.T) {
	t.Parallel()
	s := open(t, page.Config{Person: "pat"})
	s.send("pat", maildir.Draft{To: []string{"Ann"}, BCC: []string{"Bob"}, Subject: "Plan", Body: "b", AckRequired: true})
	s.send("pat", maildir.Draft{To: []string{"pat"}, BCC: []string{"Bob"}, Subject: "Quiet", Body: "b", AckRequired: true})
	for range 2 {
		contains(t, s.person().see(s.base+"/"), `Bob</bdi>`, "have not acknowledged")
		text := s.browser().see(s.base + "/")
		contains(t, text, "Waiting on others <small>1<", "has not acknowledged")
		if _, mail, _ := strings.Cut(text, "<main"); strings.Contains(mail, "Bob") {
			t.Errorf("without a session:\n%s", text)
		}
	}
}

// TestMenu checks that the menu of every view shows current counts, and that open pages that are notified of the same
// change share one count.
func TestMenu(t *testing.T) {
	t.Parallel()
	s := open(t, page.Config{})
	b := s.person()
	has := func(text string, wanted ...string) {
		t.Helper()
		menu, _, _ := strings.Cut(text, "</nav>")
		var counts []string
		for _, m := range regexp.MustCompile(`>(\w[\w ]*) <(?:b|small)>(\d+)<`).FindAllStringSubmatch(menu, -1) {
			counts = append(counts, m[1]+" "+m[2])
		}
		if diff := cmp.Diff(wanted, counts); diff != "" {
			t.Errorf("the menu counts (-want +got)\n%s", diff)
		}
	}
	has(b.see(s.base+"/problems"), "Now 3")
	sent := s.send("Ann", maildir.Draft{To: []string{"pat"}, Subject: "s", Body: "b"})
	has(b.see(s.base+"/problems"), "Needs you 1", "Now 3")
	thread := s.base + "/thread/" + sent.ID
	has(b.press(thread, s.base+"/message/"+sent.ID+"/mark", "as", "read"), "Now 3")
	has(b.press(thread, s.base+"/message/"+sent.ID+"/mark", "as", "unread"), "Needs you 1", "Now 3")

	if _, err := s.p.Box(claimOf("Bob", "app/api/*.py").Agent, format.Origin{}).Claim(t.Context(), claimOf("Bob", "app/api/*.py")); err != nil {
		t.Fatal(err)
	}
	contains(t, b.see(s.base+"/more"), "1 claim</span>")
	has(b.press(s.base+"/claims", s.base+"/claims/release"), "Needs you 1", "Now 3")

	const most = 50 // maximum number of threads listed
	for range most {
		s.send("Ann", maildir.Draft{To: []string{"pat"}, Subject: "s", Body: "b"})
	}
	text := b.see(s.base + "/")
	contains(t, text, "1 more</a>")
	has(text, "Needs you 51", "Now 3")
	contains(t, text, `id="g-new">New <small>51</small>`)
	thread = regexp.MustCompile(`href="([^"]+new=1)#`).FindStringSubmatch(text)[1]
	contains(t, b.see(html.UnescapeString(thread)), `id="g-new">New <small>51</small>`)

	s.send("Ann", maildir.Draft{To: []string{"pat"}, Subject: "s", Body: "b"})
	has(b.part("/agents", longPast), "Needs you 51", "Now 3")
	has(b.part("/agents", "1"), "Needs you 52", "Now 3")
}

// TestSince checks that a user who was away sees what was decided, closed and left open, and which agents are stuck.
// Leaving a view open must not count as a visit. If a thread is open, it must replace the catch-up.
func TestSince(t *testing.T) {
	t.Parallel()
	var jump atomic.Int64
	now := func() time.Time { return time.Now().Add(time.Duration(jump.Load())) }
	s := open(t, page.Config{Person: "pat", Now: now})
	b := s.browser()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	front := s.second()
	look := func(path string) string {
		t.Helper()
		at, err := url.Parse(s.url + path)
		if err != nil {
			t.Fatal(err)
		}
		b.cookies = jar.Cookies(at)
		res, text := b.get(path)
		jar.SetCookies(at, res.Cookies())
		return text
	}
	jump.Store(int64(-time.Hour))
	contains(t, look(s.base+"/"), "No decisions, closed threads or open questions.")
	jump.Store(int64(2*time.Minute - time.Hour))
	look(s.base + "/")
	asked := s.send("Ann", maildir.Draft{To: []string{"Bob"}, Subject: "Which index?", Body: "b"})
	s.send("Bob", maildir.Draft{To: []string{"Ann"}, Subject: "Re: Which index?", Body: "Decision: the <second> one", ThreadID: asked.ID})
	open := s.send("Ann", maildir.Draft{To: []string{"Bob"}, Subject: "And when?", Body: "b"})
	theirs := maildir.Draft{To: []string{"pat"}, Subject: "Where?", Body: "Decision: in front"}
	if _, err := front.Box("Xia", format.Origin{}).Send(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}
	jump.Store(int64(5 * time.Minute))
	for _, who := range []string{"Bob", "Ann"} {
		if _, err := s.p.Box(who, format.Origin{}).Claim(t.Context(), claimOf(who, "app/api/*.py")); err != nil {
			t.Fatal(err)
		}
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+s.base+"/", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Mailtree-Fragment", "1")
	if res, _ := b.do(r); len(res.Cookies()) != 0 {
		t.Error("a view that is left open is treated as a visit")
	}
	news := []string{
		`<dt>Decided</dt><dd><a href="` + s.base + `/thread/` + asked.ID + `#`, `<bdi>the &lt;second&gt; one</bdi>`,
		`<dt>Closed</dt><dd><a href="` + s.base + `/threads">1 thread</a>`,
		`<dt>Open</dt><dd><a href="` + s.base + `/thread/` + open.ID + `#` + open.ID + `"><bdi>And when?</bdi>`, `">1h</time></small></dd>`,
		`<dt>Stuck</dt>`, `>A claim by <bdi class="name">Bob</bdi></a> stopped <bdi class="name">Ann</bdi>’s claim`,
	}
	contains(t, look(s.base+"/"), news...)
	contains(t, look("/"), `<dt>Stuck</dt><dd><a href="`+s.base+`/claims#`, `’s claim <small>· backend</small></dd>`)
	jump.Store(int64(9 * time.Minute))
	contains(t, look(s.base+"/threads"), news...) // the last visit was a moment ago, so the news may be unread
	if text := look(s.base + "/thread/" + asked.ID); strings.Contains(text, "<dt>Decided</dt>") {
		t.Errorf("the catch-up is next to a thread:\n%s", text)
	}
	jump.Store(int64(time.Hour))
	text := look(s.base + "/")
	if strings.Contains(text, "<dt>Decided</dt>") || strings.Contains(text, "<dt>Closed</dt>") {
		t.Errorf("after a second visit:\n%s", text)
	}
	contains(t, look("/p/"+front.Slug+"/"), `<bdi>in front</bdi>`) // the visits above were not to this project
}

// TestSaid checks that a thread of more than four messages has a summary above it, and that a shorter one has none.
func TestSaid(t *testing.T) {
	t.Parallel()
	s := open(t, page.Config{Person: "pat"})
	b := s.browser()
	bodies := []string{"Which index?", "Decided: the <first> one", "- [ ] Ann builds it", "Agreed: tonight", "Decision: in UTC"}
	for i, body := range bodies {
		if i == 4 && strings.Contains(b.see(s.base+"/thread/T"), `class="said"`) {
			t.Error("a thread of four messages has a summary")
		}
		s.send([]string{"Ann", "Bob"}[i%2], maildir.Draft{To: []string{"pat", "Ann", "Bob"}, Subject: "Index", Body: body, ThreadID: "T"})
	}
	contains(t, b.see(s.base+"/thread/T"), `class="said"`)
	last := s.send("Ann", maildir.Draft{To: []string{"pat"}, Subject: "Index", Body: "Resolution: on Friday\n\nWho starts?", ThreadID: "T"})
	text := b.see(s.base + "/thread/T")
	contains(t, text, `<dt>Asked</dt><dd title="Who starts?"><a href="#`+last.ID+`"><bdi>Who starts?</bdi></a></dd>`,
		`<dt>Decided</dt><dd title="tonight">`, `<bdi>in UTC</bdi>`, `<bdi>on Friday</bdi>`, "+ 1 earlier",
		`<dt>Open</dt><dd title="Ann builds it">`)
	if strings.Contains(text, "the &lt;first&gt; one</bdi>") {
		t.Errorf("an older decision is shown:\n%s", text)
	}
	for range 5 {
		s.send("Ann", maildir.Draft{To: []string{"pat"}, Subject: "Chat", Body: "Nothing.", ThreadID: "T-2"})
	}
	if strings.Contains(b.see(s.base+"/thread/T-2"), `class="said"`) {
		t.Error("a thread that decides nothing has a summary")
	}
	for range 48 { // the second page has four messages
		s.send("Ann", maildir.Draft{To: []string{"pat"}, Subject: "Index", Body: "Nothing.", ThreadID: "T"})
	}
	pages := b.follow(s.base + "/thread/T")
	if len(pages) != 2 {
		t.Errorf("54 messages have %d pages", len(pages))
	}
	for _, text := range pages {
		contains(t, text, `class="said"`)
	}
}

// TestDecisions checks that the decisions of a project are listed, newest first, with links to their messages.
func TestDecisions(t *testing.T) {
	t.Parallel()
	s := open(t, page.Config{Person: "pat"})
	b := s.browser()
	d := maildir.Draft{To: []string{"pat"}, Subject: "Which?", Body: "Decision: only in front"}
	if _, err := s.second().Box("Xia", format.Origin{}).Send(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	contains(t, b.see(s.base+"/decisions"), "No decisions yet.", "<code>Decision:</code>")
	first := s.send("Ann", maildir.Draft{To: []string{"Bob"}, Subject: "Which index?", Body: "Decision: the <first> one"})
	second := s.send("Bob", maildir.Draft{To: []string{"Ann"}, Subject: "Re: Which index?", Body: "Agreed: the second", ThreadID: first.ID})
	text := b.see(s.base + "/decisions")
	link := `<a class="row" href="` + s.base + `/thread/` + first.ID + `#`
	contains(t, text, link+first.ID+`"`, link+second.ID+`"`, "<bdi>the &lt;first&gt; one</bdi> <small><bdi>Which index?</bdi></small>",
		`<a href="`+s.base+`/decisions" aria-current="page">Decisions</a>`)
	if strings.Index(text, "the second") > strings.Index(text, "the &lt;first&gt;") {
		t.Errorf("the oldest comes first:\n%s", text)
	}
	contains(t, b.see(s.base+"/more"), s.base+`/decisions"><span class="what">Decisions`)
}
