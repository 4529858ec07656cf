package page_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/network"
	cdp "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"mailtree/fixtures/waits"
	"mailtree/maildir"
	"mailtree/maildir/attachment"
	"mailtree/maildir/claim"
	"mailtree/maildir/format"
	"mailtree/maildir/index"
	"mailtree/page"
)

// must makes the browser perform the actions, and fails the test if they fail or hang.
func (b *tab) must(what string, actions ...chromedp.Action) {
	b.Helper()
	ctx, stop := context.WithTimeout(b.browser, waits.Hang)
	defer stop()
	if err := chromedp.Run(ctx, actions...); err != nil {
		b.Fatalf("%s: %v", what, err)
	}
}

// enter opens the page as the user.
func (b *tab) enter() {
	b.Helper()
	b.must("open the link", chromedp.EmulateViewport(1100, 700), chromedp.Navigate(b.url+b.page.Link(b.user, "uid:1000", "")),
		chromedp.WaitVisible(`main h1`))
}

// visit opens one of the project's views.
func (b *tab) visit(view string) {
	b.Helper()
	b.must("visit "+view, chromedp.Navigate(b.url+b.base+view), chromedp.WaitVisible(`main h1`))
}

// expect checks that the script returns the expected text.
func (b *tab) expect(want, script string) {
	b.Helper()
	var got string
	b.must(script, chromedp.Evaluate(script, &got))
	if got != want {
		b.Errorf("%s is %q, not %q", script, got, want)
	}
}

// await waits until the script returns true.
func (b *tab) await(script string) {
	b.Helper()
	b.must("wait for "+script, chromedp.Poll(script, nil, chromedp.WithPollingTimeout(waits.Hang)))
}

// press types a key into the focused element.
func press(key string) chromedp.Action {
	return input.DispatchKeyEvent(input.KeyDown).WithKey(key).WithText(key)
}

// pressWith types a key while Ctrl, Alt or Cmd is held down.
func pressWith(held input.Modifier, key string) chromedp.Action {
	return input.DispatchKeyEvent(input.KeyDown).WithKey(key).WithModifiers(held)
}

// said waits until an element of the given kind shows the text.
func said(element, text string) chromedp.Action {
	return chromedp.WaitVisible(fmt.Sprintf(`//%s[contains(., %q)]`, element, text))
}

// ready waits until the view's script has run.
var ready = chromedp.Poll(`document.readyState === "complete"`, nil, chromedp.WithPollingTimeout(waits.Hang))

// TestBrowserLive checks that new mail appears on an open page without disturbing the scroll position, a selection or
// typing.
func TestBrowserLive(t *testing.T) {
	t.Parallel()
	s := open(t, page.Config{})
	first := s.send("Ann", maildir.Draft{To: []string{"pat"}, Subject: "First", Body: strings.Repeat("Is this live?\n\n", 60)})
	b := s.tab()
	b.enter()
	s.send("Bob", maildir.Draft{To: []string{"pat"}, Subject: "Second", Body: "b"})
	b.must("see mail arrive", said("a", "Second"))

	b.visit("/thread/" + first.ID)
	b.must("begin a reply", chromedp.SendKeys(`#reply-body`, "My draft"))
	b.must("select in it", chromedp.Evaluate(`document.getElementById("reply-body").setSelectionRange(3, 8)`, nil),
		chromedp.Evaluate(`window.pane = document.querySelector(".scroll"); pane.scrollTop = 300; window.before = pane.scrollTop`, nil))
	answer := maildir.Draft{To: []string{"Ann"}, Subject: "Re: First", Body: "Another's answer", ThreadID: first.ID}
	s.send("Bob", answer)
	b.must("see the answer of another beside the draft", said("article", "Another's answer"))
	b.expect("My draft", `document.getElementById("reply-body").value`)
	b.expect("draft", `(e => e.value.slice(e.selectionStart, e.selectionEnd))(document.activeElement)`)
	b.expect("300 300", `window.before + " " + pane.scrollTop`)

	b.must("select what is read", chromedp.Evaluate(`getSelection().selectAllChildren(document.querySelector("article .body p"))`, nil))
	answer.Body = "A third"
	s.send("Bob", answer)
	b.must("hear of an answer", said(`*[@id="stale"]`, "1 new."))
	b.expect("above the list", `(r => r.right <= document.querySelector(".side").getBoundingClientRect().left && r.bottom < 140 ? "above the list" : r.right + " " + r.bottom)(
		document.getElementById("stale").getBoundingClientRect())`)
	b.expect("Is this live?", `getSelection().toString()`)
	b.must("ask for it", chromedp.Click(`#stale button`), said("article", "A third"))
}

// TestBrowserOwnNews checks that the bar does not offer a message that the open thread already shows. The list does not
// change during the test, because the user has selected text in it.
func TestBrowserOwnNews(t *testing.T) {
	t.Parallel()
	s := open(t, page.Config{})
	first := s.send("Ann", maildir.Draft{To: []string{"pat"}, Subject: "First", Body: "a"})
	b := s.tab()
	b.enter()
	b.visit("/thread/" + first.ID)
	b.must("select text in the list", chromedp.Evaluate(`getSelection().selectAllChildren(document.querySelector(".list .what"))`, nil))
	s.send("Bob", maildir.Draft{To: []string{"pat"}, Subject: "First", Body: "Another's answer", ThreadID: first.ID})
	b.must("see the answer", said("article", "Another's answer"))
	b.expect("Something has changed. Show", `document.getElementById("stale").textContent`)
	s.send("Bob", maildir.Draft{To: []string{"pat"}, Subject: "Second", Body: "b"})
	b.must("hear of another thread", said(`*[@id="stale"]`, "1 new. "))
}

// TestBrowserMarks checks that the keys shown on the buttons Next and Done look alike, and that a paper clip in the
// list marks the thread that has a file.
func TestBrowserMarks(t *testing.T) {
	t.Parallel()
	s := open(t, page.Config{})
	s.send("Ann", maildir.Draft{To: []string{"pat"}, Subject: "Second", Body: "b"})
	plan := []attachment.File{attachment.Named("plan.txt", []byte("Zirconium"))}
	first := s.send("Ann", maildir.Draft{To: []string{"pat"}, Subject: "First", Body: "a", Files: plan})
	b := s.tab()
	b.enter()
	b.visit("/thread/" + first.ID)
	b.expect("Next j: solid, Done e: solid", `[...document.querySelectorAll("#reply .send kbd")].filter(e => e.checkVisibility())
		.map(e => e.parentElement.textContent + ": " + getComputedStyle(e).borderStyle).join(", ")`)
	b.expect("First: 1 file, drawn", `[...document.querySelectorAll(".list .clip")]
		.map(e => e.closest("li").querySelector(".what").textContent + ": " + e.ariaLabel + (e.offsetWidth > 5 ? ", drawn" : "")).join()`)
}

// TestBrowserTimes checks that the times on an open page advance even if nothing happens, and are not highlighted.
// Only new items may be highlighted, and nothing that the user has selected or opened may be disturbed.
func TestBrowserTimes(t *testing.T) {
	t.Parallel()
	var ahead atomic.Int64
	began := time.Now()
	s := open(t, page.Config{Now: func() time.Time { return began.Add(time.Duration(ahead.Load())) }})
	first := s.send("Ann", maildir.Draft{To: []string{"pat"}, Subject: "First", Body: "b"})
	b := s.tab()
	b.must("let a minute last 0.6 s", chromedp.ActionFunc(func(ctx context.Context) error {
		_, err := cdp.AddScriptToEvaluateOnNewDocument(`(real => { setInterval = (f, ms) => real(f, ms / 100) })(setInterval)`).Do(ctx)
		return err
	}))
	b.enter()
	ahead.Store(int64(5*time.Minute + time.Second))
	b.await(`document.querySelector("main li time").textContent === "5m"`)
	s.send("Bob", maildir.Draft{To: []string{"pat"}, Subject: "Second", Body: "b"})
	b.must("see mail arrive", said("a", "Second"))
	b.expect("Second", `[...document.querySelectorAll(".fresh .what")].map(e => e.textContent.trim()).join()`)

	b.visit("/thread/" + first.ID)
	b.must("open something", chromedp.Click(`article .more summary`))
	ahead.Store(int64(7*time.Minute + time.Second))
	b.await(`document.querySelector("article time").textContent === "7m"`)
	b.expect("true ", `document.querySelector("article .more").open + " " + document.getElementById("stale").textContent`)
}

// TestBrowserTabs checks that ten tabs in one browser work, even though the browser allows only six connections to a
// host. A tab that returns to the foreground must show new mail.
func TestBrowserTabs(t *testing.T) {
	t.Parallel()
	s := open(t, page.Config{})
	b := s.tab()
	b.enter()
	for range 10 {
		b.must("leave the tab", chromedp.Evaluate(hide("hidden"), nil))
		b = b.beside()
		b.visit("/")
	}
	b.must("leave it", chromedp.Evaluate(hide("hidden"), nil))
	s.send("Ann", maildir.Draft{To: []string{"pat"}, Subject: "First", Body: "a"})
	b.must("come back", chromedp.Evaluate(hide("visible"), nil), said("a", "First"))
}

// hide makes a tab believe that it is hidden or visible. In a browser without a screen, all tabs are visible.
func hide(state string) string {
	return fmt.Sprintf(`Object.defineProperty(document, "hidden", {value: %t, configurable: true});
		document.dispatchEvent(new Event("visibilitychange")); 0`, state == "hidden")
}

// TestBrowserDraft checks that a draft survives a restart of the server and a reload of the page, and that the page
// shows new mail in the thread after the restart. Other tabs must show the draft, but other threads must not. The draft
// must be dropped once it has been sent. The page must say when the server is not responding.
func TestBrowserDraft(t *testing.T) {
	t.Parallel()
	s := open(t, page.Config{})
	asked := s.send("Ann", maildir.Draft{To: []string{"pat"}, Subject: "Which?", Body: "a?"})
	other := s.send("Ann", maildir.Draft{To: []string{"pat"}, Subject: "Another", Body: "b"})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	server := &http.Server{Handler: s.page}
	go server.Serve(listener) //nolint:errcheck // closed below
	s.url = "http://" + address
	b := s.tab()
	b.enter()
	b.visit("/thread/" + asked.ID)
	b.must("write", chromedp.SendKeys(`#reply-body`, "My draft"), chromedp.Blur(`#reply-body`))

	server.Close()
	b.must("hear that the server is away", said(`*[@id="stale"]`, "out of date since"))
	b.expect("Not sent. The server is not responding.", `document.querySelector("button.main").click(), document.getElementById("stale").textContent`)
	b.expect("The server is not responding.", `document.querySelector("main a.row:not([aria-current])").click(), document.getElementById("stale").textContent`)
	s.send("Ann", maildir.Draft{To: []string{"pat"}, Subject: "Which?", Body: "Meanwhile", ThreadID: asked.ID})
	s.page = page.New(page.Config{Store: s.store.Store})
	again := httptest.NewUnstartedServer(s.served())
	again.Listener.Close()
	if again.Listener, err = net.Listen("tcp", address); err != nil {
		t.Fatal(err)
	}
	again.Start()
	t.Cleanup(again.Close)
	t.Cleanup(b.close) // otherwise, Close would wait until the page ends its stream
	b.await(`document.getElementById("stale").hidden`)
	b.must("see what was sent meanwhile", said("article", "Meanwhile"))
	b.expect("My draft", `document.getElementById("reply-body").value`)

	b.visit("/thread/" + other.ID)
	b.expect("", `document.getElementById("reply-body").value`)
	beside := b.beside()
	beside.visit("/thread/" + asked.ID)
	beside.expect("My draft", `document.getElementById("reply-body").value`)
	beside.close() // a tab in the background gets no clicks
	b.visit("/thread/" + asked.ID)
	b.expect("My draft", `document.getElementById("reply-body").value`)
	b.must("send it", chromedp.Click(`button.main`), said("p", "Sent to Ann."))
	b.visit("/thread/" + asked.ID)
	b.must("see it", said("article", "My draft"))
	b.expect("", `document.getElementById("reply-body").value`)
	b.expect("", `localStorage.length ? JSON.stringify(localStorage) : ""`)
}

// TestBrowserKeys checks that each key does what the page says it does. Keys must do nothing in a field, or while
// Ctrl, Alt or Cmd is held down.
func TestBrowserKeys(t *testing.T) {
	t.Parallel()
	s := open(t, page.Config{})
	s.send("Ann", maildir.Draft{To: []string{"pat"}, Subject: "First", Body: "a"})
	s.send("Ann", maildir.Draft{To: []string{"pat"}, Subject: "Second", Body: "b"})
	b := s.tab()
	b.enter()
	focus := `(document.activeElement.textContent.match(/First|Second/) || [""])[0]`
	for _, step := range []struct{ key, want string }{{"j", "Second"}, {"j", "First"}, {"k", "Second"}} {
		b.must("press "+step.key, press(step.key))
		b.expect(step.want, focus)
	}
	for _, held := range []input.Modifier{input.ModifierCtrl, input.ModifierAlt, input.ModifierMeta} {
		for _, key := range strings.Split("j k o x e r R c z / ?", " ") {
			b.must("press "+key, pressWith(held, key))
		}
		b.expect("Second", focus)
		b.expect("false", `String(document.getElementById("keys").open)`)
		b.expect("Needs you", `document.querySelector("main h1").textContent`)
	}
	b.expect("0", `window.clicks = 0; addEventListener("click", () => clicks++, true); String(clicks)`)
	for _, key := range strings.Split("t f a d", " ") {
		b.must("press "+key+" without g", press(key))
	}
	b.expect("0 Second", `clicks + " " + `+focus)
	b.must("press ?", press("?"))
	for _, key := range strings.Split("j k o x e r R c z / ? g t", " ") {
		b.must("press "+key+" while the list of keys is shown", press(key))
	}
	b.expect("true 0 Close", `[document.getElementById("keys").open, clicks, document.activeElement.textContent].join(" ")`)
	b.must("close it", chromedp.Click(`#keys button`))
	for _, view := range []struct{ key, title string }{{"t", "Threads"}, {"d", "Needs you"}, {"f", "Files & claims"}, {"a", "Activity"}, {"n", "Needs you"}} {
		b.must("press g "+view.key, press("g"), press(view.key), said("h1", view.title), ready)
	}
	b.must("press o", chromedp.Focus(`main a.row`), press("o"), chromedp.WaitVisible(`#reply-body`), press("r"))
	b.expect("reply-body", `document.activeElement.id`)
	b.must("type the keys", chromedp.SendKeys(`#reply-body`, "jkoxerRcz/?"))
	b.expect("jkoxerRcz/?", `document.getElementById("reply-body").value`)
	b.must("go back to the list", chromedp.Blur(`#reply-body`), press("u"), chromedp.WaitVisible(`.idle`), ready)
	b.must("press /", press("/"))
	b.expect("find", `document.activeElement.id`)
	b.must("press c", chromedp.Blur(`#find`), press("c"), chromedp.WaitVisible(`#subject`))
	b.expect("to", `document.activeElement.id`)
}

// TestBrowserDesk checks that a user can do a day's work with only the keyboard. The focus must stay in place when mail
// arrives and when the user goes back, and opening a message must mark it as read. A reply must go to everyone, and the
// page must then show the next thread. Undo must restore the text, and one action must apply to all selected threads.
func TestBrowserDesk(t *testing.T) {
	t.Parallel()
	s := open(t, page.Config{})
	plan := s.send("Ann", maildir.Draft{To: []string{"pat"}, CC: []string{"Bob"}, Subject: "Plan", Body: "p", AckRequired: true})
	for _, subject := range []string{"First", "Second"} {
		s.send("Bob", maildir.Draft{To: []string{"pat"}, Subject: subject, Body: "b"})
	}
	b := s.tab()
	b.hold()
	b.enter()
	focus := `(document.activeElement.textContent.match(/Plan|First|Second|Third/) || [""])[0]`
	b.must("go to the second", press("j"), press("j"))
	b.expect("Second", focus)
	s.send("Bob", maildir.Draft{To: []string{"pat"}, Subject: "Third", Body: "b"})
	b.must("see mail arrive", said("a", "Third"))
	b.expect("Second", focus)
	b.must("go on from there", press("j"))
	b.expect("First", focus)

	b.must("open it", press("o"), chromedp.WaitVisible(`#reply-body`))
	b.expect("First", `document.querySelector("[aria-current].row .what").textContent`)
	b.must("go back", chromedp.NavigateBack(), chromedp.WaitVisible(`.idle`))
	b.await(focus + ` === "Second"`) // the row next to the opened one, which is gone because its message is now read
	if n := s.unread(); n != 3 {
		t.Errorf("%d are unread after one was opened", n)
	}

	b.must("open the one that asks", press("k"), press("k"), press("k"), press("o"), chromedp.WaitVisible(`#reply-body`))
	const to = `[...document.querySelectorAll(".to :checked")].map(e => e.value).join()`
	b.expect("Ann,Bob", to)
	b.must("answer its author only", press("R"))
	b.expect("Ann reply-body", to+` + " " + document.activeElement.id`)
	b.must("send", chromedp.SendKeys(`#reply-body`, "Good."), pressWith(input.ModifierCtrl, "Enter"), said("p", "Sent to Ann, acknowledged."))
	b.shoot("sent")
	b.must("a small window", shape(1280))
	b.expect("beside it", `document.querySelector(".done p").textContent = "Sent to Ann, Bob ".repeat(9),
		document.querySelector(".done").getBoundingClientRect().right <= document.querySelector("#reply form").getBoundingClientRect().left
		? "beside it" : "over it"`)
	b.expect("Third", `document.querySelector(".scroll h1").textContent.trim()`)
	b.expect("", `location.search.match(/did|of/) + "" === "null" ? "" : location.search`)
	b.must("undo", press("z"), said("p", "Undone"))
	b.expect("Good. Ann reply-body", `document.getElementById("reply-body").value + " " + `+to+` + " " + document.activeElement.id`)
	if d, err := s.p.Box("pat", format.Origin{}).Delivery(t.Context(), plan.ID); err != nil || d.Acked {
		t.Errorf("after the undo: %+v, %v", d, err)
	}
	b.pass("1.1")
	b.must("try to be done", chromedp.Blur(`#reply-body`), press("e"), chromedp.WaitVisible(`#unsent`))
	b.must("discard the text", chromedp.Click(`[data-discard]`))
	b.expect(" clock true", `[document.getElementById("reply-body").value, Object.keys(localStorage), document.getElementById("unsent").hidden].join(" ")`)
	b.must("acknowledge", chromedp.Click(`article .menu summary`), chromedp.Click(`[value=acknowledged]`), said("p", "Acknowledged: "))

	for _, subject := range []string{"Fourth", "Fifth"} {
		s.send("Ann", maildir.Draft{To: []string{"pat"}, Subject: subject, Body: "b"})
	}
	b.visit("/")
	b.must("select two", press("j"), press("x"), press("j"), press("x"))
	s.send("Ann", maildir.Draft{To: []string{"pat"}, Subject: "Sixth", Body: "b"})
	b.must("see mail arrive", said("a", "Sixth"))
	b.expect("2", `String(document.querySelectorAll("[name=message]:checked").length)`)
	b.pass("1.1")
	b.must("be done with them", press("e"), said("p", "Marked as read: "))
	b.expect("Sixth,Third,Second", `[...document.querySelectorAll(".new .what")].map(e => e.textContent).join()`)
	b.await(`document.activeElement.matches("a.row")`)
	b.must("undo", press("z"), said("p", "Undone"))
	b.await(`document.querySelectorAll(".new li").length === 5`)
}

// unread returns the number of messages that pat has not read.
func (s *site) unread() int {
	s.Helper()
	page, err := s.p.Box("pat", format.Origin{}).Inbox(s.Context(), index.InboxQuery{UnreadOnly: true, Peek: true}, false, maildir.Waiting{})
	if err != nil {
		s.Fatal(err)
	}
	return page.Unread
}

// TestBrowserCompose checks that the form completes every recipient's name, not only the first. It also checks that
// files are sent with a message, and that a draft is kept after Cancel. Ctrl+Enter must send a message, and undo must
// restore its form.
func TestBrowserCompose(t *testing.T) {
	t.Parallel()
	s := open(t, page.Config{})
	file := filepath.Join(t.TempDir(), "plan.txt")
	if err := os.WriteFile(file, []byte("Zirconium"), 0o600); err != nil {
		t.Fatal(err)
	}
	b := s.tab()
	b.enter()
	b.must("write", press("c"), chromedp.WaitVisible(`#to`), chromedp.SendKeys(`#to`, "Ann, B"))
	b.expect("Ann, Bob", `[...document.querySelectorAll("#agents option")].map(o => o.value).find(v => v.includes("Bob"))`)
	b.must("leave it", chromedp.SendKeys(`#to`, "ob"), chromedp.SendKeys(`#subject`, "Plan"), chromedp.SendKeys(`#body`, "All of it"),
		chromedp.Click(`//main//a[. = "Cancel"]`), chromedp.WaitVisible(`.idle`), press("c"), chromedp.WaitVisible(`#to`))
	b.expect("Ann, Bob/Plan/All of it", `["to", "subject", "body"].map(n => document.getElementById(n).value).join("/")`)
	b.must("send", chromedp.SetUploadFiles(`input[type=file]`, []string{file}), chromedp.Focus(`#body`),
		pressWith(input.ModifierCtrl, "Enter"), said("p", "Sent to Ann, Bob."), said("a", "plan.txt"))
	b.must("undo", press("z"), said("p", "Undone"), said("p", "attach them again"))
	b.expect("Ann, Bob/Plan/All of it", `["to", "subject", "body"].map(n => document.getElementById(n).value).join("/")`)
}

// TestBrowserNoScript checks that everything works if scripts are disabled.
func TestBrowserNoScript(t *testing.T) {
	t.Parallel()
	s := open(t, page.Config{})
	asked := s.send("Ann", maildir.Draft{To: []string{"pat"}, Subject: "Which index?", Body: "a?", AckRequired: true})
	held := claim.Request{Agent: "Bob", Patterns: []string{"app/*.go"}, Reason: "migrations"}
	if _, err := s.p.Box(held.Agent, format.Origin{}).Claim(t.Context(), held); err != nil {
		t.Fatal(err)
	}
	b := s.tab()
	b.must("switch scripts off", emulation.SetScriptExecutionDisabled(true))
	b.enter()
	b.must("open the thread", chromedp.Click(`//main//a[contains(., "Which index?")]`), said("article", "a?"))
	if n := s.unread(); n != 0 {
		t.Errorf("%d are unread after one was opened", n)
	}
	b.must("acknowledge", chromedp.Click(`article .menu summary`), chromedp.Click(`[value=acknowledged]`), said("p", "Acknowledged: "))
	b.must("undo it", chromedp.Click(`.done button`), said("p", "Undone"))
	b.must("write, and hide it", chromedp.SendKeys(`#reply-body`, "Half of it"), chromedp.Click(`[value=later]`), said("p", "Your answer has not been sent."))
	b.expect("Half of it", `document.getElementById("reply-body").value`)
	b.must("discard it", chromedp.Click(`[data-discard]`), chromedp.WaitVisible(`#thread`))
	b.expect("", `document.getElementById("reply-body").value`)
	b.must("acknowledge", chromedp.Click(`article .menu summary`), chromedp.Click(`[value=acknowledged]`), said("p", "Acknowledged: "))
	b.must("reply", chromedp.SendKeys(`#reply-body`, "By name."),
		chromedp.Click(`button.main`), said("article", "By name."))
	b.must("undo the reply", chromedp.Click(`.done button`), said("p", "Undone"))
	b.must("say it better", chromedp.SetValue(`#reply-body`, "By name. Always."), chromedp.Click(`#reply button.main`), said("article", "By name. Always."))

	b.must("compose", chromedp.Click(`header .write`), chromedp.WaitVisible(`#to`),
		chromedp.SendKeys(`#to`, "Nob"), chromedp.SendKeys(`#subject`, "Plan"), chromedp.SendKeys(`#body`, "Zirconium first."),
		chromedp.Click(`button.main`), said("p", "Bob"))
	b.shoot("refused")
	b.must("fix the name", chromedp.SetValue(`#to`, "Bob"), chromedp.Click(`button.main`), said("article", "Zirconium"))
	b.must("search", chromedp.SendKeys(`#find`, "zirconium\r"), said("mark", "Zirconium"))
	b.must("read what was found", chromedp.Click(`main a.row`), said("article", "Zirconium"))

	b.must("release", chromedp.Click(`//nav//a[. = "More"]`), chromedp.Click(`//main//a[contains(., "claims")]`),
		chromedp.Click(`//button[contains(., "Release")]`), said("p", "No claims or recent edits."))
	for name, want := range map[string]string{"Ann": "By name. Always.", "Bob": "No reason was given."} {
		inbox, err := s.p.Box(name, format.Origin{}).Inbox(t.Context(), index.InboxQuery{Bodies: true}, false, maildir.Waiting{})
		if err != nil || len(inbox.Messages) == 0 || strings.TrimSpace(inbox.Messages[0].Body) != strings.TrimSpace(want) {
			t.Errorf("%s has %+v, %v", name, inbox, err)
		}
	}
	if d, err := s.p.Box("pat", format.Origin{}).Delivery(t.Context(), asked.ID); err != nil || !d.Acked {
		t.Errorf("the delivery is %+v, %v", d, err)
	}
}

// TestBrowserHostile checks that text from hostile agents cannot make a browser open a dialog, leave the page, or
// request anything from another server.
func TestBrowserHostile(t *testing.T) {
	t.Parallel()
	s := open(t, page.Config{})
	var views []string
	for _, text := range hostile {
		subject := strings.Map(oneLine, text)
		sent := s.send("Ann", maildir.Draft{To: []string{"pat"}, Subject: subject, Body: text + "\n\n> " + text})
		views = append(views, "/thread/"+sent.ID, "/compose?to="+escape(text)+"&body="+escape(text))
	}
	for i, text := range hostile {
		who := maildir.Registration{Program: text, Model: text, Task: strings.Map(oneLine, text)}
		if err := s.p.Agents.EnsureAgent(t.Context(), fmt.Sprint("Hostile", i), who); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.p.Box(claimOf("Ann", "a/<script>alert(1)</script>.go").Agent, format.Origin{}).Claim(t.Context(), claimOf("Ann", "a/<script>alert(1)</script>.go")); err != nil {
		t.Fatal(err)
	}
	b := s.tab()
	b.must("listen", network.Enable(), cdp.Enable())
	chromedp.ListenTarget(b.browser, func(event any) {
		switch e := event.(type) {
		case *cdp.EventJavascriptDialogOpening:
			t.Errorf("a dialog says %q at %s", e.Message, e.URL)
			go chromedp.Run(b.browser, cdp.HandleJavaScriptDialog(true)) //nolint:errcheck // the test has failed
		case *network.EventRequestWillBeSent:
			if !strings.HasPrefix(e.Request.URL, s.url+"/") && e.Request.URL != "about:blank" {
				t.Errorf("it requests %s", e.Request.URL)
			}
		}
	})
	b.enter()
	for _, view := range append(views, "/", "/inbox", "/threads", "/search?q=alert", "/activity", "/claims", "/agents") {
		b.visit(view)
		b.expect(s.base+strings.SplitN(view, "?", 2)[0], `location.pathname`)
	}
}
