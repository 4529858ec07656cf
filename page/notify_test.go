package page_test

import (
	"context"
	"testing"

	cdp "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"mailtree/maildir"
	"mailtree/page"
)

// TestBrowserNotify checks that the browser notifies the user only after the user has chosen Notify me, and only
// about mail that is blocked on the user. It must notify the user once per message, and never about the thread in
// view.
func TestBrowserNotify(t *testing.T) {
	t.Parallel()
	s := open(t, page.Config{})
	send := func(subject, importance string) string {
		t.Helper()
		return s.send("Ann", maildir.Draft{To: []string{"pat"}, Subject: subject, Body: "b", Importance: importance, AckRequired: true, ThreadID: "T-" + subject}).ID
	}
	b := s.tab()
	b.must("collect the notifications", chromedp.ActionFunc(func(ctx context.Context) error {
		_, err := cdp.AddScriptToEvaluateOnNewDocument(`window.Notification = class {
			constructor(text) { localStorage.notes = (localStorage.notes || "") + text + "|"; }
			static requestPermission() { return Promise.resolve("granted"); }
		}`).Do(ctx)
		return err
	}))
	b.enter()
	b.must("a wide window", shape(1440))
	send("First", "urgent")
	b.must("see mail arrive", said("a", "First"))
	b.expect("none off", `(localStorage.notes || "none") + " " + document.querySelector(".notify small").textContent`)
	b.must("choose it", chromedp.Click(`.notify`))
	b.await(`document.querySelector(".notify small").textContent === "on"`)
	send("Second", "high")
	b.await(`localStorage.notes === "backend: Ann, high: Second|"`)
	send("Third", "normal")
	b.must("see a question arrive", said("a", "Third"))

	b.visit("/thread/T-First")
	send("First", "urgent")
	b.await(`document.querySelectorAll("article").length === 2`)
	send("Fourth", "urgent")
	b.await(`localStorage.notes === "backend: Ann, high: Second|backend: Ann, urgent: Fourth|"`)
	b.visit("/agents")
	b.must("choose again", chromedp.Click(`.notify`))
	b.await(`document.querySelector(".notify small").textContent === "off"`)
	send("Fifth", "urgent")
	b.await(`localStorage["mailtree told"].split(",").length === 5`)
	b.expect("backend: Ann, high: Second|backend: Ann, urgent: Fourth|", `localStorage.notes`)
}
