package page_test

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mailtree/fixtures/waits"
	"mailtree/maildir"
	"mailtree/maildir/claim"
	"mailtree/maildir/editing"
	"mailtree/maildir/format"
	"mailtree/page"
)

// words returns the text between from and to in a view, without the HTML tags.
func (b *browser) words(view, from, to string) string {
	b.Helper()
	_, text, _ := strings.Cut(b.see(view), from)
	text, _, _ = strings.Cut(text, to)
	return strings.Join(strings.Fields(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(text, " ")), " ")
}

// TestAgents checks that each agent is shown on one line, with what it is doing, its unread mail, its claims, and
// when it was last seen.
func TestAgents(t *testing.T) {
	t.Parallel()
	s := tell(t)
	b := s.person()
	for name, want := range map[string]string{
		"AmberFox":    "AmberFox can’t wake Flaky tests 2 unread",
		"GreenCastle": "GreenCastle active db/migrations/0042.sql 7m Which index for users?",
		"BlueLake":    "BlueLake can’t wake app/api/users.py 7m Account menu is ready to look at 1 unread",
		"robin":       "robin you",
	} {
		if got := b.words(s.base+"/agents", `<li id="`+name+`">`, "</div>"); !strings.HasPrefix(got, want) {
			t.Errorf("%q\nand not %q", got, want)
		}
	}
	if got := b.words(s.base+"/agents", `<li id="BlueLake">`, "</div>"); !strings.HasSuffix(got, "1 claim seen 28m") {
		t.Errorf("%q", got)
	}
	contains(t, b.words(s.base+"/agents", `<li id="AmberFox">`, "</li>"), "has had unread mail for", "gemini, ended")
}

// TestRail checks that the rail shows agents that are asking for permission first, then the most recently active
// agents, at most twelve in total. An agent that reports no state must be shown as active or quiet, or with its newest
// claim. The Now view must show the same states, even for agents whose claims the rail shows.
func TestRail(t *testing.T) {
	t.Parallel()
	c := &clock{now: time.Now()}
	s := bare(t, page.Config{Now: c.time})
	var names []string
	for i := range 14 {
		names = append(names, fmt.Sprintf("Agent%02d", i))
	}
	for i, name := range names {
		c.pass(time.Second)
		if err := s.p.Agents.EnsureAgent(t.Context(), name, maildir.Registration{Program: "test"}); err != nil {
			t.Fatal(err)
		}
		if i == 12 {
			c.pass(time.Hour)
		}
	}
	if _, err := s.p.Box(names[12], format.Origin{}).Claim(t.Context(), claim.Request{Patterns: []string{"b/c.go"}, TTL: 48 * time.Hour}); err != nil {
		t.Fatal(err)
	}
	s.asks(names[3], maildir.Pane{})
	b := s.person()
	const want = "Agent03 asks Agent12 claims c.go Agent13 active Agent11 quiet Agent10 quiet Agent09 quiet Agent08 quiet " +
		"Agent07 quiet Agent06 quiet Agent05 quiet Agent04 quiet Agent02 quiet"
	if got := b.words(s.base+"/", `<ul id="now" data-live>`, "</ul>"); got != want {
		t.Errorf("the rail is\n%s\nand not\n%s", got, want)
	}
	for _, state := range []string{"Agent03 asks", "Agent12 active", "Agent13 active", "Agent11 quiet", "Agent02 quiet"} {
		name, _, _ := strings.Cut(state, " ")
		if got := b.words(s.base+"/agents", `<li id="`+name+`">`, "</div>"); !strings.HasPrefix(got, state) {
			t.Errorf("%q and not %q", got, state)
		}
	}
}

// undoes matches the URL that undoes the user's last action.
var undoes = regexp.MustCompile(`action="([^"]*/undo)"`)

// TestHold checks that a user can hold an agent and give a reason, that the Now view and the rail show the hold, and
// that the Go button ends it. The user must be able to undo both actions. A browser that is signed in as an agent must
// be refused.
func TestHold(t *testing.T) {
	t.Parallel()
	s := tell(t)
	b := s.person()
	at := s.base + "/agents"
	shows := func(want string) {
		t.Helper()
		if got := b.words(at, `<li id="BlueLake">`, "</div>"); !strings.HasPrefix(got, "BlueLake "+want) {
			t.Errorf("%q, not %s", got, want)
		}
	}
	text := b.press(at, at+"/BlueLake/hold", "reason", "wait for me")
	contains(t, text, "The agent is on hold and has been notified.", "<small>held</small>", `aria-label="End the hold on BlueLake">Go</button>`)
	shows("held held by robin: wait for me")
	b.press(at, undoes.FindStringSubmatch(text)[1])
	shows("can’t wake app/api/users.py 7m Account menu is ready to look at")
	b.press(at, at+"/BlueLake/hold", "reason", "")
	shows("held held by robin ")
	waits.Until(t, "the hold is committed", func() bool {
		out, err := exec.Command("git", "--no-optional-locks", "-C", s.p.Dir(), "status", "--porcelain", "agents/BlueLake/hold").Output()
		return err == nil && len(out) == 0
	})
	text = b.press(at, at+"/BlueLake/go")
	contains(t, text, "The hold has ended.")
	shows("can’t wake ")
	b.press(at, undoes.FindStringSubmatch(text)[1])
	shows("held held by robin ")

	s.site = open(t, page.Config{})
	b = s.person()
	at = s.base + "/agents"
	if res, text := b.post(at+"/Ann/hold", b.form(at)); res.StatusCode != http.StatusForbidden {
		t.Errorf("as an agent: %s\n%s", res.Status, text)
	}
}

// TestClaims checks that one list shows each file that agents are currently editing or claiming, starting with files
// on which agents conflict. Claims that ended within the last day must follow. The rail must show the file that each
// agent is editing or claiming.
func TestClaims(t *testing.T) {
	t.Parallel()
	c := &clock{now: time.Now()}
	s := open(t, page.Config{Now: c.time})
	claimAs := func(agent string, ttl time.Duration, patterns ...string) {
		t.Helper()
		_, err := s.p.Box(agent, format.Origin{}).Claim(t.Context(), claim.Request{Patterns: patterns, TTL: ttl})
		if err != nil {
			t.Fatal(err)
		}
	}
	claimAs("Ann", 48*time.Hour, "a.go", "z.go")
	claimAs("Bob", 48*time.Hour, "b/**", "c.go")
	claimAs("Bob", time.Hour, "old.go")
	claimAs("Ann", 48*time.Hour, "c.go") // this claim is refused
	if _, err := s.p.Box("Ann", format.Origin{}).Release(t.Context(), []string{"z.go"}); err != nil {
		t.Fatal(err)
	}
	c.pass(2 * time.Hour)
	for _, path := range []string{"b/x.go", "e.go"} {
		c.pass(time.Second)
		s.p.Edits.Edited("Ann", editing.File{Disk: "/code/backend/" + path, Path: path})
	}
	c.pass(3 * time.Minute)
	b := s.person()
	rows := func() (all []string) {
		for _, m := range regexp.MustCompile(`(?s)<div class="row"[^>]*>(.*?)<span class="act">`).FindAllStringSubmatch(b.see(s.base+"/claims"), -1) {
			all = append(all, strings.Join(strings.Fields(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(m[1], " ")), " "))
		}
		return all
	}
	want := []string{
		"b/x.go Ann edited a file claimed by Bob 3m ago", "Bob has claimed b/** 1d 21h left", "c.go Bob has claimed it 1d 21h left",
		"a.go Ann has claimed it 1d 21h left", "b/** Bob has claimed it 1d 21h left", "e.go Ann edited it 3m ago",
		"old.go Bob ’s, expired 1h ago", "z.go Ann ’s, released 2h ago",
	}
	if diff := cmp.Diff(want, rows()); diff != "" {
		t.Errorf("the files (-want +got)\n%s", diff)
	}
	text := b.see(s.base + "/claims")
	contains(t, text, "/compose?to=Bob&amp;subject=May%20I%20have%20c.go%3f", "/compose?to=Bob&amp;subject=May%20I%20have%20b%2fx.go%3f",
		`title="edits e.go"><span class="hidden">edits </span><bdi>e.go</bdi></small>`)
	contains(t, b.words(s.base+"/claims", `>c.go</code>`, "</li>"), "Ask Release This claim stopped Ann ’s claim of c.go 2h ago")
	// The Release button is unobtrusive.
	contains(t, text, `<form class="small quiet" method="post" action="`+s.base+`/claims/release">`)
	if agents := b.see(s.base + "/agents"); strings.Contains(agents, "stopped") {
		t.Errorf("an agent that a claim refused is not stopped:\n%s", agents)
	}
	for _, anchor := range regexp.MustCompile(`/claims#([^"]+)"`).FindAllStringSubmatch(b.see(s.base+"/agents")+b.see(s.base+"/"), -1) {
		contains(t, text, `<div class="row" id="`+anchor[1]+`">`)
	}
	b.press(s.base+"/claims", s.base+"/claims/release", "agent", "Bob", "path", "b/**")
	contains(t, b.see(s.base+"/claims"), "Bob</bdi>’s, released by <bdi class=\"name\">pat</bdi>")
	c.pass(23 * time.Hour) // the server no longer remembers Ann's edits
	want = []string{"a.go Ann has claimed it 22h 57m left", "c.go Bob has claimed it 22h 57m left", "b/** Bob ’s, released by pat 23h ago"}
	if diff := cmp.Diff(want, rows()); diff != "" {
		t.Errorf("a day later (-want +got)\n%s", diff)
	}
}

// TestAgentsElsewhere checks that in a shared project, an agent that belongs to another machine is shown with the
// name of that machine.
func TestAgentsElsewhere(t *testing.T) {
	t.Parallel()
	s := open(t, page.Config{})
	dir := s.p.Dir()
	profile := filepath.Join(dir, "agents", "Bob", "profile.json")
	data, err := os.ReadFile(profile)
	if err == nil {
		row, _ := s.p.Agents.Whois(t.Context(), "Bob")
		err = os.WriteFile(profile, []byte(strings.Replace(string(data), row.Machine, "0123456789abcdef", 1)), 0o600)
	}
	if err = errors.Join(err, s.p.Rescan(t.Context()), exec.Command("git", "-C", dir, "remote", "add", "origin", t.TempDir()).Run()); err != nil {
		t.Fatal(err)
	}
	shown := func() string { return s.browser().words(s.base+"/agents", `<li id="Bob">`, "</div>") }
	if got := shown(); strings.Contains(got, "0123456789abcdef") {
		t.Error(got)
	}
	if err := s.p.Sync.Set(true); err != nil {
		t.Fatal(err)
	}
	contains(t, shown(), "on 0123456789abcdef")
	if got := s.browser().words(s.base+"/agents", `<li id="Ann">`, "</div>"); strings.Contains(got, " on ") {
		t.Error(got)
	}
}
