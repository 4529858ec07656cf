package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mailtree/fixtures/bulk"
	"mailtree/maildir/format"
)

// BenchmarkGuard runs `mailtree guard check` as a separate process: 100 staged files against 1,000 live claims of other
// agents, none of which covers any of the files. After each check, it measures two lower bounds: the same program when
// it does nothing (start), and Git's part (git). cpu is the processor time of the check, including Git's. On a shared
// machine, use cpu and the minimum.
func BenchmarkGuard(b *testing.B) {
	exe, home := benchProgram(b), bulk.Dir(b)
	store, code := filepath.Join(home, "store"), filepath.Join(home, "code")
	repo := filepath.Join(store, "projects", "code", "repo")
	benchClaims(b, repo, 1000)
	benchChanges(b, code, 100)
	run := func(name string, args ...string) (took, cpu time.Duration) {
		c := exec.Command(name, args...)
		c.Dir, c.Env = code, benchEnv(home, "AGENT_NAME=BlueLake")
		var out bytes.Buffer
		c.Stdout, c.Stderr = &out, &out
		began := time.Now()
		if err := c.Run(); err != nil {
			b.Fatalf("%s: %v\n%s", name, err, out.String())
		}
		return time.Since(began), c.ProcessState.UserTime() + c.ProcessState.SystemTime()
	}
	var check, busy, start, git bulk.Times
	for b.Loop() {
		took, cpu := run(exe, "guard", "check", "--hook", "pre-commit", "--store", store, "--project", "code")
		check, busy = append(check, took), append(busy, cpu)
		took, _ = run(exe, "version")
		start = append(start, took)
		took, _ = run("git", "diff-index", "--cached", "-z", "--name-only", "--no-renames", "HEAD")
		git = append(git, took)
	}
	b.ReportMetric(0, "ns/op") // ns/op covers all three together, so it is meaningless
	for name, t := range map[string]bulk.Times{"": check, "cpu-": busy, "start-": start, "git-": git} {
		b.ReportMetric(float64(t.At(0.5).Microseconds())/1000, name+"p50-ms")
	}
	b.ReportMetric(float64(check.At(0).Microseconds())/1000, "least-ms")
	b.ReportMetric(float64(check.At(0.9).Microseconds())/1000, "p90-ms")
}

// BenchmarkGuardEdit runs `mailtree hook` as a separate process before an edit. It edits a file that none of 1,000 live
// claims covers (free), and a file that a claim covers (held). start and cpu are as in BenchmarkGuard.
func BenchmarkGuardEdit(b *testing.B) {
	exe, home := benchProgram(b), bulk.Dir(b)
	code := filepath.Join(home, "code")
	repo := filepath.Join(home, ".mailtree", "projects", "code", "repo")
	benchClaims(b, repo, 1000)
	benchChanges(b, code, 1)
	if err := os.WriteFile(filepath.Join(repo, "project.json"), format.FormatProject(code, "code", time.Now()), 0o600); err != nil {
		b.Fatal(err)
	}
	run := func(stdin string, args ...string) (took, cpu time.Duration, said string) {
		c := exec.Command(exe, args...)
		c.Dir, c.Env, c.Stdin = code, benchEnv(home, "AGENT_NAME=BlueLake"), strings.NewReader(stdin)
		var out bytes.Buffer
		c.Stdout, c.Stderr = &out, &out
		began := time.Now()
		if err := c.Run(); err != nil {
			b.Fatalf("%v\n%s", err, out.String())
		}
		return time.Since(began), c.ProcessState.UserTime() + c.ProcessState.SystemTime(), out.String()
	}
	edit := func(file string) string {
		return fmt.Sprintf(`{"session_id": "s", "cwd": %q, "hook_event_name": "PreToolUse", "tool_name": "Edit", "tool_input": {"file_path": %q}}`,
			code, filepath.Join(code, file))
	}
	all := map[string]bulk.Times{}
	for b.Loop() {
		for name, file := range map[string]string{"free-": "web/a.go", "held-": "services/svc000/pkg0/file.go"} {
			took, cpu, said := run(edit(file), "hook", "claude")
			if strings.Contains(said, `"deny"`) != (name == "held-") {
				b.Fatalf("%s: %s", file, said)
			}
			all[name], all["cpu-"+name] = append(all[name], took), append(all["cpu-"+name], cpu)
		}
		took, _, _ := run("", "version")
		all["start-"] = append(all["start-"], took)
	}
	b.ReportMetric(0, "ns/op") // ns/op covers all three together, so it is meaningless
	for name, t := range all {
		b.ReportMetric(float64(t.At(0.5).Microseconds())/1000, name+"p50-ms")
	}
	b.ReportMetric(float64(all["free-"].At(0.9).Microseconds())/1000, "free-p90-ms")
}

// benchClaims writes a project with the given number of claims, as the server does.
func benchClaims(b *testing.B, repo string, n int) {
	b.Helper()
	must := func(err error) {
		if err != nil {
			b.Fatal(err)
		}
	}
	must(os.MkdirAll(filepath.Join(repo, ".mailtree", "tmp"), 0o700))
	must(os.MkdirAll(filepath.Join(repo, "claims"), 0o700))
	for i := range n {
		pattern := fmt.Sprintf("services/svc%03d/pkg%d/*.go", i%100, i)
		if i%2 == 0 {
			pattern = fmt.Sprintf("services/svc%03d/pkg%d/file.go", i%100, i)
		}
		text := fmt.Sprintf("{\n  \"path\": %q,\n  \"agent\": \"GreenCastle\",\n  \"exclusive\": true,\n  \"reason\": \"change %d\",\n  \"created\": \"2026-01-01T00:00:00.000000Z\",\n  \"expires\": \"2096-01-01T00:00:00.000000Z\"\n}\n", pattern, i)
		must(os.WriteFile(filepath.Join(repo, "claims", fmt.Sprintf("%040x-GreenCastle.json", i)), []byte(text), 0o600))
	}
}

// benchChanges creates a code repository with the given number of changed, staged files.
func benchChanges(b *testing.B, code string, n int) {
	b.Helper()
	script := `git init -q . && git config user.name Bench && git config user.email bench@mailtree.local &&
for i in $(seq ` + fmt.Sprint(n) + `); do mkdir -p web/d$((i % 9)); echo 1 >web/d$((i % 9))/f$i; done && git add . && git commit -qm base &&
for i in $(seq ` + fmt.Sprint(n) + `); do echo 2 >web/d$((i % 9))/f$i; done && git add .`
	if err := os.MkdirAll(code, 0o755); err != nil {
		b.Fatal(err)
	}
	c := exec.Command("sh", "-c", script)
	c.Dir, c.Env = code, benchEnv(code)
	if out, err := c.CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
}
