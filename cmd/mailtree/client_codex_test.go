package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"mailtree/fixtures/model"
	"mailtree/fixtures/tmuxtest"
)

// codexKit is the kit for Codex. Codex reads the model's address from its configuration. The configuration also says
// that the folder is trusted and that the user has seen the offer of a newer model. Without a terminal, there is no
// dialog in which the user could trust hooks, so the tests use the option that Codex offers for automation. A session
// in a terminal runs in a background server, which outlives the session.
var codexKit = kit{
	name: "codex",
	prepare: func(d *desk) {
		d.write(".codex/config.toml", fmt.Sprintf(codexConfig, d.modelURL+"/openai/v1", d.code))
		d.t.Cleanup(func() { stopCodex(filepath.Join(d.home, ".codex/app-server-daemon")) })
	},
	ask:      []string{"codex", "exec", "-s", "danger-full-access", "--dangerously-bypass-hook-trust"},
	resume:   []string{"codex", "exec", "-s", "danger-full-access", "--dangerously-bypass-hook-trust", "resume", "--last"},
	terminal: "codex -s danger-full-access",
	greet: func(screen *tmuxtest.Screen) {
		screen.Await("Trust all and continue") // keys pressed before this dialog would be entered as a prompt
		screen.PressUntil("2", "› 2. Trust all and continue")
		screen.PressUntil("Enter", "Ask Codex to do anything")
	},
	shell: "exec_command",
	write: "apply_patch",
	shellInput: func(command string) map[string]any {
		return map[string]any{"cmd": command, "yield_time_ms": 30_000}
	},
	writeInput: func(path, content string) any {
		return fmt.Sprintf("*** Begin Patch\n*** Add File: %s\n+%s\n*** End Patch\n", path, content)
	},
}

const codexConfig = `
model = "gpt-5.5"
model_provider = "mock"
check_for_update_on_startup = false

[model_providers.mock]
name = "Mock"
base_url = %q
wire_api = "responses"

[projects.%q]
trust_level = "trusted"

[notice.model_migrations]
"gpt-5.5" = "gpt-6-sol"
`

// stopCodex kills the servers whose process ids are in the folder dir.
func stopCodex(dir string) {
	for _, name := range []string{"daemon-updater.pid", "daemon.pid"} {
		data, _ := os.ReadFile(filepath.Join(dir, name))
		var server struct{ PID int }
		if json.Unmarshal(data, &server) == nil && server.PID > 0 {
			syscall.Kill(server.PID, syscall.SIGKILL)
		}
	}
}

// TestClientTrust checks that Codex does not run hooks that the user has not trusted yet. `mailtree setup --check`
// reports that no hook has run until the user has trusted the hooks in Codex and one of them has run.
func TestClientTrust(t *testing.T) {
	d := newDesk(t, "codex")
	codexKit.prepare(d)
	d.setUp("http")
	if out, err := d.try("mailtree", "setup", "codex", "--check"); err != nil || !strings.Contains(out, "no Codex hook has run since setup") {
		t.Errorf("before: %v\n%s", err, out)
	}
	screen := d.open(codexKit.terminal)
	codexKit.greet(screen)
	screen.Submit("Begin the work.", func() bool { return len(d.turnsWith("Begin the work.")) > 0 })
	d.awaitIdle()
	if out, err := d.try("mailtree", "setup", "codex", "--check"); err != nil || !strings.Contains(out, "a hook last ran") {
		t.Errorf("after: %v\n%s", err, out)
	}
}

// codexKitUnattended is the kit for Codex in a sandbox. With danger-full-access, Codex would never ask for permission.
var codexKitUnattended = kit{ask: []string{"codex", "exec", "-s", "workspace-write", "--dangerously-bypass-hook-trust"}}

// TestClientUnattended checks that Codex can work without a user. Without a user, Codex refuses each tool call that
// needs the user's permission, but can still claim a file, write to another agent and release the claim.
func TestClientUnattended(t *testing.T) {
	d := newDesk(t, "codex")
	d.call("create_agent", map[string]any{"project_key": d.code, "name_hint": "BlueLake", "program": "codex", "model": "none", "task_description": "Alone"})
	in := func(more map[string]any) map[string]any {
		more["project_key"] = d.code
		return more
	}
	d.model.Script(t,
		model.Rule{When: "Begin the work", Calls: say("claim_paths", in(map[string]any{"agent_name": "BlueLake", "paths": []string{"app/*.py"}}))},
		model.Rule{When: `granted`, Calls: say("send_message", in(map[string]any{
			"from_agent": "BlueLake", "to": []string{"GreenCastle"}, "subject": "The unattended plan", "body_md": "It is done.",
		}))},
		model.Rule{When: `"id":"msg_`, Calls: say("release_claims", in(map[string]any{"agent_name": "BlueLake"}))},
	)
	codexKit.prepare(d)
	d.setUp("stdio")
	said := <-d.ask(codexKitUnattended, "Begin the work.")
	if len(d.turnsWith("released")) == 0 {
		t.Errorf("the claim was not released:\n%s", said)
		d.model.Dump(t)
	}
	if mail := d.call("check_my_messages", in(map[string]any{"agent_name": "GreenCastle"})); !strings.Contains(mail, "The unattended plan") {
		t.Errorf("the message did not arrive: %s", mail)
	}
	var is struct{ Claims []any }
	if err := json.Unmarshal([]byte(d.call("whois", in(map[string]any{"agent_name": "BlueLake"}))), &is); err != nil || len(is.Claims) > 0 {
		t.Errorf("the claims %v are still there, %v", is.Claims, err)
	}
}

// TestClientAllow checks that Codex without a user refuses a destructive tool. With `mailtree setup codex --allow`, it
// calls every tool.
func TestClientAllow(t *testing.T) {
	d := newDesk(t, "codex")
	codexKit.prepare(d)
	for _, flags := range [][]string{{}, {"--allow"}} {
		d.model.Script(t,
			model.Rule{When: "Begin the work", Calls: say("mailbox_create", map[string]any{"name": "task-42"})},
			model.Rule{When: "task-42@", Calls: say("mailbox_delete", map[string]any{"name": "task-42"})},
		)
		d.run("mailtree", append([]string{"setup", "codex", "--toolset", "aimx"}, flags...)...)
		said := <-d.ask(codexKitUnattended, "Begin the work.")
		refused, deleted := len(d.turnsWith("but approval policy is never")), len(d.turnsWith("Mailbox 'task-42' deleted."))
		if refused != 1 || deleted != len(flags) {
			t.Errorf("with %q, the call was refused %d times and carried out %d times:\n%s", flags, refused, deleted, said)
			d.model.Dump(t)
		}
	}
}
