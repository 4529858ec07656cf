package page_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"mailtree/maildir"
	"mailtree/maildir/format"
	"mailtree/page"
)

// TestAllProjects checks that one list shows the items that are waiting for the user in all projects, and that the list
// stays next to an open thread. After an answer, the page must show the next thread, even if it is in another project.
// The user must be able to undo the answer from that thread.
func TestAllProjects(t *testing.T) {
	t.Parallel()
	s := open(t, page.Config{})
	front := s.second()
	mine := s.send("Ann", maildir.Draft{To: []string{"pat"}, Subject: "Which?", Body: "b"}).ID
	theirs, err := front.Box("Xia", format.Origin{}).Send(t.Context(), maildir.Draft{To: []string{"pat"}, Subject: "May I?", Body: "b"})
	if err != nil {
		t.Fatal(err)
	}
	b := s.person()
	at := "/p/" + front.Slug + "/"
	thread := at + "thread/" + theirs.ID + "?in=all"
	contains(t, b.see("/"), `<a href="/" title="" aria-current="true"><span>All projects <small></small></span> <b>2</b></a>`, "Which?", "May I?",
		`<small>front</small>`, `href="`+thread+"#"+theirs.ID+`"`, `data-stream="/stream?at=`)
	contains(t, b.see(thread), "Which?", `href="/">‹ All projects`, `<span>front <small>/code/front</small></span> <b>1</b>`)

	form := b.form(thread)
	form.Set("as", "yes")
	res, text := b.post(at+"message/"+theirs.ID+"/decide", form)
	to, _, _ := strings.Cut(res.Header.Get("Location"), "#")
	if !strings.HasPrefix(to, s.base+"/thread/"+mine+"?in=all&") {
		t.Fatalf("it leads to %q\n%s", to, text)
	}
	text = b.see(to)
	contains(t, text, "Sent to Xia.", "Which?")
	undo := undoes.FindStringSubmatch(text)
	if undo == nil || !strings.HasPrefix(undo[1], at+"message/") {
		t.Fatalf("it is undone at %q", undo)
	}
	if text := b.see("/"); strings.Contains(text, "May I?") || !strings.Contains(text, "Which?") {
		t.Errorf("after the answer:\n%s", text)
	}
	form = b.form(to)
	res, text = b.post(undo[1], form, "Referer: "+s.url+to) // sent from the next thread, which is in another project
	if to := res.Header.Get("Location"); !strings.HasPrefix(to, at+"thread/"+theirs.ID+"?") || !strings.Contains(to, "in=all") {
		t.Errorf("after undo, it leads to %q\n%s", to, text)
	}
	contains(t, b.see("/"), "May I?")
	form = b.form(thread)
	form.Set("as", "later")
	form.Set("next", "")
	if res, text := b.post(at+"message/"+theirs.ID+"/mark", form, "Referer: "+s.url+thread); !strings.HasPrefix(res.Header.Get("Location"), "/?") {
		t.Errorf("after Later, it leads to %q\n%s", res.Header.Get("Location"), text)
	}
	last := s.base + "/thread/" + mine + "?in=all"
	form = b.form(last)
	form.Set("as", "yes")
	res, text = b.post(s.base+"/message/"+mine+"/decide", form, "Referer: "+s.url+last)
	if to := res.Header.Get("Location"); !strings.HasPrefix(to, last+"&") {
		t.Errorf("after the last answer, it leads to %q\n%s", to, text)
	}
}

// TestServed checks that the server passes every path of the page to the page.
func TestServed(t *testing.T) {
	t.Parallel()
	s := open(t, page.Config{})
	s.second()
	server := s.served()
	ended, end := context.WithCancel(t.Context())
	end()
	patterns := append(s.page.Patterns(), "GET /{$}", "GET /nothing")
	for _, pattern := range patterns {
		method, path, found := strings.Cut(pattern, " ")
		if !found {
			method, path = http.MethodGet, pattern
		}
		path = strings.NewReplacer("{project}", s.p.Slug, "{$}", "", "{", "", "}", "").Replace(path)
		r := httptest.NewRequestWithContext(t.Context(), method, "http://127.0.0.1"+path, nil)
		r.Header.Set("Accept", "text/html")
		if strings.HasSuffix(path, "/stream") {
			r = r.WithContext(ended)
		}
		res := httptest.NewRecorder()
		server.ServeHTTP(res, r)
		if text := res.Body.String(); strings.Contains(text, "there is nothing here") || strings.Contains(text, "Method Not Allowed") {
			t.Errorf("%s: %d %s", pattern, res.Code, text)
		}
	}
	for _, c := range []struct {
		accept, part string
		page         bool
	}{{"text/html", "", true}, {"*/*", "1", true}, {"*/*", "", false}} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1/", nil)
		r.Header.Set("Accept", c.accept)
		r.Header.Set("Mailtree-Fragment", c.part)
		res := httptest.NewRecorder()
		server.ServeHTTP(res, r)
		if got := strings.Contains(res.Body.String(), "All projects"); got != c.page {
			t.Errorf("GET / by %+v: %s", c, res.Body)
		}
	}
}

// second creates another project, in which Xia and pat work.
func (s *site) second() *maildir.Project {
	s.Helper()
	front, err := s.store.EnsureProject(s.Context(), "/code/front")
	if err != nil {
		s.Fatal(err)
	}
	for _, name := range []string{"Xia", "pat"} {
		if err := front.Agents.EnsureAgent(s.Context(), name, maildir.Registration{Program: "test"}); err != nil {
			s.Fatal(err)
		}
	}
	return front
}

// TestAllDone checks that the user can mark rows from several projects as done together, and undo that with one click.
// A thread that asks for an answer must not change. Each kind of diagnostic must have one line for all projects, and
// one click must dismiss all diagnostics.
func TestAllDone(t *testing.T) {
	t.Parallel()
	s := open(t, page.Config{})
	front := s.second()
	mine := s.send("Ann", maildir.Draft{To: []string{"pat"}, Subject: "Mine", Body: "b"}).ID
	theirs, err := front.Box("Xia", format.Origin{}).Send(t.Context(), maildir.Draft{To: []string{"pat"}, Subject: "Theirs", Body: "b"})
	if err != nil {
		t.Fatal(err)
	}
	asks := s.send("Ann", maildir.Draft{To: []string{"pat"}, Subject: "Which?", Body: "b"}).ID
	b := s.person()
	rows := []string{s.p.Slug + ":" + mine, front.Slug + ":" + theirs.ID}
	contains(t, b.see("/"), `action="/done"`, `name="message" value="`+rows[0]+`"`, `name="message" value="`+rows[1]+`"`)
	contains(t, b.see(s.base+"/thread/"+asks+"?in=all"), `action="/done"`, `name="message" value="`+rows[1]+`"`)
	if text := b.see("/"); strings.Contains(text, `value="`+s.p.Slug+":"+asks) {
		t.Errorf("a row that asks can be marked as done:\n%s", text)
	}
	text := b.press("/", "/done", "message", strings.Join(rows, ","))
	contains(t, text, "Marked as read: 2 messages.", "Which?")
	if strings.Contains(text, "Theirs") || s.marks(mine) != "read" {
		t.Errorf("the marks are %q:\n%s", s.marks(mine), text)
	}
	contains(t, b.press("/", undoes.FindStringSubmatch(text)[1]), "Undone", "Mine", "Theirs", "Which?")
	text = b.press("/", "/done", "message", rows[1])
	contains(t, text, "Marked as read: <bdi>Theirs</bdi>")

	form := b.form("/")
	form.Set("message", front.Slug+":"+theirs.ID+","+s.p.Slug+":"+asks)
	if res, text := b.post("/done", form); res.StatusCode != http.StatusConflict || s.marks(asks) != "" {
		t.Errorf("a thread that asks: %s\n%s", res.Status, text)
	}
	for _, wrong := range []string{"nothing:" + mine, mine, ":" + mine} {
		form.Set("message", wrong)
		if res, text := b.post("/done", form); res.StatusCode != http.StatusNotFound {
			t.Errorf("%q: %s\n%s", wrong, res.Status, text)
		}
	}
	form.Set("csrf", "x")
	for _, path := range []string{"/done", "/dismiss", "/message/" + rows[0] + "/undo"} {
		if res, _ := b.post(path, form); res.StatusCode != http.StatusForbidden {
			t.Errorf("POST %s: %s", path, res.Status)
		}
	}

	for _, p := range []*maildir.Project{s.p, front} {
		bad := filepath.Join(p.Dir(), "claims", "bad.json")
		err := errors.Join(os.MkdirAll(filepath.Dir(bad), 0o700), os.WriteFile(bad, []byte("{"), 0o600), p.Rescan(t.Context()))
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, who := range []string{"Bob", "Ann"} {
		if _, err := s.p.Box(who, format.Origin{}).Claim(t.Context(), claimOf(who, "app/api/*.py")); err != nil {
			t.Fatal(err)
		}
	}
	text = b.see("/")
	contains(t, text, `A claim stopped <bdi class="name">Ann</bdi>’s claim of <code>app/api/*.py</code>`, `Bob</bdi>) in backend <time datetime="`,
		"2 files with errors", `/problems">show backend</a>, <a href="/p/`+front.Slug+`/problems">show front</a>`, `action="/dismiss"`)
	age := `<time datetime="[^"]*" title="[^"]*">(now|\d+[mhd])</time>` // a slow machine may show "1m"
	for place, ends := range map[string]string{"/": age + ` <a href="` + s.base + `/claims#`, s.base + "/claims": age + `</p>`} {
		if text := b.see(place); !regexp.MustCompile(ends).MatchString(text) {
			t.Errorf("GET %s: the text does not match %s:\n%s", place, ends, text)
		}
	}
	if text = b.press("/", "/dismiss"); strings.Contains(text, "A claim stopped") || strings.Contains(text, "with errors") {
		t.Errorf("after Dismiss:\n%s", text)
	}
	if text = b.see(s.base + "/"); strings.Contains(text, "A claim stopped") || strings.Contains(text, "with errors") {
		t.Errorf("after Dismiss, in the project:\n%s", text)
	}
}

// TestBrowserAll checks the keys x, X and e in the list of all projects. The e key must not mark a thread that has an
// unsent answer.
func TestBrowserAll(t *testing.T) {
	t.Parallel()
	s := open(t, page.Config{})
	front := s.second()
	first := s.send("Ann", maildir.Draft{To: []string{"pat"}, Subject: "One", Body: "b"}).ID
	for _, subject := range []string{"Two", "Three"} {
		d := maildir.Draft{To: []string{"pat"}, Subject: subject, Body: "b"}
		if _, err := front.Box("Xia", format.Origin{}).Send(t.Context(), d); err != nil {
			t.Fatal(err)
		}
	}
	b := s.tab()
	b.hold()
	b.enter()
	b.must("see all of them", said("a", "One"), said("a", "Three"))
	b.must("open the last", press("j"), press("j"), press("j"), press("o"), chromedp.WaitVisible(`#reply-body`))
	b.must("write", press("r"), chromedp.SendKeys(`#reply-body`, "Half of it"), chromedp.Blur(`#reply-body`), press("u"), chromedp.WaitVisible(`.idle`), ready)
	if _, err := s.p.Box("pat", format.Origin{}).SetRead(t.Context(), first, false); err != nil {
		t.Fatal(err)
	}
	b.must("see it as unread", said("a", "One"))
	b.pass("1.1")
	b.must("be done with it", chromedp.Focus(`//a[contains(., "One")]`), press("e"), said("p", "You have an unsent answer"))
	b.must("select the others", chromedp.Focus(`//a[contains(., "Three")]`), press("x"), press("j"), press("X"))
	b.expect("2", `String(document.querySelectorAll("[name=message]:checked").length)`)
	b.must("be done with them", press("e"), said("p", "Marked as read: 2 messages."))
	b.expect("One", `[...document.querySelectorAll(".list .what")].map(e => e.textContent).join()`)
	b.expect("/", `location.pathname`)
	b.must("undo", press("z"), said("p", "Undone"), said("a", "Three"), said("a", "Two"))
	if got := s.marks(first); got != "" {
		t.Errorf("the first is %q", got)
	}
}
