package main

import (
	"bytes"
	"encoding/json"
	"maps"
	"os/exec"
	"slices"
	"testing"
	"time"

	"mailtree/fixtures/bulk"
)

// BenchmarkCommands runs every user command that exits on its own, each in its own process, while a server is running.
// The store's mail is committed. With -large, the store has 100,000 messages. Each command should take at most 60 ms
// (p50). In "start", the same program does nothing. Commands that write run one after another, so that the store grows
// by two messages in each round. rm-sent deletes the message that was just sent. undo and undo-rm undo the preceding
// action, and wait for its commit. undo-later undoes an action that is already committed.
func BenchmarkCommands(b *testing.B) {
	mail := bulk.Mail{
		Name:     "commands",
		Messages: 1_000,
		Linked:   true,
		Git:      true,
	}
	if bulk.Large() {
		mail.Messages = 100_000
	}
	exe, home, store := benchProgram(b), bulk.Dir(b), mail.Store(b)
	env := benchEnv(home, "MCP_MAIL_STORE="+store, "MAILTREE_ME=Ada")
	all := map[string]bulk.Times{}
	run := func(name string, args ...string) (stdout []byte) {
		c := exec.Command(exe, args...)
		c.Env, c.Dir = env, home
		began := time.Now()
		stdout, err := c.Output()
		if err != nil {
			b.Fatalf("%v: %v\n%s%s", args, err, stdout, err.(*exec.ExitError).Stderr)
		}
		all[name] = append(all[name], time.Since(began))
		return stdout
	}
	here := func(command string, args ...string) []byte {
		return run(command, append([]string{command, "-p", "bench"}, args...)...)
	}
	defer benchServe(b, exe, env)()
	here("me")
	old, _ := mail.Message(mail.Messages / 2)
	for b.Loop() {
		run("start", "version")
		run("completion", "__complete", "read", "-p", "bench", "")
		run("status", "status", "--json")
		for _, c := range []string{"me", "inbox", "agents", "claims", "catchup", "decisions", "problems"} {
			here(c)
		}
		run("projects", "projects")
		run("inbox-full", "inbox", "-p", "bench", old.To[0], "-n", "200")
		here("read", old.ID)
		here("thread", old.ThreadID)
		here("whois", old.From)
		here("search", "parser", "word123", "-n", "20")
		run("search-phrase", "search", "-p", "bench", `"last token"`)
		here("log", "-n", "20")
		var sent struct {
			ID string `json:"id"`
		}
		if err := json.Unmarshal(here("send", "Ada", "-s", "To be undone", "-m", "text", "--ack", "--json"), &sent); err != nil {
			b.Fatal(err)
		}
		here("reply", sent.ID, "-m", "text")
		here("ack", sent.ID)
		here("archive", sent.ID)
		here("undo", sent.ID)
		here("edit", sent.ID, "--print")
		run("log-message", "log", "-p", "bench", "-n", "20", sent.ID)
		run("rm-sent", "rm", "-p", "bench", sent.ID)
		here("rm", old.ID)
		run("undo-rm", "undo", "-p", "bench")
		here("send", "Ada", "-s", "To be undone later", "-m", "text")
		for bytes.Contains(run("log-last", "log", "-p", "bench", "-n", "1", "--json"), []byte(`"commit":""`)) {
		}
		run("undo-later", "undo", "-p", "bench")
		here("claim", "docs/**")
		here("release", "--all")
		run("new", "new", "draft", "-p", "bench", "Ada")
	}
	b.ReportMetric(0, "ns/op") // ns/op covers all commands together, so it is meaningless
	for _, name := range slices.Sorted(maps.Keys(all)) {
		b.ReportMetric(float64(all[name].At(0.5).Microseconds())/1000, name+"-p50-ms")
	}
}
