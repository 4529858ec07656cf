package page_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"mailtree/fixtures/storetest"
	"mailtree/fixtures/waits"
	"mailtree/maildir"
	"mailtree/maildir/format"
	"mailtree/maildir/index"
	"mailtree/mcp"
	"mailtree/page"
)

func TestMain(m *testing.M) {
	if err := storetest.Isolate(os.Setenv); err != nil {
		panic(err)
	}
	waits.Tune()
	status := m.Run()
	if chromium.end != nil {
		if err := chromium.end(); err != nil {
			panic(err)
		}
	}
	os.Exit(status)
}

// site is the web page of a store, and the server that serves the page. The store has one project, with the agents Ann
// and Bob and the user pat.
type site struct {
	*testing.T
	page  *page.Page
	store *storetest.Store
	p     *maildir.Project
	user  string // the user who signs in
	url   string // server's URL
	base  string // path of the project
}

func open(t *testing.T, cfg page.Config) *site {
	t.Helper()
	s := bare(t, cfg)
	for _, name := range []string{"Ann", "Bob", "pat"} {
		if err := s.p.Agents.EnsureAgent(t.Context(), name, maildir.Registration{Program: "test"}); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// bare returns the web page of a store whose project has no agents.
func bare(t *testing.T, cfg page.Config) *site {
	t.Helper()
	return bareStore(t, cfg, storetest.Config{NoWatcher: true, Now: cfg.Now})
}

// bareStore is like bare, but with settings for the store.
func bareStore(t *testing.T, cfg page.Config, of storetest.Config) *site {
	t.Helper()
	s := &site{T: t, store: storetest.Open(t, of), user: "pat"}
	var err error
	if s.p, err = s.store.EnsureProject(t.Context(), "/code/backend"); err != nil {
		t.Fatal(err)
	}
	cfg.Store = s.store.Store
	s.page = page.New(cfg)
	server := httptest.NewServer(s.served())
	t.Cleanup(server.Close)
	s.url, s.base = server.URL, "/p/"+s.p.Slug
	return s
}

// served returns the handler of the server that serves the page.
func (s *site) served() http.Handler {
	return mcp.New(mcp.Config{Store: s.store.Store, Page: s.page}).Handler()
}

func (s *site) send(from string, d maildir.Draft) *maildir.Sent {
	s.Helper()
	sent, err := s.p.Box(from, format.Origin{}).Send(s.Context(), d)
	if err != nil {
		s.Fatal(err)
	}
	return sent
}

// browser is a client that keeps cookies but does not follow redirects.
type browser struct {
	*site
	cookies []*http.Cookie
}

func (s *site) browser() *browser { return &browser{site: s} }

// person returns a browser in which the user is signed in.
func (s *site) person() *browser {
	b := s.browser()
	res, _ := b.get(s.page.Link(s.user, "uid:1000", ""))
	b.cookies = res.Cookies()
	if len(b.cookies) != 1 {
		s.Fatal("the link sets no cookie")
	}
	return b
}

func (b *browser) do(r *http.Request) (*http.Response, string) {
	b.Helper()
	for _, c := range b.cookies {
		r.AddCookie(c)
	}
	if r.Header.Get("Accept") == "" {
		r.Header.Set("Accept", "text/html")
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.Do(r)
	if err != nil {
		b.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		b.Fatal(err)
	}
	return res, string(text)
}

func (b *browser) get(path string) (*http.Response, string) {
	b.Helper()
	r, err := http.NewRequestWithContext(b.Context(), http.MethodGet, b.url+path, nil)
	if err != nil {
		b.Fatal(err)
	}
	return b.do(r)
}

// see returns the text of a view, which must exist.
func (b *browser) see(path string) string {
	b.Helper()
	res, text := b.get(path)
	if res.StatusCode != http.StatusOK {
		b.Fatalf("GET %s: %s\n%s", path, res.Status, text)
	}
	return text
}

// post sends a form. head contains additional headers in the form "Name: value".
func (b *browser) post(path string, form url.Values, head ...string) (*http.Response, string) {
	b.Helper()
	r, err := http.NewRequestWithContext(b.Context(), http.MethodPost, b.url+path, strings.NewReader(form.Encode()))
	if err != nil {
		b.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for _, line := range head {
		name, value, _ := strings.Cut(line, ": ")
		r.Header.Set(name, value)
	}
	return b.do(r)
}

var hidden = regexp.MustCompile(`<input type="(?:hidden" name="(\w+)" value="([^"]*)">|checkbox" name="(to|cc|kept)" value="([^"]*)" checked)`)

// form returns the values of the hidden fields and of the recipient chips in a view.
func (b *browser) form(path string) url.Values {
	b.Helper()
	values := url.Values{}
	for _, m := range hidden.FindAllStringSubmatch(b.see(path), -1) {
		if m[3] != "" {
			values.Add(m[3], m[4])
			continue
		}
		values.Set(m[1], m[2])
	}
	return values
}

func contains(t *testing.T, text string, wanted ...string) {
	t.Helper()
	for _, w := range wanted {
		if !strings.Contains(text, w) {
			t.Errorf("%q is not in\n%s", w, text)
		}
	}
}

// TestViews checks that every view shows its content, with and without a session, and does not load anything from
// other sites.
func TestViews(t *testing.T) {
	t.Parallel()
	s := open(t, page.Config{Person: "pat"})
	sent := s.send("Ann", maildir.Draft{To: []string{"pat"}, Subject: "Which index?", Body: "By *name*?", AckRequired: true})
	held := claimOf("Bob", "app/api/*.py")
	held.TTL = 2*time.Hour - time.Minute
	if _, err := s.p.Box(held.Agent, format.Origin{}).Claim(t.Context(), held); err != nil {
		t.Fatal(err)
	}
	b := s.browser()
	for path, wanted := range map[string][]string{
		"/":                            {"Needs you", "Ann", "Which index?", "needs acknowledgement", "<b>1</b>"},
		"/inbox":                       {"All mail", "Which index?"},
		"/inbox?archived=1":            {"Including archived", "Which index?"},
		"/threads":                     {"Which index?"},
		"/threads?q=from:Bob":          {"No matching threads"},
		"/search?q=name":               {"<mark>", "Which index?"},
		"/search?q=nothing":            {"No messages match"},
		"/thread/" + sent.ID:           {"By <em>name</em>?", "self-asserted", "✓ delivered", "mailtree open"},
		"/thread/" + sent.ID + "/atom": {"<title>Which index?</title>", "By *name*?"},
		"/message/" + sent.ID + "/raw": {"---json", "By *name*?"},
		"/compose?to=Ann":              {"mailtree open"},
		"/agents":                      {"Ann", "Bob", "pat", ">1 claim</a>"},
		"/claims":                      {"app/api/*.py", "Bob", "1h 59m left"},
		"/activity":                    {"Ann", "wrote", "Which index?", "claimed"},
		"/activity?agent=Bob":          {"claimed"},
		"/problems":                    {"All files are valid.", "Needs you <b>1</b>", "Now <small>3</small>"},
	} {
		res, text := b.get(s.base + path)
		if res.StatusCode != http.StatusOK {
			t.Errorf("GET %s: %s\n%s", path, res.Status, text)
		}
		contains(t, text, wanted...)
		if got := res.Header.Get("Content-Security-Policy"); !strings.HasPrefix(got, "default-src 'none'; ") || strings.Contains(got, "unsafe") {
			t.Errorf("GET %s: the policy is %q", path, got)
		}
	}
	for _, file := range []string{"/static/style.css", "/static/script.js"} {
		b.see(file)
	}
	if res, _ := b.get("/"); res.Header.Get("Location") != s.base+"/" {
		t.Errorf("GET / leads to %q", res.Header.Get("Location"))
	}
	if res, _ := b.get(s.base + "/message/" + sent.ID); res.Header.Get("Location") != s.base+"/thread/"+sent.ID+"#"+sent.ID {
		t.Errorf("the message is at %q", res.Header.Get("Location"))
	}
}

// TestThreadNames checks that the URL of a thread works for every thread id.
func TestThreadNames(t *testing.T) {
	t.Parallel()
	s := open(t, page.Config{})
	b := s.person()
	for _, name := range []string{".", "..", "../claims", "a/b", "100%", "%2e", "?", "#1"} {
		s.send("Ann", maildir.Draft{To: []string{"pat"}, Subject: "one of " + name, Body: "b", ThreadID: name})
		sent := s.send("Ann", maildir.Draft{To: []string{"pat"}, Subject: "two of " + name, Body: "b", ThreadID: name})
		res, _ := b.get(s.base + "/message/" + sent.ID)
		at, _, _ := strings.Cut(res.Header.Get("Location"), "#")
		both := []string{"one of " + name, "two of " + name}
		contains(t, b.see(at), append(both, `href="`+at+`"`, `data-draft="reply `)...)
		contains(t, b.see(at+"/atom"), both...)
	}
}

// TestSize checks that the first view, including the style sheet and the script, is at most 46 kB, and the script at
// most 16 KiB.
func TestSize(t *testing.T) {
	t.Parallel()
	s := open(t, page.Config{Person: "pat"})
	b := s.browser()
	script := len(b.see("/static/script.js"))
	if all := script + len(b.see("/static/style.css")) + len(b.see(s.base+"/")); script > 16_384 || all > 46_000 {
		t.Errorf("the script has %d bytes, the first screen %d", script, all)
	}
}

// TestRefusals checks that invalid requests, and requests for items that do not exist, are refused with a sentence.
func TestRefusals(t *testing.T) {
	t.Parallel()
	s := open(t, page.Config{})
	b := s.browser()
	for path, status := range map[string]int{
		"/nothing":                  http.StatusNotFound,
		"/p/nothing/":               http.StatusNotFound,
		s.base + "/thread/nothing":  http.StatusNotFound,
		s.base + "/message/nothing": http.StatusNotFound,
		s.base + "/file/00":         http.StatusNotFound,
		s.base + "/search?q=%28%29": http.StatusBadRequest,
		"/open/nothing":             http.StatusForbidden,
	} {
		if res, text := b.get(path); res.StatusCode != status || !strings.Contains(text, "<main") || strings.Contains(text, "--project") {
			t.Errorf("GET %s: %s\n%s", path, res.Status, text)
		}
	}
	_, text := b.get("/p/nothing/")
	contains(t, text, "No project &#34;nothing&#34;.")
}

// TestSession checks that a link works only once, and that a closed page shows nothing without a session.
func TestSession(t *testing.T) {
	t.Parallel()
	s := open(t, page.Config{Closed: true})
	link := s.page.Link("pat", "uid:1000", s.p.Slug)
	b := s.browser()
	if res, text := b.get(s.base + "/"); res.StatusCode != http.StatusForbidden || strings.Contains(text, "<h1>Needs you") {
		t.Errorf("without a session: %s\n%s", res.Status, text)
	}
	res, _ := b.get(link)
	cookies := res.Cookies()
	if len(cookies) != 1 || !cookies[0].HttpOnly || cookies[0].SameSite != http.SameSiteStrictMode {
		t.Fatalf("the link sets the cookies %v", cookies)
	}
	if to := res.Header.Get("Location"); to != s.base+"/" {
		t.Errorf("a project's link leads to %q", to)
	}
	if res, _ := b.get(link); res.StatusCode != http.StatusForbidden || len(res.Cookies()) != 0 {
		t.Errorf("the link works twice: %s", res.Status)
	}
	b.cookies = cookies
	contains(t, b.see(s.base+"/"), "pat")
	forged := *cookies[0]
	forged.Value = "x" + forged.Value[1:]
	b.cookies = []*http.Cookie{&forged}
	if res, _ := b.get(s.base + "/"); res.StatusCode != http.StatusForbidden {
		t.Errorf("a forged cookie: %s", res.Status)
	}
}

// TestReply checks that a user can reply, that a second click does not send another message, and that the reply is
// verified as the user's.
func TestReply(t *testing.T) {
	t.Parallel()
	s := open(t, page.Config{})
	asked := s.send("Ann", maildir.Draft{To: []string{"pat"}, Subject: "Which index?", Body: "a?"})
	b := s.person()
	thread := s.base + "/thread/" + asked.ID
	form := b.form(thread)
	form.Set("body", "By name.\r\n")
	for range 2 {
		res, text := b.post(s.base+"/send", form)
		if res.StatusCode != http.StatusSeeOther {
			t.Fatalf("%s\n%s", res.Status, text)
		}
	}
	contains(t, b.see(thread), "By name.", "person, uid 1000", "✓ read")
	rows, err := s.p.Thread(t.Context(), asked.ID, true)
	if err != nil || len(rows) != 2 || rows[1].Body != "By name.\n" || rows[1].Subject != "Re: Which index?" {
		t.Errorf("the thread is %+v, %v", rows, err)
	}
	if text := b.see(s.base + "/"); !strings.Contains(text, "Nothing needs you.") {
		t.Errorf("an answered message is still waiting:\n%s", text)
	}
}

// TestReplyToAll checks that a reply to all does not reach any recipient twice. The reply must not go to the user,
// even if the message lists the user's address. If the author is at another domain, only the author must be selected.
func TestReplyToAll(t *testing.T) {
	t.Parallel()
	s := open(t, page.Config{})
	s.send("Ann", maildir.Draft{To: []string{"pat"}, Subject: "s", Body: "b"})
	b := s.person()
	const text = `{"id": "hand", "from": "eve@example.net", "to": ["Pat+x@mailtree.local", "pat"], "cc": ["Ann", "pat@mailtree.local"], "subject": "s", "created": "2025-10-23T15:22:14Z"}`
	for _, path := range []string{"messages/hand.md", "agents/pat/inbox/hand.md"} {
		file := filepath.Join(s.p.Dir(), path)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte("---json\n"+text+"\n---\n\nb\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.p.Rescan(t.Context()); err != nil {
		t.Fatal(err)
	}
	contains(t, b.see(s.base+"/thread/hand"), `name="to" value="eve@example.net" checked data-sole`, `name="cc" value="Ann">`)
}

// TestReplyRecipients checks that a reply keeps the message's CC recipients, as a reply from the command line does,
// and goes only to selected recipients. If no recipient is selected, the reply must be refused.
func TestReplyRecipients(t *testing.T) {
	t.Parallel()
	s := open(t, page.Config{})
	sent := s.send("Ann", maildir.Draft{To: []string{"pat"}, CC: []string{"Bob", "pat"}, Subject: "s", Body: "b"})
	b := s.person()
	for _, c := range []struct{ to, cc, want string }{{"Ann", "Bob", "Ann/Bob"}, {"Ann", "", "Ann/"}, {"", "Bob", "Bob/"}, {"", "", "refused"}} {
		form := b.form(s.base + "/thread/" + sent.ID + "?reply=" + sent.ID)
		if got := form.Get("to") + "/" + form.Get("cc"); got != "Ann/Bob" {
			t.Fatalf("the form has %q", got)
		}
		form.Set("to", c.to)
		form.Set("cc", c.cc)
		form.Set("body", "to "+c.want)
		res, text := b.post(s.base+"/send", form)
		if c.want == "refused" {
			contains(t, text, "no recipient is selected", `id="to" name="to"`, `aria-invalid="true"`)
			continue
		}
		m, err := s.p.MessageHead(t.Context(), s.newest(sent.ID))
		if err != nil || res.StatusCode != http.StatusSeeOther {
			t.Fatal(res.Status, text, err)
		}
		if got := strings.Join(m.To, ",") + "/" + strings.Join(m.CC, ","); got != c.want {
			t.Errorf("it goes to %q, not %q", got, c.want)
		}
	}
}

// TestWrites checks that each form performs its action on behalf of the session's user.
func TestWrites(t *testing.T) {
	t.Parallel()
	s := open(t, page.Config{})
	b := s.person()
	form := b.form(s.base + "/compose")
	for name, value := range map[string]string{"to": "Ann, Bob", "subject": "Plan", "body": "b", "importance": "high", "ack": "1"} {
		form.Set(name, value)
	}
	if res, text := b.post(s.base+"/send", form); res.StatusCode != http.StatusSeeOther {
		t.Fatalf("%s\n%s", res.Status, text)
	}
	inbox, err := s.p.Box("Bob", format.Origin{}).Inbox(t.Context(), index.InboxQuery{}, false, maildir.Waiting{})
	if err != nil || len(inbox.Messages) != 1 || inbox.Messages[0].From != "pat" || !inbox.Messages[0].AckRequired {
		t.Fatalf("Bob has %+v, %v", inbox, err)
	}
	contains(t, b.see(s.base+"/"), "have not acknowledged")

	asked := s.send("Ann", maildir.Draft{To: []string{"pat"}, Subject: "Yes?", Body: "a?", AckRequired: true})
	form = b.form(s.base + "/thread/" + asked.ID)
	form.Set("as", "acknowledged")
	b.post(s.base+"/message/"+asked.ID+"/mark", form)
	if d, err := s.p.Box("pat", format.Origin{}).Delivery(t.Context(), asked.ID); err != nil || !d.Acked || !d.Read {
		t.Errorf("the delivery is %+v, %v", d, err)
	}

	if _, err := s.p.Box(claimOf("Bob", "app/api/*.py").Agent, format.Origin{}).Claim(t.Context(), claimOf("Bob", "app/api/*.py")); err != nil {
		t.Fatal(err)
	}
	text := b.press(s.base+"/claims", s.base+"/claims/release")
	contains(t, text, "Released. The holder has been notified.", "Undo <kbd>")
	if claims, err := s.p.Claims.List(t.Context(), false); err != nil || len(claims) != 0 {
		t.Errorf("the claims are %v, %v", claims, err)
	}
	inbox, err = s.p.Box("Bob", format.Origin{}).Inbox(t.Context(), index.InboxQuery{Bodies: true}, false, maildir.Waiting{})
	if err != nil || inbox.Messages[0].Subject != "Your claim on app/api/*.py was released" {
		t.Errorf("Bob is notified %+v, %v", inbox, err)
	}
	contains(t, b.see(s.base+"/activity?agent=pat"), "released", "app/api/*.py")
	contains(t, b.see(s.base+"/message/"+inbox.Messages[0].ID+"/history"), "released the claim and sent this notice")
	contains(t, b.press(s.base+"/compose", s.base+"/message/"+inbox.Messages[0].ID+"/undo"), "Undone.")
	if claims, err := s.p.Claims.List(t.Context(), false); err != nil || len(claims) != 1 || claims[0].Agent != "Bob" {
		t.Errorf("the claims are %v, %v", claims, err)
	}
}

// TestForgery checks that forms are accepted only from a page in the session.
func TestForgery(t *testing.T) {
	t.Parallel()
	s := open(t, page.Config{Person: "pat"})
	b := s.person()
	form := b.form(s.base + "/compose")
	form.Set("to", "Ann")
	form.Set("subject", "s")
	form.Set("body", "b")
	other := s.person()
	other.cookies[0].Value = s.person().cookies[0].Value
	for name, c := range map[string]struct {
		from *browser
		csrf string
		head string
	}{
		"no session":       {s.browser(), form.Get("csrf"), ""},
		"no csrf":          {b, "", ""},
		"a wrong csrf":     {b, form.Get("csrf") + "x", ""},
		"another's csrf":   {other, form.Get("csrf"), ""},
		"another origin":   {b, form.Get("csrf"), "Origin: http://evil.example"},
		"another port":     {b, form.Get("csrf"), "Origin: http://127.0.0.1:1"},
		"no origin at all": {b, form.Get("csrf"), "Origin: null"},
		"another site":     {b, form.Get("csrf"), "Sec-Fetch-Site: cross-site"},
	} {
		values := url.Values{}
		for k, v := range form {
			values[k] = v
		}
		values.Set("csrf", c.csrf)
		var head []string
		if c.head != "" {
			head = []string{c.head}
		}
		for _, path := range []string{"/send", "/message/x/mark", "/claims/release"} {
			if res, _ := c.from.post(s.base+path, values, head...); res.StatusCode != http.StatusForbidden {
				t.Errorf("%s: POST %s: %s", name, path, res.Status)
			}
		}
	}
	if res, text := b.post(s.base+"/send", form, "Origin: "+s.url, "Sec-Fetch-Site: same-origin"); res.StatusCode != http.StatusSeeOther {
		t.Errorf("its own form: %s\n%s", res.Status, text)
	}
}

// TestFormAgain checks that a refused message is not lost. The form must be shown again with its content and the
// reason for the refusal, and can then be sent.
func TestFormAgain(t *testing.T) {
	t.Parallel()
	s := open(t, page.Config{})
	b := s.person()
	form := b.form(s.base + "/compose")
	for name, value := range map[string]string{
		"to": "Nob", "cc": "Ann", "subject": "Plan", "body": "Long <thought>", "importance": "high", "ack": "1",
	} {
		form.Set(name, value)
	}
	res, text := b.post(s.base+"/send", form)
	if res.StatusCode != http.StatusNotFound {
		t.Errorf("the response to a wrong name is %s", res.Status)
	}
	contains(t, text, `role="alert"`, "Bob", `value="Nob"`, `value="Ann"`, `value="Plan"`, "Long &lt;thought&gt;</textarea>",
		"<option selected>high", `name="ack" value="1" checked`)
	if strings.Contains(text, "data-stream") {
		t.Error("the page reloads the address of a form for updates")
	}

	form.Set("to", "Bob")
	form.Set("body", " \r\n")
	res, text = b.post(s.base+"/send", form)
	if res.StatusCode != http.StatusBadRequest {
		t.Errorf("the response to a message without text is %s", res.Status)
	}
	contains(t, text, "the message has no text", `value="Plan"`)

	asked := s.send("Ann", maildir.Draft{To: []string{"pat"}, Subject: "Which index?", Body: "a?"})
	form = b.form(s.base + "/thread/" + asked.ID)
	form.Set("body", " ")
	_, text = b.post(s.base+"/send", form)
	contains(t, text, "the message has no text", "Reply to", "Which index?", `value="`+asked.ID+`"`)
	form.Set("body", "My answer")
	if _, err := s.p.Box("Ann", format.Origin{}).Delete(t.Context(), asked.ID); err != nil {
		t.Fatal(err)
	}
	_, text = b.post(s.base+"/send", form)
	contains(t, text, "My answer</textarea>", `id="to"`)
}
