package page_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/network"
	cdp "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"mailtree/maildir"
	"mailtree/maildir/claim"
	"mailtree/maildir/format"
	"mailtree/maildir/index"
	"mailtree/page"
)

// tab is a real Chromium that shows the site.
type tab struct {
	*site
	browser context.Context
}

// tab opens a Chromium for the test, or skips the test if there is none.
func (s *site) tab() *tab {
	s.Helper()
	program, err := exec.LookPath("chromium")
	if err != nil || testing.Short() {
		s.Skip("not done here: the page in a browser; it needs chromium, and time")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(program), chromedp.NoSandbox, chromedp.UserDataDir(s.TempDir()), chromedp.WSURLReadTimeout(time.Minute))
	ctx, stop := context.WithTimeout(s.Context(), 4*time.Minute)
	s.Cleanup(stop)
	ctx, stop = chromedp.NewExecAllocator(ctx, options...)
	s.Cleanup(stop)
	ctx, stop = chromedp.NewContext(ctx)
	s.Cleanup(stop)
	if err := chromedp.Run(ctx); err != nil { // the browser lives as long as the context that starts it
		s.Fatal(err)
	}
	return &tab{s, ctx}
}

// must makes the browser act, for half a minute at most.
func (b *tab) must(what string, actions ...chromedp.Action) {
	b.Helper()
	ctx, stop := context.WithTimeout(b.browser, 30*time.Second)
	defer stop()
	if err := chromedp.Run(ctx, actions...); err != nil {
		b.Fatalf("%s: %v", what, err)
	}
}

// enter opens the page as pat.
func (b *tab) enter() {
	b.Helper()
	b.must("open the link", chromedp.EmulateViewport(1100, 700), chromedp.Navigate(b.url+b.page.Link("pat", "uid:1000", "")),
		chromedp.WaitVisible(`main h1`))
}

// visit opens a view of the project.
func (b *tab) visit(view string) {
	b.Helper()
	b.must("visit "+view, chromedp.Navigate(b.url+b.base+view), chromedp.WaitVisible(`main h1`))
}

// expect compares the result of a script with a text.
func (b *tab) expect(want, script string) {
	b.Helper()
	var got string
	b.must(script, chromedp.Evaluate(script, &got))
	if got != want {
		b.Errorf("%s is %q, not %q", script, got, want)
	}
}

// await waits until a script returns true.
func (b *tab) await(script string) {
	b.Helper()
	b.must("wait for "+script, chromedp.Poll(script, nil, chromedp.WithPollingTimeout(20*time.Second)))
}

// press types a key into the focused element.
func press(key string) chromedp.Action {
	return input.DispatchKeyEvent(input.KeyDown).WithKey(key).WithText(key)
}

// pressWith types a key together with Ctrl, Alt or Cmd.
func pressWith(held input.Modifier, key string) chromedp.Action {
	return input.DispatchKeyEvent(input.KeyDown).WithKey(key).WithModifiers(held)
}

// said selects an element that shows a text.
func said(element, text string) chromedp.Action {
	return chromedp.WaitVisible(fmt.Sprintf(`//%s[contains(., %q)]`, element, text))
}

// TestBrowserLive: new mail appears without disturbing the scroll position, a selection or typing.
func TestBrowserLive(t *testing.T) {
	s := open(t, page.Config{})
	first := s.send("Ann", maildir.Draft{To: []string{"pat"}, Subject: "First", Body: strings.Repeat("Is this live?\n\n", 60)})
	b := s.tab()
	b.enter()
	s.send("Bob", maildir.Draft{To: []string{"pat"}, Subject: "Second", Body: "b"})
	b.must("see mail arrive", said("a", "Second"))

	b.visit("/thread/" + first.ID)
	b.must("begin a reply", chromedp.SendKeys(`#reply-body`, "My draft"))
	b.must("select in it", chromedp.Evaluate(`document.getElementById("reply-body").setSelectionRange(3, 8)`, nil),
		chromedp.Evaluate(`scrollTo(0, 300); window.before = scrollY`, nil))
	answer := maildir.Draft{To: []string{"Ann"}, Subject: "Re: First", Body: "Another's answer", ThreadID: first.ID}
	s.send("Bob", answer)
	b.must("see the answer of another beside the draft", said("article", "Another's answer"))
	b.expect("My draft", `document.getElementById("reply-body").value`)
	b.expect("draft", `(e => e.value.slice(e.selectionStart, e.selectionEnd))(document.activeElement)`)
	b.expect("300 300", `window.before + " " + scrollY`)

	b.must("select what is read", chromedp.Evaluate(`getSelection().selectAllChildren(document.querySelector("article .body p"))`, nil))
	answer.Body = "A third"
	s.send("Bob", answer)
	b.must("hear of an answer", said(`*[@id="stale"]`, "1 new."))
	b.expect("Is this live?", `getSelection().toString()`)
	b.must("ask for it", chromedp.Click(`#stale button`), said("article", "A third"))
}

// TestBrowserTimes: times advance on an open page when nothing happens, and are not news: only new items
// fade, and selecting or opening something is not disturbed.
func TestBrowserTimes(t *testing.T) {
	var ahead atomic.Int64
	s := open(t, page.Config{Now: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }})
	first := s.send("Ann", maildir.Draft{To: []string{"pat"}, Subject: "First", Body: "b"})
	b := s.tab()
	b.must("let a minute last 0.6 s", chromedp.ActionFunc(func(ctx context.Context) error {
		_, err := cdp.AddScriptToEvaluateOnNewDocument(`(real => { setInterval = (f, ms) => real(f, ms / 100) })(setInterval)`).Do(ctx)
		return err
	}))
	b.enter()
	ahead.Store(int64(5 * time.Minute))
	b.await(`document.querySelector("main li time").textContent === "5m"`)
	s.send("Bob", maildir.Draft{To: []string{"pat"}, Subject: "Second", Body: "b"})
	b.must("see mail arrive", said("a", "Second"))
	b.expect("Second", `[...document.querySelectorAll(".fresh .what")].map(e => e.textContent.trim()).join()`)

	b.visit("/thread/" + first.ID)
	b.must("open something", chromedp.Click(`article details summary`))
	ahead.Store(int64(7 * time.Minute))
	b.await(`document.querySelector("article time").textContent === "7m"`)
	b.expect("true ", `document.querySelector("article details").open + " " + document.getElementById("stale").textContent`)
}

// TestBrowserTabs: ten tabs of one browser work, although it allows six connections to a host. A tab that
// comes to the front again shows the new mail.
func TestBrowserTabs(t *testing.T) {
	s := open(t, page.Config{})
	b := s.tab()
	b.enter()
	for range 10 {
		b.must("leave the tab", chromedp.Evaluate(hide("hidden"), nil))
		ctx, stop := chromedp.NewContext(b.browser)
		t.Cleanup(stop)
		if err := chromedp.Run(ctx); err != nil {
			t.Fatal(err)
		}
		b = &tab{s, ctx}
		b.visit("/")
	}
	b.must("leave it", chromedp.Evaluate(hide("hidden"), nil))
	s.send("Ann", maildir.Draft{To: []string{"pat"}, Subject: "First", Body: "a"})
	b.must("come back", chromedp.Evaluate(hide("visible"), nil), said("a", "First"))
}

// hide makes a tab believe that it is hidden, or visible: without a screen every tab is visible.
func hide(state string) string {
	return fmt.Sprintf(`Object.defineProperty(document, "hidden", {value: %t, configurable: true});
		document.dispatchEvent(new Event("visibilitychange")); 0`, state == "hidden")
}

// TestBrowserDraft: a draft survives a restart of the server and a reload of the page, and is dropped once
// it is sent; the page says when the server is away.
func TestBrowserDraft(t *testing.T) {
	s := open(t, page.Config{})
	asked := s.send("Ann", maildir.Draft{To: []string{"pat"}, Subject: "Which?", Body: "a?"})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	server := &http.Server{Handler: s.page}
	go server.Serve(listener) //nolint:errcheck // it is closed below
	s.url = "http://" + address
	b := s.tab()
	b.enter()
	b.visit("/thread/" + asked.ID)
	b.must("write", chromedp.SendKeys(`#reply-body`, "My draft"))

	server.Close()
	b.must("hear that the server is away", said(`*[@id="stale"]`, "stale since"))
	again := httptest.NewUnstartedServer(page.New(page.Config{Store: s.store.Store}))
	again.Listener.Close()
	if again.Listener, err = net.Listen("tcp", address); err != nil {
		t.Fatal(err)
	}
	again.Start()
	t.Cleanup(again.Close)
	b.await(`document.getElementById("stale").hidden`)
	b.expect("My draft", `document.getElementById("reply-body").value`)

	b.visit("/inbox")
	b.visit("/thread/" + asked.ID)
	b.expect("My draft", `document.getElementById("reply-body").value`)
	b.must("send it", chromedp.Click(`button.main`), said("article", "My draft"))
	b.expect("", `document.getElementById("reply-body").value`)
	b.expect("", `localStorage.length ? JSON.stringify(localStorage) : ""`)
}

// TestBrowserKeys: each key does what the page says, but nothing together with Ctrl, Alt or Cmd or in a
// field.
func TestBrowserKeys(t *testing.T) {
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
		for _, key := range strings.Split("j k o r e / ? g i", " ") {
			b.must("press "+key, pressWith(held, key))
		}
		b.expect("Second", focus)
		b.expect("false", `String(document.getElementById("keys").open)`)
		b.expect("Waiting for you", `document.querySelector("main h1").textContent`)
	}
	b.must("press ?", press("?"))
	b.expect("true", `String(document.getElementById("keys").open)`)
	b.must("press o", press("o"), chromedp.WaitVisible(`#reply-body`), press("r"))
	b.expect("reply-body", `document.activeElement.id`)
	b.must("type the keys", chromedp.SendKeys(`#reply-body`, "jkore/?gi"))
	b.expect("jkore/?gi", `document.getElementById("reply-body").value`)
	b.must("press e", chromedp.Blur(`#reply-body`), press("e"), said("button", "Mark as unread"))
	b.must("press /", press("/"))
	b.expect("find", `document.activeElement.id`)
	b.must("press g i", chromedp.Blur(`#find`), press("g"), press("i"), said("h1", "Inbox"))
	if d, err := s.p.Box("pat", format.Origin{}).Inbox(t.Context(), index.InboxQuery{UnreadOnly: true, Peek: true}, false, maildir.Waiting{}); err != nil || d.Unread != 1 {
		t.Errorf("the inbox is %+v, %v", d, err)
	}
}

// TestBrowserNoScript: everything works without a script.
func TestBrowserNoScript(t *testing.T) {
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
	b.must("acknowledge", chromedp.Click(`//button[contains(., "Acknowledge")]`), said(`*[@class="receipts"]`, "✓ acknowledged"))
	b.must("reply", chromedp.SendKeys(`#reply-body`, "By name."), chromedp.Click(`button.main`), said("article", "By name."))

	b.must("compose", chromedp.Click(`//nav//a[contains(., "New message")]`), chromedp.WaitVisible(`#to`),
		chromedp.SendKeys(`#to`, "Nob"), chromedp.SendKeys(`#subject`, "Plan"), chromedp.SendKeys(`#body`, "Zirconium first."),
		chromedp.Click(`button.main`), said("p", "Bob"))
	b.shoot("refused")
	b.must("mend the name", chromedp.SetValue(`#to`, "Bob"), chromedp.Click(`button.main`), said("article", "Zirconium"))
	b.must("search", chromedp.SendKeys(`#find`, "zirconium\r"), said("mark", "Zirconium"))
	b.must("read what was found", chromedp.Click(`main a.row`), said("article", "Zirconium"))

	b.must("release", chromedp.Click(`//nav//a[contains(., "Claims")]`), chromedp.Click(`//button[contains(., "Release")]`),
		said("p", "No file is claimed"))
	for name, want := range map[string]string{"Ann": "By name.\n", "Bob": "No reason was given."} {
		inbox, err := s.p.Box(name, format.Origin{}).Inbox(t.Context(), index.InboxQuery{Bodies: true}, false, maildir.Waiting{})
		if err != nil || len(inbox.Messages) == 0 || strings.TrimSpace(inbox.Messages[0].Body) != strings.TrimSpace(want) {
			t.Errorf("%s has %+v, %v", name, inbox, err)
		}
	}
	if d, err := s.p.Box("pat", format.Origin{}).Delivery(t.Context(), asked.ID); err != nil || !d.Acked {
		t.Errorf("the delivery is %+v, %v", d, err)
	}
}

// TestBrowserHostile: a browser that shows the texts of hostile agents opens no dialog, leaves the page
// nowhere, and asks no other server for anything.
func TestBrowserHostile(t *testing.T) {
	s := open(t, page.Config{})
	var views []string
	for _, text := range hostile {
		subject := strings.Map(oneLine, text)
		sent := s.send("Ann", maildir.Draft{To: []string{"pat"}, Subject: subject, Body: text + "\n\n> " + text})
		views = append(views, "/thread/"+sent.ID, "/compose?to="+escape(text)+"&body="+escape(text))
	}
	for i, text := range hostile {
		who := maildir.Registration{Program: text, Model: text, Task: strings.Map(oneLine, text)}
		if err := s.p.EnsureAgent(t.Context(), fmt.Sprint("Hostile", i), who); err != nil {
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
				t.Errorf("it asks for %s", e.Request.URL)
			}
		}
	})
	b.enter()
	for _, view := range append(views, "/", "/inbox", "/threads", "/search?q=alert", "/activity", "/claims", "/agents") {
		b.visit(view)
		b.expect(s.base+strings.SplitN(view, "?", 2)[0], `location.pathname`)
	}
}
