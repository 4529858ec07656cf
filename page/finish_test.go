package page_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/input"
	cdp "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"mailtree/maildir"
	"mailtree/maildir/format"
	"mailtree/page"
)

// marks returns the marks on a message in pat's inbox.
func (s *site) marks(id string) string {
	s.Helper()
	d, err := s.p.Box("pat", format.Origin{}).Delivery(s.Context(), id)
	if err != nil {
		s.Fatal(err)
	}
	var all []string
	for name, set := range map[string]bool{"read": d.Read && !d.Acked && !d.Archived, "acked": d.Acked, "archived": d.Archived} {
		if set {
			all = append(all, name)
		}
	}
	return strings.Join(all, " ")
}

// TestDone checks that the Done button marks only the messages in the form as read, and changes nothing if one of them
// asks for an answer. An answer in the form must not be lost.
func TestDone(t *testing.T) {
	t.Parallel()
	s := open(t, page.Config{})
	b := s.person()
	news := maildir.Draft{To: []string{"pat"}, Subject: "News", Body: "b", ThreadID: "T-1"}
	first := s.send("Ann", news).ID
	shown := b.form(s.base + "/")
	shown.Set("message", first)
	late := s.send("Ann", news).ID
	if res, text := b.post(s.base+"/done", shown); res.StatusCode != http.StatusSeeOther {
		t.Fatalf("%s\n%s", res.Status, text)
	}
	if got := s.marks(first) + "|" + s.marks(late); got != "read|" {
		t.Errorf("the marks are %q", got)
	}
	contains(t, b.see(s.base+"/"), `name="message" value="`+late+`"`)

	for _, d := range []maildir.Draft{{Subject: "Which?"}, {Subject: "Plan", AckRequired: true}} {
		d.To, d.Body = []string{"pat"}, "b"
		asks := s.send("Ann", d).ID
		if text := b.see(s.base + "/"); strings.Contains(text, `value="`+asks) {
			t.Errorf("a row that asks can be marked as done:\n%s", text)
		}
		if text := b.see(s.base + "/thread/" + asks); strings.Contains(text, "data-done") {
			t.Errorf("a thread that asks can be marked as done:\n%s", text)
		}
		form := b.form(s.base + "/")
		form.Set("message", late+","+asks)
		res, text := b.post(s.base+"/done", form)
		if got := s.marks(late) + s.marks(asks); res.StatusCode != http.StatusConflict || got != "" {
			t.Errorf("%s, the marks are %q", res.Status, got)
		}
		contains(t, text, "Nothing was changed: this thread is waiting for your answer.")
	}

	form := b.form(s.base + "/thread/T-1")
	form.Set("message", late)
	form.Set("body", "My answer")
	res, text := b.post(s.base+"/done", form)
	if got := s.marks(late); res.StatusCode != http.StatusConflict || got != "" {
		t.Errorf("%s, the marks are %q", res.Status, got)
	}
	contains(t, text, "Your answer has not been sent.", "My answer</textarea>", "Discard")
}

// TestNextAddress checks that the form field "next" can redirect the browser only to an existing thread.
func TestNextAddress(t *testing.T) {
	t.Parallel()
	s := open(t, page.Config{})
	b := s.person()
	next := s.send("Ann", maildir.Draft{To: []string{"pat"}, Subject: "Next", Body: "b"})
	for address, follows := range map[string]bool{
		s.base + "/thread/" + next.ID + "?new=1#x":       true,
		s.base + "/thread/nothing":                       false,
		s.base + "/thread/../inbox":                      false,
		"//evil.example" + s.base + "/thread/" + next.ID: false,
		"http://evil.example/p/x/thread/" + next.ID:      false,
		`\\evil.example` + s.base + "/thread/" + next.ID: false,
	} {
		asked := s.send("Ann", maildir.Draft{To: []string{"pat"}, Subject: "s", Body: "b"})
		form := b.form(s.base + "/thread/" + asked.ID)
		form.Set("body", "b")
		form.Set("next", address)
		res, text := b.post(s.base+"/send", form)
		to := res.Header.Get("Location")
		if want := map[bool]string{true: next.ID, false: asked.ID}[follows]; !strings.HasPrefix(to, s.base+"/thread/"+want) {
			t.Errorf("%s leads to %q\n%s", address, to, text)
		}
	}
}

// hold replaces the browser's clock with one that the test sets: localStorage.clock, in milliseconds.
func (b *tab) hold() {
	b.Helper()
	b.must("hold the clock", chromedp.ActionFunc(func(ctx context.Context) error {
		_, err := cdp.AddScriptToEvaluateOnNewDocument(`Date.now = () => 1e12 + +(localStorage.clock || 0)`).Do(ctx)
		return err
	}))
}

// pass advances the browser's clock.
func (b *tab) pass(seconds string) {
	b.Helper()
	b.must("let time pass", chromedp.Evaluate(`localStorage.clock = +(localStorage.clock || 0) + 1000 * `+seconds+`; 0`, nil))
}

// focused is a script that returns the subject of the focused row.
const focused = `document.activeElement.querySelector(".what")?.textContent || "none"`

// TestBrowserDone checks the e key. In the list, the focus must move to the row that takes the place of the finished
// row. In the list and in a thread, the key must not affect a message that has just appeared, a question, or a thread
// with an unsent answer. The automatic repeats of the key while it is held down must have no effect, and j must stop at
// the end of the list.
func TestBrowserDone(t *testing.T) {
	t.Parallel()
	s := open(t, page.Config{})
	ids := map[string]string{}
	send := func(subject string, d maildir.Draft) {
		t.Helper()
		d.To, d.Subject, d.Body = []string{"pat"}, subject, "b"
		ids[subject] = s.send("Ann", d).ID
	}
	for _, subject := range []string{"Four", "Three", "Two", "One"} {
		send(subject, maildir.Draft{})
	}
	send("Which?", maildir.Draft{})
	b := s.tab()
	b.hold()
	b.enter()
	is := func(want string, all ...string) {
		t.Helper()
		for _, subject := range all {
			if got := s.marks(ids[subject]); got != want {
				t.Errorf("%s is %q, not %q", subject, got, want)
			}
		}
	}
	b.must("be done with the question", press("j"), press("e"), said("p", "This thread needs an answer"))
	b.expect("Which?", focused)
	b.must("be done with a row", press("j"), press("e"), said("p", "Marked as read: "))
	b.await(focused + ` === "Two"`)
	b.must("hold the key down", input.DispatchKeyEvent(input.KeyDown).WithKey("e").WithText("e").WithAutoRepeat(true))
	b.must("be done with the next", press("e"), said("bdi", "Two"), chromedp.WaitVisible(`//*[contains(@class, "done")]//bdi[. = "Two"]`))
	b.await(focused + ` === "Three"`)
	is("read", "One", "Two")
	is("", "Which?", "Three", "Four")

	send("Five", maildir.Draft{})
	b.must("see mail arrive", said("a", "Five"))
	b.must("press it too early", press("e"))
	b.pass("0.9")
	b.must("press it too early", press("e"))
	b.expect("Three", focused)
	is("", "Five", "Three")
	b.pass("0.2")
	b.must("press it later", press("e"), chromedp.WaitVisible(`//*[contains(@class, "done")]//bdi[. = "Three"]`))
	b.await(focused + ` === "Four"`)

	b.must("open the question", press("k"), press("k"), press("o"), chromedp.WaitVisible(`#reply-body`), press("e"), said("p", "This thread needs an answer"))
	b.expect("Which?", `document.querySelector(".scroll h1").textContent.trim()`)
	b.must("answer", press("r"), chromedp.SendKeys(`#reply-body`, "By name."), chromedp.Blur(`#reply-body`), press("e"), chromedp.WaitVisible(`#unsent`))
	is("read", "Which?")
	b.must("send from there", chromedp.Click(`#unsent button`), said("p", "Sent to Ann"))
	b.expect("Five", `document.querySelector(".scroll h1").textContent.trim()`)
	b.must("press it too early", press("e"))
	b.pass("1.1")
	is("", "Five")
	b.must("be done", press("e"), said("p", "Marked as read: "))
	b.expect("Five", `document.querySelector(".scroll h1").textContent.trim()`)
	is("read", "Five")

	b.must("go on", press("j"), chromedp.WaitVisible(`//h1[contains(., "Four")]`))
	b.must("stop at the end", press("j"), said("p", "This is the last one."))
	b.must("be done again", press("e"), said("p", "Nothing here is unread."))
	b.must("write", press("r"), chromedp.SendKeys(`#reply-body`, "Half of it"))
	b.visit("/inbox")
	send("Six", maildir.Draft{})
	if _, err := s.p.Box("pat", format.Origin{}).SetRead(t.Context(), ids["Four"], false); err != nil {
		t.Fatal(err)
	}
	b.visit("/")
	b.must("be done with the row", press("j"), press("j"), press("e"), said("p", "You have an unsent answer"))
	is("", "Four", "Six")
}
