package page_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"mailtree/maildir"
	"mailtree/maildir/attachment"
	"mailtree/maildir/claim"
	"mailtree/maildir/editing"
	"mailtree/maildir/format"
	"mailtree/page"
)

// clock is a clock that a test sets.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) time() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// story is a project in the middle of a working day. A question and a request for an acknowledgment are waiting for
// robin, other agents owe robin an acknowledgment, AmberFox is idle with unread mail, files are claimed, and one file is
// invalid.
type story struct {
	*site
	clock *clock
	asked string // the message that is waiting for robin
}

func tell(t *testing.T) *story {
	c := &clock{now: time.Now().Add(-3 * time.Hour)}
	s := &story{site: bare(t, page.Config{Now: c.time, Person: "robin"}), clock: c}
	s.user = "robin"
	if _, err := s.store.EnsureProject(t.Context(), "/code/website"); err != nil {
		t.Fatal(err)
	}
	for name, r := range map[string]maildir.Registration{
		"GreenCastle": {Program: "codex-cli", Model: "gpt5-codex", Task: "Users API and its migrations"},
		"BlueLake":    {Program: "claude-code", Model: "opus-4.1", Task: "Navbar and account menu"},
		"AmberFox":    {Program: "gemini-cli", Model: "gemini-3-pro", Task: "Flaky tests"},
		"robin":       {Program: "person"},
	} {
		if err := s.p.Agents.EnsureAgent(t.Context(), name, r); err != nil {
			t.Fatal(err)
		}
	}
	red := maildir.SessionKey{Client: "gemini", ID: "1"}
	if _, err := s.p.Sessions.Begin(t.Context(), maildir.SessionEvent{SessionKey: red, Agent: "AmberFox"}); err != nil {
		t.Fatal(err)
	}
	s.early()
	s.p.Sessions.End(t.Context(), red)
	s.late()
	return s
}

// early creates the mail and claims of the story's first two hours.
func (s *story) early() {
	plan := s.send("GreenCastle", maildir.Draft{
		To:       []string{"BlueLake", "AmberFox"},
		CC:       []string{"robin"},
		Subject:  "Plan for /api/users",
		ThreadID: "users-api",
		Body: "The table gets two columns, and `GET /api/users` pages by them:\n\n" +
			"```sql\nALTER TABLE users ADD COLUMN seen_at timestamptz;\nCREATE INDEX users_seen ON users (tenant, seen_at DESC);\n```\n\n" +
			"1. migration, behind a flag\n2. the endpoint\n3. the account menu reads it\n",
		AckRequired: true,
	})
	s.claim("GreenCastle", 4*time.Hour, "migrations", "app/api/*.py", "db/migrations/**")
	s.clock.pass(25 * time.Minute)
	s.acknowledge("BlueLake", plan.ID)
	answer := s.reply("BlueLake", plan.ID, "Good. The menu shows the last ten; I need `seen_at` and the name, nothing else.")
	s.acknowledge("AmberFox", plan.ID)
	s.acknowledge("robin", plan.ID)
	s.clock.pass(30 * time.Minute)
	s.reply("GreenCastle", answer, "> I need `seen_at` and the name, nothing else.\n\nDecided: the answer has exactly those two and an id.")
	s.claim("BlueLake", 2*time.Hour, "account menu", "web/src/navbar/*.tsx")
	s.clock.pass(15 * time.Minute)
	s.send("robin", maildir.Draft{
		To:          []string{"AmberFox"},
		Subject:     "Which tests are flaky?",
		Body:        "Please list them with how often each fails, before you change any.",
		AckRequired: true,
	})
	s.clock.pass(20 * time.Minute)
}

// late creates the mail and claims of the story's last hour and a half.
func (s *story) late() {
	s.send("BlueLake", maildir.Draft{To: []string{"AmberFox"}, Subject: "Navbar tests need a browser", Body: "Skip them for now?"})
	s.clock.pass(50 * time.Minute)
	s.claim("AmberFox", 3*time.Hour, "flaky tests", "tests/api/**")
	s.send("BlueLake", maildir.Draft{
		To:         []string{"robin"},
		Subject:    "Account menu is ready to look at",
		Body:       "It is on the branch `account-menu`. The narrow view is new.",
		Importance: "high",
		Files:      []attachment.File{attachment.Named("menu.css", []byte(".menu { width: 320px }\n"))},
	})
	s.clock.pass(21 * time.Minute)
	s.edits("GreenCastle", "db/migrations/0042.sql")
	s.edits("BlueLake", "app/api/users.py")
	s.clock.pass(3 * time.Minute)
	s.ask()
	s.foreign("messages/2026/11/notes.md", "Lunch at one?\n")
	s.clock.pass(4 * time.Minute)
}

// ask sends the question that is waiting for robin.
func (s *story) ask() {
	s.asked = s.send("GreenCastle", maildir.Draft{
		To:      []string{"robin"},
		Subject: "Which index for users?",
		Body: "Both answer the query; the second is 40 MB smaller and 3 ms slower.\n\n" +
			"| index | size | p95 |\n|---|--:|--:|\n| (tenant, seen_at) | 96 MB | 4 ms |\n| (seen_at) | 56 MB | 7 ms |\n\nI will go with the first one at three o'clock.",
		AckRequired: true,
	}).ID
}

func (s *story) reply(from, to, body string) string {
	sent, err := s.p.Box(from, format.Origin{}).Reply(s.Context(), to, maildir.Draft{Body: body})
	if err != nil {
		s.Fatal(err)
	}
	return sent.ID
}

func (s *story) claim(agent string, ttl time.Duration, why string, patterns ...string) {
	r, err := s.p.Box(agent, format.Origin{}).Claim(s.Context(), claim.Request{Patterns: patterns, TTL: ttl, Reason: why})
	if err != nil || len(r.Conflicts) > 0 {
		s.Fatal(r, err)
	}
}

// edits records that an agent edited a file.
func (s *story) edits(agent, path string) {
	s.p.Edits.Edited(agent, editing.File{Disk: "/code/website/" + path, Path: path})
}

// acknowledge makes an agent acknowledge a message.
func (s *story) acknowledge(agent, id string) {
	if _, err := s.p.Box(agent, format.Origin{}).Acknowledge(s.Context(), id); err != nil {
		s.Fatal(err)
	}
}

// foreign saves a file that is not a valid mail file.
func (s *story) foreign(path, text string) {
	file := filepath.Join(s.p.Dir(), path)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		s.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		s.Fatal(err)
	}
	if err := s.p.Rescan(s.Context()); err != nil {
		s.Fatal(err)
	}
}

// views returns the URLs of all views of the story's project. Each of these views has some content.
func (s *story) views() []string {
	return []string{
		"/", "/inbox", "/threads", "/thread/users-api", "/thread/" + s.asked, "/search", "/search?q=users", "/search?q=zirconium", "/compose",
		"/agents", "/claims", "/decisions", "/activity", "/problems", "/more", "/nothing", "/message/" + s.asked + "/history",
	}
}

// scheme sets the browser's preference for a dark or light theme.
func scheme(name string) chromedp.Action {
	return emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}})
}

// shape sets the width of the browser window.
func shape(width int64) chromedp.Action { return chromedp.EmulateViewport(width, 800) }

var pictures = flag.Bool("pictures", false, "write the pictures in docs/")

// TestBrowserLooks checks that each view fits into a width of 360 pixels and follows the preference for a dark theme,
// that the menu fits into a window of medium width, and that axe finds no accessibility problems. If SCREENSHOTS names
// a folder, the test writes pictures to it. With -pictures, it also writes the pictures in docs/. MAILTREE_AXE must be
// the path of axe-core's axe.min.js.
func TestBrowserLooks(t *testing.T) {
	t.Parallel()
	s := tell(t)
	s.asks("BlueLake", maildir.Pane{Tmux: "/tmp/tmux-1000/default,12,0", Pane: "%3"})
	b := s.tab()
	axe := readAxe(t)
	b.enter()
	if *pictures {
		for _, theme := range []struct{ scheme, suffix string }{{"light", ""}, {"dark", "-dark"}} {
			b.must(theme.scheme, scheme(theme.scheme), chromedp.EmulateViewport(1440, 900))
			b.visit("/thread/" + s.asked)
			b.save("../docs/pictures/page-waiting" + theme.suffix + ".png")
		}
		b.must("a phone, dark", chromedp.EmulateViewport(390, 844, chromedp.EmulateMobile, chromedp.EmulateTouch))
		b.visit("/")
		b.save("../docs/pictures/page-narrow.png")
		b.must("a mouse", emulation.SetTouchEmulationEnabled(false))
	}
	const lightness = `String(getComputedStyle(document.body).backgroundColor.match(/\d+/g).reduce((a, n) => a + +n, 0) > 384)`
	for _, view := range s.views() {
		b.must("light", scheme("light"), shape(1440))
		b.visit(view)
		b.expect("true", lightness)
		b.expect("aligned", aligned)
		b.audit(axe, view+", light")
		b.shoot("light" + view)

		b.must("dark", scheme("dark"))
		b.expect("false", lightness)
		b.audit(axe, view+", dark")
		b.shoot("dark" + view)

		b.must("narrow", shape(360))
		b.expect("fits", `document.documentElement.scrollWidth <= 360 ? "fits" : "`+view+` is " + document.documentElement.scrollWidth`)
		b.expect("aligned", aligned)
		b.audit(axe, view+", narrow")
		b.shoot("narrow" + view)

		b.must("touch", chromedp.EmulateViewport(360, 800, chromedp.EmulateMobile, chromedp.EmulateTouch))
		b.expect("", small)
		b.shoot("touch" + view)
		b.must("a mouse", emulation.SetTouchEmulationEnabled(false))
	}
	for _, width := range []int64{760, 900, 1100} {
		b.must("a window of medium width", shape(width))
		b.visit("/decisions")
		b.expect("fits", fmt.Sprintf(`document.documentElement.scrollWidth <= %d ? "fits" : String(document.documentElement.scrollWidth)`, width))
		b.shoot(fmt.Sprintf("medium%d", width))
	}
	b.must("the list of projects", shape(1100), chromedp.Navigate(s.url), said("h1", "All projects"))
	b.expect("wide", wide)
	b.audit(axe, "projects")
	b.shoot("projects")
	b.must("a link that was used", chromedp.Navigate(s.url+"/open/used"), said("h1", "Forbidden"))
	b.expect("wide", wide)
}

// small is a script that lists the controls that are hard to tap: less than 40 pixels high and outside a line of
// text.
const small = `[...document.querySelectorAll("a, button, summary, select, input:not([type=hidden], [type=checkbox]), label:has([type=checkbox])")]
	.filter(e => e.checkVisibility() && !e.closest(".body, .skip, .done") && e.getBoundingClientRect().height < 40)
	.map(e => e.outerHTML.slice(0, 80) + " " + e.getBoundingClientRect().height).join("\n")`

// aligned is a script that reports whether the times in a list are aligned in a single column.
const aligned = `new Set([...document.querySelectorAll(".row > time")].map(e => Math.round(e.getBoundingClientRect().right))).size < 2
	? "aligned" : "the times end in several columns"`

// wide is a script that reports whether a view without a menu is as wide as the window.
const wide = `document.querySelector("main").offsetWidth > 1000 ? "wide" : "main is " + document.querySelector("main").offsetWidth`

// readAxe returns the axe-core script, or "" if it is not installed.
func readAxe(t *testing.T) string {
	path := os.Getenv("MAILTREE_AXE")
	if path == "" {
		t.Log("not done here: the views with axe-core; MAILTREE_AXE names no axe.min.js")
		return ""
	}
	script, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(script)
}

// findings is a script that returns axe-core's findings for the view, one line per element.
const findings = `axe.run(document, {resultTypes: ["violations"]}).then(r =>
	r.violations.flatMap(v => v.nodes.map(n => v.id + ": " + n.target.join(" ") + ": " + n.failureSummary)).join("\n"))`

// audit fails the test if axe-core finds a problem in the view.
func (b *tab) audit(axe, what string) {
	b.Helper()
	if axe == "" {
		return
	}
	var found string
	b.must("run axe on "+what, chromedp.Evaluate(axe+";0", nil),
		chromedp.Evaluate(findings, &found, func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }))
	if found != "" {
		b.Errorf("%s:\n%s", what, found)
	}
}

// nameRune returns r if it is allowed in the name of a picture, and '-' otherwise.
func nameRune(r rune) rune {
	if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
		return r
	}
	return '-'
}

// shoot takes a picture if SCREENSHOTS names a folder.
func (b *tab) shoot(name string) {
	b.Helper()
	folder := os.Getenv("SCREENSHOTS")
	if folder == "" {
		return
	}
	b.save(filepath.Join(folder, strings.Trim(strings.Map(nameRune, name), "-")+".png"))
}

// save takes a picture.
func (b *tab) save(file string) {
	b.Helper()
	var picture []byte
	b.must("a picture", chromedp.CaptureScreenshot(&picture))
	if err := os.WriteFile(file, picture, 0o644); err != nil {
		b.Fatal(err)
	}
}
