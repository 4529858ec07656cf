package main

import (
	"bufio"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"mailtree/fixtures/bulk"
)

// BenchmarkHook runs `mailtree hook claude` as a separate process when there is nothing to report, in a store of 10,000
// messages. The cases are a server without new mail, a folder without a project (elsewhere), and no server (alone). For
// comparison, it runs the same program when it does nothing (start). cpu is as in BenchmarkGuard.
func BenchmarkHook(b *testing.B) {
	n := 10_000
	if testing.Short() {
		n = 1_000
	}
	exe, home, store := benchProgram(b), bulk.Dir(b), bulk.Mail{Messages: n}.Store(b)
	run := func(event, dir string, args ...string) (took, cpu time.Duration, said string) {
		c := exec.Command(exe, args...)
		c.Env = benchEnv(home, "AGENT_NAME=BlueLake", "MCP_MAIL_STORE="+store)
		c.Stdin = strings.NewReader(fmt.Sprintf(`{"session_id": "s", "cwd": %q, "hook_event_name": %q}`, dir, event))
		began := time.Now()
		out, err := c.Output()
		if err != nil {
			b.Fatal(err)
		}
		return time.Since(began), c.ProcessState.UserTime() + c.ProcessState.SystemTime(), string(out)
	}
	end := benchServe(b, exe, benchEnv(home, "MCP_MAIL_STORE="+store))
	if _, _, said := run("SessionStart", bulk.HumanKey, "hook", "claude"); !strings.Contains(said, "You are BlueLake") {
		b.Fatalf("%q", said)
	}
	all := map[string]bulk.Times{}
	measure := func(name, dir string, args ...string) {
		took, cpu, said := run("PostToolBatch", dir, args...)
		if said != "" && name != "start-" {
			b.Fatalf("%s%q", name, said)
		}
		all[name], all[name+"cpu-"] = append(all[name], took), append(all[name+"cpu-"], cpu)
	}
	for b.Loop() {
		measure("", bulk.HumanKey, "hook", "claude")
		measure("elsewhere-", home, "hook", "claude")
		measure("start-", home, "version")
	}
	end()
	for range b.N {
		measure("alone-", bulk.HumanKey, "hook", "claude")
	}
	b.ReportMetric(0, "ns/op") // ns/op covers all cases together, so it is meaningless
	for name, t := range all {
		b.ReportMetric(float64(t.At(0.5).Microseconds())/1000, name+"p50-ms")
	}
	b.ReportMetric(float64(all[""].At(0.9).Microseconds())/1000, "p90-ms")
}

// benchServe starts a server, which runs until end is called. It returns when the server answers.
func benchServe(b *testing.B, exe string, env []string) (end func()) {
	b.Helper()
	c := exec.Command(exe, "serve", "--port", "0")
	c.Env = env
	out, err := c.StdoutPipe()
	if err != nil || c.Start() != nil {
		b.Fatal("the server does not start")
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		b.Fatal(err)
	}
	return func() {
		_ = c.Process.Signal(syscall.SIGTERM)
		_ = c.Wait()
	}
}
