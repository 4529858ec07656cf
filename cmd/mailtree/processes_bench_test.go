package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"mailtree/fixtures/bulk"
)

// BenchmarkProcesses measures the commands that agents and people run most, each as a separate process, in a store of
// 100 messages while a server is running. It compares them with Git's own commands in the same repository of code, and
// with AMQ's command for sending if AMQ (`amq`) is installed. "sends-8/s" is the rate of eight processes at a time. The
// resident memory is that of a bridge and of a hook that waits for mail.
func BenchmarkProcesses(b *testing.B) {
	exe, home := benchProgram(b), bulk.Dir(b)
	store, code := bulk.Mail{Messages: 100}.Store(b), filepath.Join(home, "code")
	benchChanges(b, code, 1)
	env := benchEnv(home, "MCP_MAIL_STORE="+store, "MAILTREE_ME=Ada", "AGENT_NAME=BlueLake", "CLAUDE_CODE_ENTRYPOINT=cli")
	defer benchServe(b, exe, env)()
	run := func(stdin, name string, args ...string) time.Duration {
		c := exec.Command(name, args...)
		c.Env, c.Dir, c.Stdin = env, code, strings.NewReader(stdin)
		began := time.Now()
		if out, err := c.CombinedOutput(); err != nil {
			b.Fatalf("%s %v: %v\n%s", name, args, err, out)
		}
		return time.Since(began)
	}
	event := func(name string) string {
		return fmt.Sprintf(`{"session_id": "s", "cwd": %q, "hook_event_name": %q}`, bulk.HumanKey, name)
	}
	send := func() {
		run("", exe, "send", "-p", "bench", "Ada", "-s", "Report", "-m", "The parser works.")
	}
	run(event("SessionStart"), exe, "hook", "claude")
	send()

	type row struct {
		name  string
		stdin string
		line  []string
	}
	rows := []row{
		{"version", "", []string{exe, "--version"}},
		{"git-version", "", []string{"git", "--version"}},
		{"waits", "", []string{exe, "-p", "bench"}},
		{"git-status", "", []string{"git", "status"}},
		{"send", "", []string{exe, "send", "-p", "bench", "Ada", "-s", "Report", "-m", "The parser works."}},
		{"hook", event("PostToolBatch"), []string{exe, "hook", "claude"}},
		{"guard", "", []string{exe, "guard", "check", "--hook", "pre-commit", "--store", store, "--project", "bench"}},
	}
	if amq := amqSend(b, home, env); amq != nil {
		rows = append(rows, row{"amq-send", "", amq})
	}
	all := map[string]bulk.Times{}
	for b.Loop() {
		for _, r := range rows {
			all[r.name] = append(all[r.name], run(r.stdin, r.line[0], r.line[1:]...))
		}
	}
	b.ReportMetric(0, "ns/op") // ns/op covers all rows together, so it is meaningless
	for name, times := range all {
		b.ReportMetric(float64(times.At(0.5).Microseconds())/1000, name+"-p50-ms")
	}
	for _, processes := range []int{1, 8} {
		began := time.Now()
		var each sync.WaitGroup
		for range processes {
			each.Go(func() {
				for range max(1, 4*b.N/processes) {
					send()
				}
			})
		}
		each.Wait()
		b.ReportMetric(float64(processes*max(1, 4*b.N/processes))/time.Since(began).Seconds(), fmt.Sprintf("sends-%d/s", processes))
	}
	b.ReportMetric(waitingMemory(b, env, nil, exe, "stdio", "--no-start", "--store", store, "--project", bulk.HumanKey), "stdio-MB")
	run(event("Stop"), exe, "hook", "claude")
	b.ReportMetric(waitingMemory(b, env, strings.NewReader(event("Stop")), exe, "hook", "claude", "--wait"), "hook-wait-MB")
}

// amqSend returns a command that sends a message with AMQ, or nil if AMQ is not installed.
func amqSend(b *testing.B, home string, env []string) []string {
	amq, err := exec.LookPath("amq")
	if err != nil {
		b.Log("amq: not installed")
		return nil
	}
	root := filepath.Join(home, "amq")
	c := exec.Command(amq, "init", "--root", root, "--agents", "ada,bob")
	c.Env, c.Dir = env, home
	if out, err := c.CombinedOutput(); err != nil {
		b.Fatalf("%v: %v\n%s", c.Args, err, out)
	}
	return []string{amq, "send", "--root", root, "--me", "ada", "--to", "bob", "--subject", "Report", "--body", "The parser works."}
}

// waitingMemory starts a command that waits, and returns its resident memory in MB after it has stopped growing. If stdin
// is nil, the command's standard input stays open.
func waitingMemory(b *testing.B, env []string, stdin io.Reader, name string, args ...string) float64 {
	c := exec.Command(name, args...)
	c.Env, c.Dir, c.Stdin = env, bulk.Dir(b), stdin
	if stdin == nil {
		in, err := c.StdinPipe()
		if err != nil {
			b.Fatal(err)
		}
		defer in.Close()
	}
	if err := c.Start(); err != nil {
		b.Fatal(err)
	}
	defer func() {
		_ = c.Process.Signal(os.Interrupt)
		_ = c.Wait()
	}()
	is := resident(b, c.Process.Pid, "VmRSS")
	for same := 0; same < 20; time.Sleep(50 * time.Millisecond) {
		now := resident(b, c.Process.Pid, "VmRSS")
		if same++; now != is {
			is, same = now, 0
		}
	}
	return is
}
