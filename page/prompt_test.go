package page_test

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"mailtree/fixtures/tmuxtest"
	"mailtree/fixtures/waits"
	"mailtree/maildir"
	"mailtree/page"
)

// asks makes an agent's client, which runs in the given pane, ask for permission. The returned function answers the
// prompt.
func (s *site) asks(agent string, at maildir.Pane) (answered func()) {
	s.Helper()
	k := maildir.SessionKey{Client: "claude", ID: agent}
	if _, err := s.p.Sessions.Begin(s.Context(), maildir.SessionEvent{SessionKey: k, Dir: "/code/backend/<web>", Agent: agent, Pane: at}); err != nil {
		s.Fatal(err)
	}
	s.p.Sessions.SetAsking(k, true, "")
	return func() { s.p.Sessions.SetAsking(k, false, "") }
}

// TestPrompt checks the row for a permission prompt from a client that sends no text about the tool. The row must say
// which agent's client is asking, and how to get to its tmux pane or, without a pane, to its folder. The menu must
// count the row, and its link must lead to the agent, where the same information is shown.
func TestPrompt(t *testing.T) {
	t.Parallel()
	s := open(t, page.Config{})
	b := s.person()
	for agent, c := range map[string]struct {
		pane maildir.Pane
		want string
	}{
		"Ann": {maildir.Pane{Tmux: "/tmp/tmux-1000/default,12,0", Pane: "%3"}, "tmux attach -t %3"},
		"Bob": {maildir.Pane{Tmux: "/run/work,12,0", Pane: "%4"}, "tmux -S /run/work attach -t %4"},
		"Cat": {maildir.Pane{}, "/code/backend/&lt;web&gt;"},
		"Dan": {maildir.Pane{Tmux: "/tmp/x;touch y,12,0", Pane: "%4"}, "/code/backend/&lt;web&gt;"},
		"Eve": {maildir.Pane{Tmux: "/tmp/x\x1b]0;y\a,12,0", Pane: "%4"}, "/code/backend/&lt;web&gt;"},
		"Flo": {maildir.Pane{Tmux: "/tmp/x,12,0", Pane: "%4;id"}, "/code/backend/&lt;web&gt;"},
	} {
		if err := s.p.Agents.EnsureAgent(t.Context(), agent, maildir.Registration{Program: "test"}); err != nil {
			t.Fatal(err)
		}
		answered := s.asks(agent, c.pane)
		contains(t, b.words(s.base+"/", `id="g-blocked">`, "</ul>"), "Blocked on you 1 "+agent+" asks now permission prompt in claude in its terminal "+c.want)
		contains(t, b.see(s.base+"/"), `Needs you <b>1</b>`, `<a class="row" href="`+s.base+`/agents#`+agent+`">`)
		contains(t, b.words(s.base+"/agents", `<li id="`+agent+`">`, "</li>"), agent+" asks ", "waiting for the user&#39;s permission. Answer in its terminal: "+c.want)
		answered()
		if text := b.see(s.base + "/"); strings.Contains(text, "permission prompt") {
			t.Errorf("%s's prompt was answered:\n%s", agent, text)
		}
	}
}

// TestBrowserPrompt checks that a permission prompt appears on an open page and disappears when it is answered, and
// that the command in its row switches to the client's pane.
func TestBrowserPrompt(t *testing.T) {
	t.Parallel()
	agents, desk := tmuxtest.Start(t), tmuxtest.Start(t)
	asking := agents.Window("work", "asking", t.TempDir())
	agents.Run("select-window", "-t", agents.Window("work", "other", t.TempDir()).Pane)
	s := open(t, page.Config{})
	s.asks("Bob", maildir.Pane{Tmux: asking.Tmux, Pane: asking.Pane})() // begins the session and answers its prompt
	b := s.tab()
	b.enter()
	k := maildir.SessionKey{Client: "claude", ID: "Bob"}
	s.p.Sessions.SetAsking(k, true, "")
	b.must("see the prompt", said(`a[contains(@class, "row")]`, "permission prompt in claude"))
	b.shoot("prompt")
	var command string
	b.must("read the command", chromedp.Text(`.list .row code`, &command))
	desk.Program("terminal", "exec env TMUX= "+command)
	waits.Until(t, "the command leads to the pane", func() bool { return agents.Run("list-clients", "-F", "#{pane_id}") == asking.Pane })
	s.p.Sessions.SetAsking(k, false, "")
	b.must("see it go", said("p", "Nothing needs you."))
}
