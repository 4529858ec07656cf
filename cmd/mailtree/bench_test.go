package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"mailtree/fixtures/bulk"
	"mailtree/fixtures/waits"
)

// This file contains benchmarks of the real program: a rebuild of the whole index, compared with Debian's mail
// indexers, and the memory that a server uses. The script `.ci/bench DIR` runs every benchmark in
// docs/explanation/speed.md, one after another. Many benchmarks also measure a lower bound, such as the time that the
// program takes to do nothing. -large adds the cases with 100,000 and 1,000,000 messages. -scratch DIR keeps the stores
// for the next run (see fixtures/bulk). The stores need 20 GB, and it takes half an hour to create them. If other
// programs are using the processor, only the ratios are valid.

// benchProgram returns the program to measure. It is MAILTREE_PROGRAM, which .ci/bench sets to an older version, or this
// version, built the way a release is built. The test binary would be larger.
func benchProgram(b *testing.B) string {
	b.Helper()
	if exe := os.Getenv("MAILTREE_PROGRAM"); exe != "" {
		return exe
	}
	exe := filepath.Join(bulk.Dir(b), "mailtree")
	build := exec.Command("go", "build", "-o", exe, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	return exe
}

// benchEnv returns an environment that does not depend on the user who runs the benchmark.
func benchEnv(home string, more ...string) []string {
	env := []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null"}
	return append(env, more...)
}

// BenchmarkRebuild runs `mailtree index rebuild` as a separate process. If notmuch and mu are installed (Debian:
// notmuch, maildir-utils), they index the same messages from a Maildir. In a Maildir, a message is one file, while the
// rebuild reads three files per message. "x-notmuch" and "x-mu" are the times of these programs divided by the time of
// the rebuild. rss-MB is the maximum memory of each program.
func BenchmarkRebuild(b *testing.B) {
	n := 1_000
	if bulk.Large() {
		n = 100_000
	}
	exe, mail := benchProgram(b), bulk.Mail{Messages: n}
	store, home := mail.Store(b), bulk.Dir(b)
	ours := timeCommand(b, b.N, exec.Command(exe, "index", "rebuild", "--store", store), benchEnv(home), "")
	b.ReportMetric(ours.took.Seconds(), "s")
	b.ReportMetric(float64(ours.rss)/(1<<20), "rss-MB")
	for _, other := range []struct {
		name string
		run  func(b *testing.B, mail, dir string) spent
	}{{"notmuch", notmuchNew}, {"mu", muIndex}} {
		if _, err := exec.LookPath(other.name); err != nil {
			b.Logf("%s: not installed", other.name)
			continue
		}
		u := other.run(b, mail.RFC5322(b), bulk.Dir(b))
		b.ReportMetric(u.took.Seconds(), other.name+"-s")
		b.ReportMetric(float64(u.rss)/(1<<20), other.name+"-rss-MB")
		b.ReportMetric(u.took.Seconds()/ours.took.Seconds(), "x-"+other.name)
	}
}

// spent is the time and the memory that a command used.
type spent struct {
	took time.Duration
	rss  int64 // maximum, in bytes
}

// timeCommand runs a command the given number of times and returns the mean time and the maximum memory.
func timeCommand(b *testing.B, times int, like *exec.Cmd, env []string, dir string) (u spent) {
	b.Helper()
	for range times {
		c := exec.Command(like.Path, like.Args[1:]...)
		c.Env, c.Dir = env, dir
		began := time.Now()
		if out, err := c.CombinedOutput(); err != nil {
			b.Fatalf("%v: %v\n%s", like.Args, err, out)
		}
		u.took += time.Since(began)
		u.rss = max(u.rss, c.ProcessState.SysUsage().(*syscall.Rusage).Maxrss<<10)
	}
	u.took /= time.Duration(times)
	return u
}

// notmuchNew indexes a Maildir into a new notmuch database.
func notmuchNew(b *testing.B, mail, dir string) spent {
	config := filepath.Join(dir, "config")
	text := fmt.Sprintf("[database]\npath=%s\nmail_root=%s\n[user]\nname=bench\nprimary_email=bench@mailtree.local\n[new]\ntags=new\n",
		dir, mail)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		b.Fatal(err)
	}
	return timeCommand(b, 1, exec.Command("notmuch", "new", "--quiet"), benchEnv(dir, "NOTMUCH_CONFIG="+config), dir)
}

// muIndex indexes a Maildir into a new mu database.
func muIndex(b *testing.B, mail, dir string) spent {
	home := "--muhome=" + filepath.Join(dir, "mu")
	timeCommand(b, 1, exec.Command("mu", "init", home, "--maildir="+mail), benchEnv(dir), dir)
	return timeCommand(b, 1, exec.Command("mu", "index", home, "--quiet"), benchEnv(dir), dir)
}

// BenchmarkMemory measures the resident memory of a server that has started on an indexed store. It measures the memory
// after the start, the maximum after each thousand requests of one kind, and the memory at rest afterwards. It sends
// 1,000*b.N requests of each kind. In "committed", all mail is in a Git repository. In "new", there is no repository,
// so the result is the memory of the index and the watcher (run it alone: -bench Memory/new).
func BenchmarkMemory(b *testing.B) {
	exe := benchProgram(b)
	sizes := []bulk.Mail{{Messages: 1_000, Linked: true}}
	if bulk.Large() {
		sizes = []bulk.Mail{{Messages: 1_000_000, Linked: true}}
	}
	for _, m := range sizes {
		b.Run(fmt.Sprintf("%d/new", m.Messages), func(b *testing.B) {
			store := m.Store(b)
			defer setAside(b, filepath.Join(bulk.Repo(store), ".git"))()
			measureServer(b, exe, store, "COMMIT_EXTERNAL=off")
		})
		b.Run(fmt.Sprintf("%d/committed", m.Messages), func(b *testing.B) {
			m.Git = true
			measureServer(b, exe, m.Store(b))
		})
	}
}

// setAside moves a repository away. The returned function moves it back, after moving away any repository that was
// created in its place.
func setAside(b *testing.B, git string) (back func()) {
	kept := filepath.Join(bulk.Dir(b), "git")
	there := os.Rename(git, kept) == nil
	return func() {
		err := os.Rename(git, filepath.Join(bulk.Dir(b), "git"))
		if there {
			err = errors.Join(err, os.Rename(kept, git))
		}
		if err != nil {
			b.Error(err)
		}
	}
}

// measureServer runs the program on a store, and measures its memory under load and at rest.
func measureServer(b *testing.B, exe, store string, env ...string) {
	timeCommand(b, 1, exec.Command(exe, "index", "rebuild", "--store", store), benchEnv(store), "")
	server := startServer(b, exe, store, env...)
	defer server.end(b, os.Interrupt)
	rss, peak := resident(b, server.pid, "VmRSS"), resident(b, server.pid, "VmHWM")
	requests := benchRequests(b, server.addr)
	var clients []*bulk.Client
	for range 8 {
		clients = append(clients, bulk.Dial(b, server.addr))
	}
	highest, calls, rest := 0.0, 1000, 5*time.Second // rest is long enough for the server to commit everything
	if testing.Short() {
		calls, rest = 20, 0
	}
	b.ResetTimer()
	for range b.N {
		for _, of := range requests {
			bulk.Load(b, clients, calls, of)
			highest = max(highest, resident(b, server.pid, "VmRSS"))
		}
	}
	b.StopTimer()
	waits.Pace(rest)
	b.ReportMetric(server.took.Seconds(), "start-s")
	b.ReportMetric(rss, "start-MB")
	b.ReportMetric(peak, "start-peak-MB")
	b.ReportMetric(highest, "load-MB")
	b.ReportMetric(resident(b, server.pid, "VmRSS"), "rest-MB")
}

// benchRequests returns a hundred requests of each kind.
func benchRequests(b *testing.B, addr string) (all [4][][]byte) {
	for i := range 2 {
		register := fmt.Sprintf(`{"project_key":%q,"program":"x","model":"y","task_description":"z","name_hint":"Agent%02d"}`, bulk.HumanKey, i)
		if _, err := bulk.Dial(b, addr).Do(bulk.Call(addr, "create_agent", register)); err != nil {
			b.Fatal(err)
		}
	}
	text := strings.Repeat("The plan for the users table and its migration. ", 20)
	for i := range 100 {
		for kind, call := range [4][2]string{
			{"send_message", fmt.Sprintf(`{"project_key":%q,"from_agent":"Agent00","to":["Agent01"],"subject":"Message %d","body_md":"%s"}`,
				bulk.HumanKey, i, text)},
			{"check_my_messages", fmt.Sprintf(`{"project_key":%q,"agent_name":"Agent%02d"}`, bulk.HumanKey, i%16)},
			{"search_messages", fmt.Sprintf(`{"project_key":%q,"query":"parser word%d"}`, bulk.HumanKey, i*49)},
			{"summarize_thread", fmt.Sprintf(`{"project_key":%q,"thread_id":"T-%d"}`, bulk.HumanKey, i)},
		} {
			all[kind] = append(all[kind], bulk.Call(addr, call[0], call[1]))
		}
	}
	return all
}

// resident returns a value from /proc/PID/status, in megabytes.
func resident(b *testing.B, pid int, line string) float64 {
	b.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		b.Skip("no /proc: ", err)
	}
	_, rest, _ := strings.Cut(string(data), "\n"+line+":")
	kb, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(strings.SplitN(rest, "\n", 2)[0], "kB")), 64)
	if err != nil {
		b.Fatal(line, err)
	}
	return kb / 1024
}
