package page_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"mailtree/maildir"
	"mailtree/maildir/claim"
	"mailtree/maildir/format"
	"mailtree/page"
)

// busyDay returns a site whose project has an agent with a long name, and agents with and without unread mail, claims,
// and a session that can be nudged.
func busyDay(t *testing.T) *site {
	t.Helper()
	s := open(t, page.Config{Nudge: func(context.Context, string, string, func(how, why string)) error { return nil }})
	const long = "GreenCastleOfTheNorth"
	if err := s.p.Agents.EnsureAgent(t.Context(), long, maildir.Registration{Program: "test", Task: "Users API and its migrations, behind a flag"}); err != nil {
		t.Fatal(err)
	}
	k := maildir.SessionKey{Client: "gemini", ID: "1"}
	if _, err := s.p.Sessions.Begin(t.Context(), maildir.SessionEvent{SessionKey: k, Dir: "/code/backend", Agent: "Bob", Pane: maildir.Pane{Tmux: "/tmp/x,1,1", Pane: "%1"}}); err != nil {
		t.Fatal(err)
	}
	for _, to := range []string{"Bob", "Bob", long, "pat"} {
		s.send("Ann", maildir.Draft{To: []string{to}, Subject: "Which index for users?", Body: "b"})
	}
	for i, agent := range []string{"Bob", "Ann"} {
		r := claim.Request{Agent: agent, Patterns: []string{fmt.Sprint("a", i, ".go"), fmt.Sprint("b", i, ".go")}, TTL: time.Hour}
		if _, err := s.p.Box(agent, format.Origin{}).Claim(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	s.second()
	return s
}

// TestBrowserWidths checks views at all widths, in a project with a long name and invalid files. Nothing may scroll
// sideways, the search field must have room for a word, and Notify me or More must be visible.
func TestBrowserWidths(t *testing.T) {
	t.Parallel()
	s := busyDay(t)
	s.foreignAsk("")
	bad := filepath.Join(s.p.Dir(), "claims", "bad.json")
	if err := errors.Join(os.WriteFile(bad, []byte("{"), 0o600), s.p.Rescan(t.Context())); err != nil {
		t.Fatal(err)
	}
	b := s.tab()
	b.enter()
	for _, view := range []string{s.base + "/", s.base + "/agents", s.base + "/claims", "/"} {
		b.must("visit "+view, chromedp.Navigate(b.url+view), chromedp.WaitVisible(`main h1`), ready)
		b.must("use long names", chromedp.Evaluate(`for (const e of document.querySelectorAll(".project summary, .me")) e.textContent = "GreenCastleOfTheNorth"; 0`, nil))
		for _, width := range []int64{360, 390, 720, 721, 760, 800, 860, 900, 1024, 1099, 1100, 1199, 1200, 1440} {
			b.must("a window", shape(width))
			b.expect("", fmt.Sprintf(`[
				document.documentElement.scrollWidth > %[1]d && "%[2]s scrolls at %[1]d: " + document.documentElement.scrollWidth,
				document.getElementById("find")?.offsetWidth < 120 && "%[2]s, search at %[1]d: " + document.getElementById("find").offsetWidth,
				![...document.querySelectorAll("header .notify, .etc a")].some(e => e.checkVisibility() && e.getBoundingClientRect().right <= %[1]d) && "%[2]s, no Notify me at %[1]d",
			].filter(Boolean).join()`, width, view))
			b.shoot(fmt.Sprint("width", view, "-", width))
		}
	}
}

// TestBrowserColumns checks that the columns of the Now view are aligned even if only some agents can be nudged, and
// that a narrow window does not cut off any words.
func TestBrowserColumns(t *testing.T) {
	t.Parallel()
	s := busyDay(t)
	b := s.tab()
	b.enter()
	b.visit("/agents")
	b.must("wait for the button", chromedp.WaitVisible(`.agents .nudge`))
	for _, width := range []int64{1440, 1024, 900} {
		b.must("a wide window", shape(width))
		b.expect("1 1 1 1 1 1", `[1, 2, 3, 4, 5, 6].map(n =>
			new Set([...document.querySelectorAll(".agents .row > :nth-child(" + n + ")")].map(e => Math.round(e.getBoundingClientRect().left))).size).join(" ")`)
	}
	for _, width := range []int64{899, 721, 390, 360} {
		b.must("a narrow window", shape(width))
		b.expect("", `[...document.querySelectorAll(".agents .row > *")].filter(e => e.scrollWidth > e.clientWidth + 1).map(e => e.textContent).join()`)
	}
}

// TestBrowserPressed checks that in a narrow window, a button does not move between the press and the release of the
// mouse, even if the reply field expands or shrinks. If the button moved, the click would be lost.
func TestBrowserPressed(t *testing.T) {
	t.Parallel()
	s := open(t, page.Config{})
	ids := map[string]string{}
	for _, subject := range []string{"Three?", "Two?", "One?"} {
		ids[subject] = s.send("Ann", maildir.Draft{To: []string{"pat"}, CC: []string{"Bob"}, Subject: subject, Body: "b", AckRequired: true}).ID
	}
	b := s.tab()
	b.manual()
	b.enter()
	b.must("a narrow window", chromedp.EmulateViewport(780, 700)) // the form is at the bottom, so Yes could move
	b.visit("/thread/" + ids["One?"])
	b.must("say yes", ready, chromedp.Click(`[value=yes]`), said("p", "Sending Yes to Ann"), said("h1", "Two?"), ready)
	b.must("say no from the field", chromedp.Focus(`#reply-body`), chromedp.Click(`[value=no]`), said("p", "Sending No to Ann"), said("h1", "Three?"), ready)
	b.must("write", chromedp.SendKeys(`#reply-body`, "By name."))
	var rest int64
	b.must("a low window", chromedp.EmulateViewport(780, 300))
	b.visit("/thread/" + ids["Three?"])
	b.must("measure the view", ready, chromedp.Evaluate(`document.documentElement.scrollHeight`, &rest))
	b.must("a window that just has room for the full field, so Send moves", chromedp.EmulateViewport(780, rest+38))
	b.visit("/thread/" + ids["Three?"])
	b.must("send what is left from before", ready, chromedp.Click(`#reply button.main`), said("p", "Sent to Ann"))
}
