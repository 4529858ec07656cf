package page_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"

	"mailtree/fixtures/waits"
	"mailtree/maildir"
	"mailtree/maildir/format"
	"mailtree/page"
)

// lose holds back all forms that the script sends while localStorage.slow is set, until letGo() is called. If the user
// leaves the view before then, the form is lost.
func (b *tab) lose() {
	b.Helper()
	b.inject(`(real => {
		const held = new Promise((go) => { window.letGo = go; });
		fetch = async (to, how) => {
			if (how?.method === "POST" && localStorage.slow) { window.holds = (window.holds || 0) + 1; await held; }
			return real(to, how);
		};
	})(fetch)`)
}

// TestBrowserUndoLeft checks that z undoes an answer that was sent because the user left the view, and nothing older.
// z must work even if the response to the answer has not arrived yet, or if the answer did not reach the server at the
// first attempt.
func TestBrowserUndoLeft(t *testing.T) {
	t.Parallel()
	s := open(t, page.Config{})
	ids := map[string]string{}
	for _, subject := range []string{"News", "Five?", "Four?", "Three?", "Two?", "One?"} {
		ids[subject] = s.send("Ann", maildir.Draft{To: []string{"pat"}, Subject: subject, Body: "b"}).ID
	}
	b := s.tab()
	b.hold()
	b.manual()
	b.lose()
	b.enter()
	at := func(subject string) chromedp.Action {
		return chromedp.Tasks{chromedp.WaitVisible(`//div[@class="scroll"]//h1[contains(., "` + subject + `")]`), ready}
	}
	sent := func(subject, want string) {
		t.Helper()
		waits.Until(t, "the answer to "+subject+" is "+want, func() bool { return s.answers(ids[subject]) == want })
	}
	b.visit("/thread/" + ids["News"])
	b.pass("1.1")
	b.must("be done with something older", press("e"), said("p", "Marked as read: "))

	b.visit("/thread/" + ids["One?"])
	b.pass("1.1")
	b.must("say yes, and leave", press("y"), at("Two?"), said("p", "Sending Yes to Ann"), press("j"), at("Three?"), said("p", "Sent to Ann."))
	sent("One?", "Ann: Yes.")
	b.must("undo the answer", press("z"), said("p", "Undone"), at("One?"))
	sent("One?", "")
	if got := s.marks(ids["News"]); got != "read" {
		t.Errorf("z has undone something older: %q", got)
	}

	b.visit("/thread/" + ids["Two?"])
	b.pass("1.1")
	b.must("write", press("r"), chromedp.SendKeys(`#reply-body`, "But slowly."), chromedp.Blur(`#reply-body`))
	b.must("lose the answer", chromedp.Evaluate(`localStorage.slow = 1; 0`, nil), press("y"), at("Three?"), press("j"), at("Four?"))
	b.must("undo it at once", press("z"))
	b.await(`window.holds === 2`) // the view and z both send the answer again
	b.must("let the answer go", chromedp.Evaluate(`localStorage.removeItem("slow"); letGo(); 0`, nil), said("p", "Undone"), at("Two?"))
	b.expect("Yes.\n\nBut slowly.", `document.getElementById("reply-body").value`)
	sent("Two?", "")
	if got := s.marks(ids["News"]); got != "read" {
		t.Errorf("z has undone something older: %q", got)
	}

	b.visit("/thread/" + ids["Three?"])
	b.pass("1.1")
	b.must("say yes", press("y"), at("Four?"))
	b.pass("1.1")
	b.must("say no to the next, and leave", press("n"), at("Five?"), press("k"), at("Four?"), said("p", "Sent to Ann."))
	for _, subject := range []string{"Four?", "Three?"} { // the last answer is undone first
		b.must("undo", press("z"), said("p", "Undone"), at(subject))
		sent(subject, "")
		b.await(`document.activeElement.id === "reply-body"`)
		b.must("leave the form", chromedp.Blur(`#reply-body`))
	}
	b.must("undo what is older", press("z"), said("p", "Undone: News"))
	if got := s.marks(ids["News"]); got != "" {
		t.Errorf("the older action was not undone: %q", got)
	}

	b.visit("/thread/" + ids["Five?"])
	b.pass("1.1")
	b.must("write", press("r"), chromedp.SendKeys(`#reply-body`, "Now."), chromedp.Blur(`#reply-body`))
	b.must("lose the answer", chromedp.Evaluate(`localStorage.slow = 1; 0`, nil), press("y"), said("p", "Sending Yes to Ann"))
	b.visit("/threads")
	b.await(`window.holds === 1`)
	if _, err := s.p.Box("pat", format.Origin{}).Reply(t.Context(), ids["Five?"], maildir.Draft{Body: "Yes, by hand."}); err != nil {
		t.Fatal(err)
	}
	b.must("let the answer go", chromedp.Evaluate(`localStorage.removeItem("slow"); letGo(); 0`, nil), said(`*[@id="tell"]`, "Not sent: Yes to Ann."))
	s.send("Ann", maildir.Draft{To: []string{"pat"}, Subject: "Six", Body: "b"}) // a refresh of the view does not hide it
	b.await(`document.querySelector("main").textContent.includes("Six")`)
	b.expect("false", `String(document.getElementById("tell").hidden)`)
	b.visit("/thread/" + ids["Five?"])
	b.expect("Now.", `document.getElementById("reply-body").value`)
}

// TestBrowserUndoNothing checks that after an action that cannot be undone, z reports this and does not undo an older
// action.
func TestBrowserUndoNothing(t *testing.T) {
	t.Parallel()
	s := open(t, page.Config{Nudge: func(_ context.Context, _, _ string, told func(how, why string)) error {
		told("", "its window is in use")
		return nil
	}})
	s.nudgeable()
	news := s.send("Ann", maildir.Draft{To: []string{"pat"}, Subject: "News", Body: "b"}).ID
	bad := filepath.Join(s.p.Dir(), "claims", "bad.json")
	if err := errors.Join(os.MkdirAll(filepath.Dir(bad), 0o700), os.WriteFile(bad, []byte("{"), 0o600), s.p.Rescan(t.Context())); err != nil {
		t.Fatal(err)
	}
	b := s.tab()
	b.hold()
	b.enter()
	b.must("be done with a message", press("j"), press("e"), said("p", "Marked as read: "), ready)
	b.must("dismiss the lines", chromedp.Click(`//button[. = "Dismiss"]`), said("p", "Dismissed."), ready)
	b.must("undo", press("z"), said("p", "This cannot be undone: Dismissed."))
	b.must("go to the agents", chromedp.Navigate(b.url+b.base+"/agents"), said("h1", "Now"), ready)
	b.must("nudge", chromedp.Click(`//button[. = "Nudge"]`), said("p", "Bob was not woken: "), ready, chromedp.Reload(), said("h1", "Now"), ready)
	b.must("undo", press("z"), said("p", "This cannot be undone: Bob was not woken: "))
	if got := s.marks(news); got != "read" {
		t.Errorf("z has undone something older: %q", got)
	}
	b.must("undo what is older", press("z"), said("p", "Undone: News"))
	if got := s.marks(news); got != "" {
		t.Errorf("the older action was not undone: %q", got)
	}
}

// TestBrowserReplyAll checks that r selects all recipients again after R, even if the user left the view before
// pressing r. The r key must not change recipients that the user has selected manually.
func TestBrowserReplyAll(t *testing.T) {
	t.Parallel()
	s := open(t, page.Config{})
	plan := s.send("Ann", maildir.Draft{To: []string{"pat", "Bob"}, Subject: "Plan", Body: "p"}).ID
	b := s.tab()
	b.enter()
	b.visit("/thread/" + plan)
	escape := pressWith(input.ModifierNone, "Escape")
	const to = `[...document.querySelectorAll(".to :checked")].map(e => e.value).join()`
	b.must("answer the author", press("R"))
	b.expect("Ann", to)
	b.must("answer everybody", escape, press("r"))
	b.expect("Ann,Bob reply-body", to+` + " " + document.activeElement.id`)
	b.must("answer the author", escape, press("R"))
	b.visit("/thread/" + plan)
	b.expect("Ann", to)
	b.must("answer everybody", press("r"))
	b.expect("Ann,Bob", to)
	b.must("answer the author, then Bob by hand", escape, press("R"), escape,
		chromedp.Click(`.to input[value=Bob]`), chromedp.Click(`.to input[value=Ann]`), press("r"))
	b.expect("Bob", to)
}
