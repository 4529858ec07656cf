package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mailtree/fixtures/model"
)

// TestClientAsks checks that, in Claude Code's manual mode, a woken turn waits at a permission prompt, and the
// session is reported as waiting until the user answers. With the settings that `mailtree setup --allow` writes,
// there is no prompt.
func TestClientAsks(t *testing.T) {
	d := newDesk(t, claudeKit.name)
	d.model.Script(t,
		model.Rule{When: "The other side", Text: "Listed."}, // part of GreenCastle's task, which list_agents returns
		model.Rule{When: "The (asked|allowed) plan", Calls: say("list_agents", map[string]any{"project_key": d.code})},
	)
	claudeKit.prepare(d)
	d.setUp("stdio")
	const manual = "claude --permission-mode manual"
	screen := d.open(manual)
	defer func() {
		if t.Failed() {
			t.Logf("the screen showed:\n%s", screen.Text())
			d.model.Dump(t)
		}
	}()
	d.promptUntilConnected(screen)
	agent := d.awaitIdle()
	d.send(agent, "The asked plan")
	d.awaitTurn("The asked plan")
	d.awaitAsks(agent, true)
	screen.Await("Do you want to proceed?")
	if n := len(d.turnsWith("The other side")); n != 0 {
		t.Errorf("the tool answered %d times without the user", n)
	}
	screen.PressUntil("Enter", "Listed.")
	d.awaitTurn("The other side")
	d.awaitAsks(agent, false)

	d.setUp("stdio", "--allow")
	screen.Submit("/exit", func() bool { return strings.Contains(screen.Text(), "Resume this session") })
	screen = d.open(manual)
	d.promptUntilConnected(screen)
	d.awaitIdle()
	d.wake(agent, "The allowed plan")
	for deadline := time.Now().Add(clientWait); len(d.turnsWith("The other side")) < 2; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the allowed tool was not called")
		}
	}
}

// awaitAsks waits until an agent is reported as waiting at a prompt or, if want is false, as not waiting.
func (d *desk) awaitAsks(agent string, want bool) {
	d.t.Helper()
	for deadline := time.Now().Add(clientWait); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		var is struct{ Asks bool }
		said := d.call("whois", map[string]any{"project_key": d.code, "agent_name": agent})
		if json.Unmarshal([]byte(said), &is) == nil && is.Asks == want {
			return
		}
	}
	d.t.Fatalf("%s: asks is not %v", agent, want)
}

// TestClientWaitEnds checks that nothing wakes a Claude Code session after its waiting hook has reached its timeout. At
// the next prompt, mail that has arrived since then is reported exactly once.
func TestClientWaitEnds(t *testing.T) {
	d := newDesk(t, claudeKit.name)
	claudeKit.prepare(d)
	d.setUp("stdio")
	settings := filepath.Join(d.home, ".claude/settings.json")
	data, err := os.ReadFile(settings)
	if err != nil || strings.Count(string(data), "2000000") != 2 {
		t.Fatalf("%v\n%s", err, data)
	}
	if err := os.WriteFile(settings, []byte(strings.ReplaceAll(string(data), "2000000", "1")), 0o600); err != nil {
		t.Fatal(err)
	}
	screen := d.open(claudeKit.terminal)
	agent := d.awaitIdle()
	d.awaitWaiters(t, 1)
	d.awaitWaiters(t, 0)
	d.send(agent, "The late plan")
	screen.Submit("Begin the work.", func() bool { return len(d.turnsWith("Begin the work.")) > 0 })
	d.awaitTurn("The late plan")
	d.awaitIdle()
	if n := len(d.turnsWith("The late plan")); n != 1 {
		t.Errorf("the mail was announced %d times", n)
		d.model.Dump(t)
	}
}

// awaitWaiters waits until the given number of hooks on this machine are waiting for mail.
func (d *desk) awaitWaiters(t *testing.T, want int) {
	t.Helper()
	for deadline := time.Now().Add(clientWait); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		n := 0
		for _, file := range globbed("/proc/[0-9]*/cmdline") {
			line, _ := os.ReadFile(file)
			env, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "environ"))
			if strings.Contains(string(line), "hook\x00claude\x00--wait") && strings.Contains(string(env), "HOME="+d.home+"\x00") {
				n++
			}
		}
		if n == want {
			return
		}
	}
	t.Fatalf("there are not %d waiting hooks", want)
}

func globbed(pattern string) []string {
	files, _ := filepath.Glob(pattern)
	return files
}
