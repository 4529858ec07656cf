package main

import (
	"path/filepath"
	"testing"
	"time"

	"mailtree/fixtures/model"
)

// TestClientKilled checks what happens if the server is killed while the model is making calls over stdio. If the
// server was working on a call that writes, the bridge does not repeat the call, and reports that the outcome is
// unknown. If no server is running when the model makes a call, the bridge starts a server, which handles the call.
func TestClientKilled(t *testing.T) {
	each(t, func(t *testing.T, k kit) {
		d := newDesk(t, k.name)
		d.call("create_agent", map[string]any{
			"project_key":      d.code,
			"name_hint":        "BlueLake",
			"program":          k.name,
			"model":            "none",
			"task_description": "Asks and waits",
		})
		d.model.Script(t,
			model.Rule{When: "Begin the work", Times: 1, Calls: say("send_message", map[string]any{
				"project_key":        d.code,
				"from_agent":         "BlueLake",
				"to":                 []string{"GreenCastle"},
				"subject":            "Which port?",
				"body_md":            "I wait for the answer.",
				"wait_reply_seconds": 50,
			})},
			model.Rule{When: unknownOutcome, Times: 1, Calls: say(k.shell, k.shellInput(waitInTurn))},
			model.Rule{When: "go-on", Times: 1, Calls: say("list_agents", map[string]any{"project_key": d.code})},
		)
		k.prepare(d)
		d.setUp("stdio")
		done := d.ask(k, "Begin the work.")
		arrived := func() int {
			copies, _ := filepath.Glob(filepath.Join(d.home, ".mailtree/projects/*/repo/agents/GreenCastle/inbox/*/*/*/*.md"))
			return len(copies)
		}
		for deadline := time.Now().Add(clientWait); arrived() == 0; time.Sleep(5 * time.Millisecond) {
			if time.Now().After(deadline) {
				d.model.Dump(t)
				t.Fatal("the model's message did not arrive")
			}
		}
		d.restart() // the bridge connects to this server, or this server replaces the bridge's server
		d.awaitFile("started")
		d.server.Process.Kill()
		d.server.Wait()
		died := time.Now()
		d.write("code/told", "")
		answered := d.awaitTurn("The other side") // part of GreenCastle's task, which list_agents returns
		t.Logf("%s: %.1f s from the server's death to the turn with the answer", k.name, answered.At.Sub(died).Seconds())
		said := <-done
		d.serve(d.port()) // this server replaces the one that the bridge started, and runs until the test ends
		if n := len(d.turnsWith(unknownOutcome)); n != 1 {
			t.Errorf("the model was told in %d turns that the outcome is unknown, want one", n)
		}
		if n := arrived(); n != 1 {
			t.Errorf("the message arrived %d times, want once", n)
		}
		if t.Failed() {
			t.Logf("the client said:\n%s", said)
			d.model.Dump(t)
		}
	})
}

// unknownOutcome is part of the bridge's response to a call that may or may not have taken effect.
const unknownOutcome = "the outcome is unknown. Check before you call again"
