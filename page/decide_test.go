package page_test

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/input"
	cdp "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"mailtree/fixtures/waits"
	"mailtree/maildir"
	"mailtree/maildir/format"
	"mailtree/page"
)

// answers returns the text and the recipients of each message in a thread except the first.
func (s *site) answers(thread string) string {
	s.Helper()
	rows, err := s.p.Thread(s.Context(), thread, true)
	if err != nil {
		s.Fatal(err)
	}
	var all []string
	for _, m := range rows[1:] {
		all = append(all, strings.Join(m.To, ",")+": "+strings.TrimSpace(m.Body))
	}
	return strings.Join(all, "|")
}

// foreignAsk writes a question from an unknown sender into pat's inbox, and returns its id. more contains additional
// headers, each followed by a comma.
func (s *site) foreignAsk(more string) string {
	s.Helper()
	text := `{"id": "hand", ` + more + `"from": "eve@example.net", "to": ["pat"], "subject": "May I?", "created": "2025-10-23T15:22:14Z"}`
	for _, path := range []string{"messages/hand.md", "agents/pat/inbox/hand.md"} {
		file := filepath.Join(s.p.Dir(), path)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			s.Fatal(err)
		}
		if err := os.WriteFile(file, []byte("---json\n"+text+"\n---\n\nb?\n"), 0o600); err != nil {
			s.Fatal(err)
		}
	}
	if err := s.p.Rescan(s.Context()); err != nil {
		s.Fatal(err)
	}
	return "hand"
}

// TestBlocked checks that the browser notifies the user about urgent mail only if its author is proven. The
// notification must name the project.
func TestBlocked(t *testing.T) {
	t.Parallel()
	s := open(t, page.Config{})
	urgent := s.send("Ann", maildir.Draft{To: []string{"pat"}, Subject: "Stop?", Body: "b", Importance: "urgent", AckRequired: true}).ID
	s.send("Bob", maildir.Draft{To: []string{"pat"}, Subject: "Lunch", Body: "b", ThreadID: urgent}) // does not change the notice
	s.foreignAsk(`"importance": "urgent", "ack_required": true, `)
	s.asks("Bob", maildir.Pane{})
	text := s.person().see(s.base + "/")
	contains(t, text, "Blocked on you <small>3<", "backend: Ann, urgent: Stop?", "backend: Bob asks for permission in claude")
	if _, notices, _ := strings.Cut(text, "data-blocked="); strings.Contains(notices[:strings.Index(notices, ">")], "eve@example.net") {
		t.Errorf("it notifies the user about unproven mail:\n%s", notices)
	}
}

// TestLooked checks that the page reports which thread it shows, so that the user gets no notification about that
// thread.
func TestLooked(t *testing.T) {
	t.Parallel()
	var looked []string
	s := open(t, page.Config{Looked: func(project, thread string) { looked = append(looked, project+" "+thread) }})
	first := s.send("Ann", maildir.Draft{To: []string{"pat"}, Subject: "First", Body: "b"}).ID
	b := s.person()
	b.see(s.base + "/")
	b.see(s.base + "/thread/" + first)
	if want := []string{s.p.Slug + " " + first}; !slices.Equal(looked, want) {
		t.Errorf("%q instead of %q", looked, want)
	}
}

// TestDecide checks that Yes and No answer only the sender of the question, and that the answer includes the text in
// the form. The user must be able to undo the answer. The page must offer Yes and No only for verified mail that asks a
// question. They must refuse files rather than drop them. The page must offer Later under the same conditions. Later
// must hide the thread unless the form contains an answer.
func TestDecide(t *testing.T) {
	t.Parallel()
	s := open(t, page.Config{})
	b := s.person()
	decide := func(id, as, body string) *http.Response {
		t.Helper()
		form := b.form(s.base + "/thread/" + id)
		form.Set("as", as)
		form.Set("body", body)
		res, _ := b.post(s.base+"/message/"+id+"/decide", form)
		return res
	}
	asked := s.send("Ann", maildir.Draft{To: []string{"pat", "Bob"}, Subject: "May I?", Body: "b", AckRequired: true}).ID
	contains(t, b.see(s.base+"/thread/"+asked), `value="yes"`, `value="no"`, `value="later"`)
	if text := s.browser().see(s.base + "/thread/" + asked); strings.Contains(text, `value="yes"`) {
		t.Errorf("offered without a session:\n%s", text)
	}
	to := decide(asked, "yes", "But slowly.\r\n").Header.Get("Location")
	if got := s.answers(asked) + s.marks(asked); got != "Ann: Yes.\n\nBut slowly.acked" {
		t.Errorf("the answer is %q", got)
	}
	contains(t, b.see(strings.Split(to, "#")[0]), "Sent to Ann, acknowledged.", "Undo <kbd>")
	if text := b.see(s.base + "/thread/" + asked); strings.Contains(text, `value="yes"`) {
		t.Errorf("offered after the answer:\n%s", text)
	}
	b.press(s.base+"/compose", s.base+"/message/"+s.newest(asked)+"/undo")
	decide(asked, "no", "")
	if got := s.answers(asked); got != "Ann: No." {
		t.Errorf("the answer is %q", got)
	}

	asked = s.send("Ann", maildir.Draft{To: []string{"pat"}, Subject: "May I?", Body: "b"}).ID
	form := b.form(s.base + "/thread/" + asked)
	form.Set("as", "yes")
	form.Set("kept", "x")
	res, text := b.post(s.base+"/message/"+asked+"/decide", form)
	if res.StatusCode != http.StatusBadRequest || s.answers(asked) != "" {
		t.Errorf("with a file: %s, %q", res.Status, s.answers(asked))
	}
	contains(t, text, "a Yes or No answer cannot include files.")

	form = b.form(s.base + "/thread/" + asked)
	form.Set("as", "yes")
	ann := s.p.Box("Ann", format.Origin{})
	old, err := s.p.Amendable(t.Context(), asked)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ann.Amend(t.Context(), maildir.Amendment{ID: asked, Text: strings.TrimRight(old.Text, "\n") + " and c\n"}); err != nil {
		t.Fatal(err)
	}
	if res, _ := b.post(s.base+"/message/"+asked+"/decide", form); res.StatusCode != http.StatusConflict || s.answers(asked) != "" {
		t.Errorf("after a change: %s, %q", res.Status, s.answers(asked))
	}

	form = b.form(s.base + "/thread/" + asked)
	form.Set("as", "maybe")
	if res, _ := b.post(s.base+"/message/"+asked+"/decide", form); res.StatusCode != http.StatusBadRequest || s.answers(asked) != "" {
		t.Errorf("with another word: %s, %q", res.Status, s.answers(asked))
	}

	if text := b.see(s.base + "/thread/" + asked); strings.Contains(text, `value="later"`) {
		t.Errorf("offered for a message that lost its seal:\n%s", text)
	}
	b.press(s.base+"/thread/"+asked, s.base+"/message/"+asked+"/mark", "as", "archived")
	asked = s.send("Ann", maildir.Draft{To: []string{"pat"}, Subject: "May I?", Body: "b"}).ID
	form = b.form(s.base + "/thread/" + asked)
	form.Set("as", "later")
	form.Set("body", "My answer")
	_, text = b.post(s.base+"/message/"+asked+"/mark", form)
	contains(t, text, "Your answer has not been sent.", "My answer</textarea>")
	contains(t, b.press(s.base+"/thread/"+asked, s.base+"/message/"+asked+"/mark", "as", "later"), "Hidden for two hours: <bdi>May I?</bdi>", "Nothing needs you.")
	contains(t, b.press(s.base+"/compose", s.base+"/message/"+asked+"/undo"), "Undone", "May I?</bdi></span>")

	for what, id := range map[string]string{
		"foreign mail": s.foreignAsk(""),
		"news":         s.send("Ann", maildir.Draft{To: []string{"pat"}, Subject: "News", Body: "b"}).ID,
		"a long text":  s.send("Ann", maildir.Draft{To: []string{"pat"}, Subject: "May I?", Body: strings.Repeat("long ", 60_000)}).ID,
	} {
		if text := b.see(s.base + "/thread/" + id); strings.Contains(text, `value="yes"`) || strings.Contains(text, `value="later"`) {
			t.Errorf("offered for %s", what)
		}
	}
	if res := decide("hand", "yes", ""); res.StatusCode != http.StatusBadRequest || s.answers("hand") != "" {
		t.Errorf("an answer to foreign mail: %s", res.Status)
	}
	form = b.form(s.base + "/thread/hand")
	form.Set("as", "later")
	if res, text := b.post(s.base+"/message/hand/mark", form); res.StatusCode != http.StatusBadRequest || !strings.Contains(text, "Nothing was hidden") {
		t.Errorf("foreign mail was hidden: %s", res.Status)
	}
}

// newest returns the id of the newest message in a thread.
func (s *site) newest(thread string) string {
	s.Helper()
	rows, err := s.p.Thread(s.Context(), thread, true)
	if err != nil {
		s.Fatal(err)
	}
	return rows[len(rows)-1].ID
}

// manual replaces the browser's timer, which sends an answer after five seconds. The test calls the script due() to
// send it.
func (b *tab) manual() {
	b.Helper()
	b.inject(`(real => {
		setTimeout = (f, ms, ...all) => ms === 5000 ? (window.due = f, 0) : real(f, ms, ...all);
	})(setTimeout)`)
}

// inject makes every view run a script before the view's own script.
func (b *tab) inject(script string) {
	b.Helper()
	b.must("inject a script", chromedp.ActionFunc(func(ctx context.Context) error {
		_, err := cdp.AddScriptToEvaluateOnNewDocument(script).Do(ctx)
		return err
	}))
}

// TestTwoAskers checks that an answer to one agent leaves the question of another agent in the same thread open. Then,
// the thread offers Yes and No for that question, and the form replies to its author.
func TestTwoAskers(t *testing.T) {
	t.Parallel()
	s := open(t, page.Config{})
	b := s.person()
	first := s.send("Ann", maildir.Draft{To: []string{"pat"}, Subject: "May I?", Body: "b"}).ID
	second := s.send("Bob", maildir.Draft{To: []string{"pat"}, Subject: "And I?", Body: "b", ThreadID: first}).ID
	b.see(s.base + "/thread/" + first)
	if _, err := s.p.Box("pat", format.Origin{}).Decide(t.Context(), maildir.Decision{ID: second, Yes: true}); err != nil {
		t.Fatal(err)
	}
	text := b.see(s.base + "/thread/" + first)
	contains(t, text, `data-live data-asks`, `name="reply_to" value="`+first+`"`, `/message/`+first+`/decide`)
	if strings.Contains(text, `/message/`+second+`/decide`) {
		t.Errorf("the answered question is offered again:\n%s", text)
	}
	if _, err := s.p.Box("pat", format.Origin{}).Decide(t.Context(), maildir.Decision{ID: first, Yes: true}); err != nil {
		t.Fatal(err)
	}
	if text := b.see(s.base + "/thread/" + first); strings.Contains(text, "data-asks") {
		t.Errorf("offered after the answers:\n%s", text)
	}
}

// TestBrowserDecide checks the keys y, n and h. After an answer, the next thread must be shown. The answer must be sent
// after five seconds, when the next thread is answered, or when the user leaves the page. Before the answer is sent, z
// must cancel it. A key must have no effect if the thread has just appeared, or if the message is not entirely on the
// screen. The automatic repeats of a key that is held down must have no effect either.
func TestBrowserDecide(t *testing.T) {
	t.Parallel()
	s := open(t, page.Config{})
	ids := map[string]string{}
	for _, subject := range []string{"Long?", "Five?", "Four?", "Three?", "Two?", "One?"} {
		body := "b"
		if subject == "Long?" {
			body = strings.Repeat("b\n\n", 60)
		}
		ids[subject] = s.send("Ann", maildir.Draft{To: []string{"pat", "Bob"}, Subject: subject, Body: body}).ID
	}
	b := s.tab()
	b.hold()
	b.manual()
	b.enter()
	at := func(subject string) chromedp.Action {
		return chromedp.Tasks{chromedp.WaitVisible(`//div[@class="scroll"]//h1[contains(., "` + subject + `")]`), ready}
	}
	sent := func(subject, want string) {
		t.Helper()
		waits.Until(t, "the answer to "+subject+" is "+want, func() bool { return s.answers(ids[subject]) == want })
	}
	b.must("press it in the list", press("y"), said("p", "No question to answer."))
	b.must("open the first", press("o"), at("One?"))
	b.shoot("decide")
	b.must("hold the key down", input.DispatchKeyEvent(input.KeyDown).WithKey("y").WithText("y").WithAutoRepeat(true))
	b.must("be done with it", press("e"), said("p", "press y, n, h (later) or r"))
	b.must("write", press("r"), chromedp.SendKeys(`#reply-body`, "But slowly."), chromedp.Blur(`#reply-body`))
	b.must("say yes", press("y"), at("Two?"), said("p", "Sending Yes to Ann: z cancels"))
	b.must("press it too early", press("n"))
	b.must("cancel", press("z"), at("One?"))
	b.expect("But slowly.", `document.getElementById("reply-body").value`)
	b.pass("1.1") // rows for agents that cannot be woken may have appeared
	b.must("say yes", press("y"), at("Two?"), said("p", "Sending Yes to Ann: z cancels"))
	sent("One?", "")
	b.pass("1.1")
	b.must("say no to the next", press("n"), at("Three?"), said("p", "Sending No to Ann: z cancels"))
	sent("One?", "Ann: Yes.\n\nBut slowly.")
	sent("Two?", "")
	b.must("wait", chromedp.Evaluate(`due(); 0`, nil), said("p", "Sent to Ann."))
	sent("Two?", "Ann: No.")
	b.must("undo it", press("z"), said("p", "Undone"), at("Two?"))
	b.expect("No.", `document.getElementById("reply-body").value`)
	sent("Two?", "")

	b.visit("/thread/" + ids["Three?"])
	b.must("say yes with the button", chromedp.Click(`[value=yes]`), at("Four?"), said("p", "Sending Yes to Ann: z cancels"))
	b.visit("/threads")
	sent("Three?", "Ann: Yes.")

	b.visit("/thread/" + ids["Four?"])
	b.pass("1.1")
	b.must("hide it", press("h"), at("Five?"), said("p", "Hidden for two hours: "))
	b.await(`![...document.querySelectorAll(".list .what")].some(e => e.textContent.includes("Four"))`)

	b.visit("/thread/" + ids["Long?"])
	b.pass("1.1")
	b.must("try to answer", press("y"), said("p", "Scroll to see the whole message."))
	b.must("try to hide it", press("h"))
	b.expect("Long?", `document.querySelector(".scroll h1").textContent.trim()`)
	b.expect("true true true", `["yes", "no", "later"].map(as => document.querySelector("[value=" + as + "]").disabled).join(" ")`)
	b.must("a larger window", chromedp.EmulateViewport(1100, 6000))
	b.await(`!document.querySelector("[value=yes]").disabled`)
	sent("Long?", "")
}
