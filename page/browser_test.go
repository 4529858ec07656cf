package page_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"

	"mailtree/maildir"
	"mailtree/page"
)

// TestBrowser: what the script does, in a real Chromium. With SCREENSHOTS set to a folder it leaves
// pictures there.
func TestBrowser(t *testing.T) {
	program, err := exec.LookPath("chromium")
	if err != nil || testing.Short() {
		t.Skip("needs chromium, and time")
	}
	s := open(t, page.Config{})
	first := s.send(maildir.Draft{From: "Ann", To: []string{"pat"}, Subject: "First", Body: "Is this `live`?"})
	ctx := chromium(t, program)

	must(ctx, t, "open the link", chromedp.EmulateViewport(1100, 700), chromedp.Navigate(s.url+s.page.Link("pat", "uid:1000")),
		chromedp.WaitVisible(`//a[contains(., "First")]`))
	shoot(ctx, t, "waiting")

	s.send(maildir.Draft{From: "Bob", To: []string{"pat"}, Subject: "Second", Body: "b"})
	must(ctx, t, "see mail arrive", chromedp.WaitVisible(`//a[contains(., "Second")]`))

	thread := s.url + s.base + "/thread/" + first.ID
	must(ctx, t, "open with keys", press("j"), press("j"), press("o"), chromedp.WaitVisible(`#reply-body`),
		press("r"), chromedp.SendKeys(`#reply-body`, "My draft"))
	s.send(maildir.Draft{From: "Bob", To: []string{"Ann"}, Subject: "Re: First", Body: "Third", ThreadID: first.ID})
	must(ctx, t, "see the answer of another beside the draft", chromedp.WaitVisible(`//article[contains(., "Third")]`))
	expect(ctx, t, "My draft", `document.getElementById("reply-body").value`)
	expect(ctx, t, "reply-body", `document.activeElement.id`)
	shoot(ctx, t, "thread")

	must(ctx, t, "load it again", chromedp.Navigate("about:blank"), chromedp.Navigate(thread), chromedp.WaitVisible(`#reply-body`))
	expect(ctx, t, "My draft", `document.getElementById("reply-body").value`)
	must(ctx, t, "send it", chromedp.Click(`button.main`), chromedp.WaitVisible(`//article[contains(., "My draft")]`))
	expect(ctx, t, "", `document.getElementById("reply-body").value`)
	expect(ctx, t, "", `localStorage.length ? JSON.stringify(localStorage) : ""`)

	for _, view := range []string{
		"/", "/inbox?all=1", "/thread/" + first.ID, "/compose", "/agents", "/claims", "/activity", "/search?q=draft",
	} {
		must(ctx, t, "show "+view, chromedp.EmulateViewport(360, 740), chromedp.Navigate(s.url+s.base+view), chromedp.WaitVisible(`main h1`))
		expect(ctx, t, "fits", `document.documentElement.scrollWidth <= 360 ? "fits" : "`+view+` is " + document.documentElement.scrollWidth`)
		shoot(ctx, t, "narrow"+strings.Map(plainLetter, view))
	}
}

// press types a key that no field gets.
func press(key string) chromedp.Action {
	return input.DispatchKeyEvent(input.KeyDown).WithKey(key).WithText(key)
}

func plainLetter(r rune) rune {
	if r >= 'a' && r <= 'z' {
		return r
	}
	return -1
}

// chromium starts a browser of the test's own.
func chromium(t *testing.T, program string) context.Context {
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(program), chromedp.NoSandbox, chromedp.UserDataDir(t.TempDir()), chromedp.WSURLReadTimeout(time.Minute))
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(stop)
	ctx, stop = chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(stop)
	ctx, stop = chromedp.NewContext(ctx)
	t.Cleanup(stop)
	return ctx
}

func must(ctx context.Context, t *testing.T, what string, actions ...chromedp.Action) {
	t.Helper()
	if err := chromedp.Run(ctx, actions...); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// expect holds what a script of the test says against a text.
func expect(ctx context.Context, t *testing.T, want, script string) {
	t.Helper()
	var got string
	must(ctx, t, script, chromedp.Evaluate(script, &got))
	if got != want {
		t.Errorf("%s is %q, not %q", script, got, want)
	}
}

func shoot(ctx context.Context, t *testing.T, name string) {
	folder := os.Getenv("SCREENSHOTS")
	if folder == "" {
		return
	}
	var picture []byte
	must(ctx, t, "a picture", chromedp.CaptureScreenshot(&picture))
	if err := os.WriteFile(filepath.Join(folder, name+".png"), picture, 0o644); err != nil {
		t.Fatal(err)
	}
}
