package page_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"sync"
	"testing"

	core "github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"

	"mailtree/fixtures/waits"
)

// tab is a tab in a real Chromium browser that shows the site.
type tab struct {
	*site
	browser context.Context
	profile core.BrowserContextID // the test's cookies and stored data
	close   func()                // closes the tab
}

// tab opens a tab, or skips the test if Chromium is not installed. All tests share one browser, but each test has its own
// cookies and stored data, and its tab acts as if it had the focus.
func (s *site) tab() *tab {
	s.Helper()
	program := installed()
	if program == "" || testing.Short() {
		s.Skip("not done here: the page in a browser; it needs chromium-headless-shell or chromium, and time")
	}
	browser, err := chromium.start(program)
	if err != nil {
		s.Fatal(err)
	}
	profile, err := target.CreateBrowserContext().Do(browser)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() {
		if err := target.DisposeBrowserContext(profile).Do(browser); err != nil {
			s.Error(err)
		}
	})
	window, err := target.CreateTarget("about:blank").WithBrowserContextID(profile).WithNewWindow(true).Do(browser)
	if err != nil {
		s.Fatal(err)
	}
	return s.connect(browser, profile, chromedp.WithTargetID(window))
}

// beside opens another tab in the same window.
func (b *tab) beside() *tab {
	b.Helper()
	return b.connect(chromium.ctx, b.profile, chromedp.WithExistingBrowserContext(b.profile))
}

// connect connects to a tab, which is closed when the test ends.
func (s *site) connect(browser context.Context, profile core.BrowserContextID, which chromedp.ContextOption) *tab {
	s.Helper()
	ctx, stop := chromedp.NewContext(browser, which)
	s.Cleanup(stop)
	if err := chromedp.Run(ctx, emulation.SetFocusEmulationEnabled(true)); err != nil {
		s.Fatal(err)
	}
	return &tab{s, ctx, profile, stop}
}

// installed returns the program to run as the browser, or "" if none is installed. The shell is Chromium without its own
// windows and menus, and uses less than half of the CPU time. Debian's script for it in /usr/bin is not used, because the
// shell keeps running when the script is killed.
func installed() string {
	for _, name := range []string{"/usr/lib/chromium/chromium-headless-shell", "chromium"} {
		if program, err := exec.LookPath(name); err == nil {
			return program
		}
	}
	return ""
}

// chromium is the browser that all tests share.
var chromium chrome

// chrome is a Chromium browser, which is started when it is first needed.
type chrome struct {
	once sync.Once
	ctx  context.Context // runs actions in the browser
	err  error
	end  func() error // stops the browser; nil if it was not started
}

// start starts the browser unless it is running, and returns its context. The browser runs until end is called.
func (c *chrome) start(program string) (context.Context, error) {
	c.once.Do(func() {
		dir, err := os.MkdirTemp("", "chromium-")
		if err != nil {
			c.err = err
			return
		}
		options := append(chromedp.DefaultExecAllocatorOptions[:],
			chromedp.ExecPath(program), chromedp.NoSandbox, chromedp.UserDataDir(dir), chromedp.WSURLReadTimeout(waits.Hang))
		allocator, kill := chromedp.NewExecAllocator(context.Background(), options...)
		ctx, _ := chromedp.NewContext(allocator) // Cancel below stops it
		c.end = func() error {
			// A killed browser's processes would write to the folder for a moment. No page is open, so it closes at once.
			err := chromedp.Cancel(ctx)
			kill()
			return errors.Join(err, os.RemoveAll(dir))
		}
		if c.err = chromedp.Run(ctx); c.err == nil {
			c.ctx = core.WithExecutor(ctx, chromedp.FromContext(ctx).Browser)
		}
	})
	return c.ctx, c.err
}
