package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"mailtree/fixtures/inmemory"
	"mailtree/fixtures/storetest"
	"mailtree/fixtures/waits"
)

// TestFaultGit checks that a user can run git in the mail repository under load: commits, branches, stashes, reverts,
// and continuous gc. Nothing that the server reported as done is lost, and the user's commands fail only because of a
// lock.
func TestFaultGit(t *testing.T) {
	t.Parallel()
	d := newDaemon(t, filepath.Join(inmemory.Dir(t), "store"))
	d.start()
	l := newLoad(t, d)
	l.pace = 10 * time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	clients := l.clients(ctx, 3)
	p := &gitPerson{t: t, dir: d.tree(), failed: map[string]int{}}
	p.begin()
	for deadline, round := time.Now().Add(time.Duration(extent(3, 120))*time.Second), 0; time.Now().Before(deadline); round++ {
		p.round(round)
	}
	cancel()
	clients.Wait()
	_, err := d.verb("flush", "project", faultKey)
	if err != nil {
		t.Errorf("flush: %v", err)
	}
	if back := p.movedBack(); back != "" {
		notHere(t, "git reset removed commits that the server made while the reset was starting, see docs/explanation/durability.md: %s", back)
	}
	d.check(l.ledger)
	for _, v := range storetest.CheckHistory(t.Context(), p.dir, p.commits) {
		t.Error(v)
	}
	t.Logf("%d git commands, %d commits by the user; refused: %v; %s", p.commands, len(p.commits), p.failed, l)
}

// gitPerson is a user who works in the mail repository.
type gitPerson struct {
	t        testing.TB
	dir      string
	branch   string
	commands int
	commits  []string
	failed   map[string]int // how often Git refused for an acceptable reason, by command
}

func (p *gitPerson) begin() {
	p.branch = strings.TrimSpace(p.git("symbolic-ref", "--short", "HEAD"))
	until(p.t, "the first commit", 60*time.Second, func() bool { return p.git("rev-parse", "-q", "--verify", "HEAD") != "" })
	p.edit("NOTES.md", "first\n")
	until(p.t, "git add", 60*time.Second, func() bool { return p.git("add", "NOTES.md") != refused })
}

func (p *gitPerson) edit(name, text string) {
	if err := os.WriteFile(filepath.Join(p.dir, name), []byte(text), 0o600); err != nil {
		p.t.Error(err)
	}
}

// round simulates a few minutes of a user's work.
func (p *gitPerson) round(n int) {
	p.edit("NOTES.md", fmt.Sprintf("note %d\n", n))
	p.commit("commit", "-q", "-a", "-m", fmt.Sprintf("note %d", n))
	switch n % 4 {
	case 0:
		p.git("gc", "-q")
	case 1:
		if p.git("checkout", "-q", "-b", fmt.Sprintf("idea-%d", n)) != refused {
			p.edit("IDEA.md", fmt.Sprintf("idea %d\n", n))
			p.back()
		}
	case 2:
		p.stash(fmt.Sprintf("stashed %d\n", n))
	case 3:
		name := fmt.Sprintf("try-%d.md", n)
		p.edit(name, "a mistake\n")
		if p.git("add", name) != refused && p.commit("commit", "-q", "-m", name) {
			p.commit("revert", "--no-edit", p.commits[len(p.commits)-1])
		}
	}
}

// stash stashes an edit and pops the stash. Git pops in two steps, and acquires the lock for each step. If the server
// has the lock at the second step, the edit is restored, but Git keeps the stash. A user who notices the stash drops
// it.
func (p *gitPerson) stash(text string) {
	p.edit("NOTES.md", text)
	if p.git("stash", "-q"); p.git("stash", "list") == "" {
		return // Git refused, or the server had committed the edit
	}
	p.insist(func() bool {
		data, err := os.ReadFile(filepath.Join(p.dir, "NOTES.md"))
		return err == nil && string(data) == text && p.git("stash", "drop", "-q") != refused
	}, "stash", "pop", "-q")
}

// movedBack finds a reset in the reflog that removed commits from the branch. It returns "" if there is none. `git
// stash` and `git revert --abort` may cause such a reset, because they reset to the HEAD that they read before they
// acquired the lock.
func (p *gitPerson) movedBack() string {
	log, err := os.ReadFile(filepath.Join(p.dir, ".git/logs/refs/heads", p.branch))
	if err != nil {
		p.t.Error(err)
	}
	for line := range strings.Lines(string(log)) {
		if entry := strings.Fields(line); strings.Contains(line, "\treset: moving to ") && entry[0] != entry[1] {
			return strings.TrimSpace(line)
		}
	}
	return ""
}

// back checks out the branch that the server commits to.
func (p *gitPerson) back() { p.insist(func() bool { return false }, "checkout", "-q", p.branch) }

// insist repeats a command, about as fast as a user can, until Git accepts it. After each refusal, it calls round and
// stops if round returns true.
func (p *gitPerson) insist(round func() bool, args ...string) {
	until(p.t, "git "+strings.Join(args, " "), 60*time.Second, func() bool {
		if p.git(args...) != refused || round() {
			return true
		}
		waits.Pace(100 * time.Millisecond)
		return false
	})
}

// commit runs git and records the new commit, which must stay in the branch.
func (p *gitPerson) commit(args ...string) bool {
	if p.git(args...) == refused {
		return false
	}
	sum := strings.TrimSpace(p.git("log", "-1", "--author=Person", "--format=%H"))
	if len(p.commits) > 0 && p.commits[len(p.commits)-1] == sum {
		p.t.Errorf("git %s created no commit", strings.Join(args, " "))
		return false
	}
	p.commits = append(p.commits, sum)
	return true
}

const refused = "refused"

// mayRefuse matches the messages that Git may print while a server commits to the same repository. A message may say
// that the user should try again later. It may also say that there is nothing to do, because the server has already
// committed the change. If a merge or a revert reads HEAD before a commit by the server and the index after that
// commit, Git mistakes the difference for local changes.
var mayRefuse = regexp.MustCompile(`(?i)\block|another git process|nothing (added )?to commit|no changes added|No local changes|` +
	`No stash entries|nothing to revert|previous cherry-pick is now empty|unable to write new.index|` +
	`is at [0-9a-f]+ but expected|stash entry is kept|would be overwritten by (merge|revert)`)

// git runs git as the user. It returns the output, or refused if the command fails. For rev-parse, it returns ""
// instead of refused.
func (p *gitPerson) git(args ...string) string {
	p.commands++
	cmd := exec.Command("git", append([]string{"-C", p.dir, "-c", "user.name=Person", "-c", "user.email=person@example.org"}, args...)...)
	out, err := cmd.CombinedOutput()
	if err == nil {
		return string(out)
	}
	if args[0] == "rev-parse" {
		return ""
	}
	p.failed[args[0]+": "+string(mayRefuse.Find(out))]++
	silent := args[0] == "stash" && len(out) == 0 // with -q, git does not even report the lock
	if !silent && !mayRefuse.Match(out) {
		p.t.Errorf("git %s: %v: %s", strings.Join(args, " "), err, out)
	}
	if args[0] == "revert" {
		exec.Command("git", "-C", p.dir, "revert", "--abort").Run()
	}
	return refused
}
