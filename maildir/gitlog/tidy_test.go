package gitlog

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// count returns the numbers that git count-objects -v reports.
func (t *repoTree) count() (loose, packs int) {
	t.Helper()
	for line := range strings.Lines(t.git("count-objects", "-v")) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		n, _ := strconv.Atoi(value)
		switch key {
		case "count":
			loose = n
		case "packs":
			packs = n
		}
	}
	return loose, packs
}

// litter creates a few commits and some unreachable objects, and packs some of both. It returns the unreachable
// objects.
func (t *repoTree) litter() (unreachable []string) {
	t.Helper()
	for i := range 4 {
		for k := range 1 + i%2*30 {
			p := fmt.Sprintf("messages/%d/%d", i, k)
			t.send(p, p)
		}
		t.flush()
	}
	t.write(".mailtree/blob", "nobody's")
	unreachable = append(unreachable, t.git("hash-object", "-w", t.path(".mailtree/blob")))
	t.write("amended", "x")
	t.git("add", "amended")
	t.git("commit", "-qm", "packed and dropped")
	unreachable = append(unreachable, t.git("rev-parse", "HEAD"))
	t.git("repack", "-q")
	t.git("reset", "-q", "--hard", "HEAD~")
	t.git("reflog", "expire", "--expire=now", "--all")
	return unreachable
}

func (t *repoTree) have(objects []string) {
	t.Helper()
	for _, o := range objects {
		if _, err := t.tryGit("cat-file", "-e", o); err != nil {
			t.Errorf("object %s is gone: %v", o, err)
		}
	}
}

func TestTidy(t *testing.T) {
	t.Parallel()
	tr := newTree(t, Config{Idle: time.Millisecond, Piled: 10})
	unreachable := tr.litter()
	old := time.Now().Add(-2 * leftover)
	for _, f := range []string{"pack/tmp_pack_x", "pack/.tmp-1-pack-x.pack", "pack/tmp_idx_new"} {
		tr.write(".git/objects/"+f, "x")
		if !strings.HasSuffix(f, "new") {
			tr.check(os.Chtimes(tr.path(".git/objects/"+f), old, old))
		}
	}
	tr.run()
	tr.until("everything is in one pack", func() bool { loose, packs := tr.count(); return loose == 0 && packs == 1 })
	tr.until("the graph is created", func() bool { _, err := os.Lstat(tr.path(".git/objects/info/commit-graph")); return err == nil })
	tr.have(unreachable)
	var left []string
	tr.check(filepath.WalkDir(tr.path(".git"), func(p string, d os.DirEntry, err error) error {
		if d != nil && strings.Contains(d.Name(), "tmp") {
			left = append(left, d.Name())
		}
		return err
	}))
	tr.equal("temporary files", strings.Join(left, " "), "tmp_idx_new")
	tr.still(func() { tr.equal("fsck", tr.git("fsck", "--strict", "--no-dangling"), "") })
	for i := range 5 { // objects written during the repack must be counted
		tr.send(fmt.Sprint("n", i), fmt.Sprint("messages/n", i))
		tr.flush()
	}
	tr.until("once more", func() bool { loose, _ := tr.count(); return loose < 10 })
	tr.git("add", ".")
	tr.still(tr.sound)
}

// still calls f while no repack is in progress. This is necessary because git fsck lists the packs and then opens each
// of them. If a repack replaces a pack between these two steps, fsck reports that the packfile cannot be accessed.
func (t *repoTree) still(f func()) {
	t.Helper()
	done, err := await(t.Context(), t.log.cfg.Share.aside)
	t.check(err)
	defer done()
	f()
}

// TestTidyAtEveryStep checks that a repack at any step of a commit removes no objects of the commit.
func TestTidyAtEveryStep(t *testing.T) {
	t.Parallel()
	for _, step := range append([]string{"built", "objects"}, steps...) {
		for _, n := range []int{1, 30} {
			t.Run(fmt.Sprintf("%s, %d operations", step, n), func(t *testing.T) {
				t.Parallel()
				tr := newTree(t, Config{Idle: -1, Piled: 1})
				if step == "reserved" {
					tr.log.optimistic = 0
				}
				unreachable := tr.litter()
				for i := range n {
					tr.send(fmt.Sprint("m", i), fmt.Sprint("new/m", i))
				}
				reached := false
				tr.log.step = func(s string) {
					if s == step {
						reached = true
						err := tr.log.repack(context.Background())
						tr.check(err)
					}
				}
				tr.flush()
				if loose, packs := tr.count(); !reached || packs > 2 || loose > 20 {
					t.Errorf("step reached: %v, %d loose, %d packs", reached, loose, packs)
				}
				tr.log.step = func(string) {}
				tr.send("last", "new/last")
				tr.flush()
				tr.have(unreachable)
				tr.sound()
			})
		}
	}
}

func TestTidyLeavesAlone(t *testing.T) {
	t.Parallel()
	tr := newTree(t, Config{Idle: -1, Piled: 1})
	tr.litter()
	loose, packs := tr.count()
	head := tr.git("rev-parse", "HEAD")
	for name, c := range map[string]struct{ do, undo func() }{
		"repacked by Git": {func() { tr.git("config", "gc.auto", "7") }, func() { tr.git("config", "gc.auto", "0") }},
		"precious":        {func() { tr.git("config", "extensions.preciousObjects", "yes") }, func() { tr.git("config", "--unset", "extensions.preciousObjects") }},
		"partial":         {func() { tr.git("config", "extensions.partialClone", "x") }, func() { tr.git("config", "--unset", "extensions.partialClone") }},
		"in a merge":      {func() { tr.write(".git/MERGE_HEAD", head) }, func() { os.Remove(tr.path(".git/MERGE_HEAD")) }},
		"no program":      {func() { tr.log.git = func() (string, error) { return "", errors.New("none") } }, func() { tr.log.git = git }},
		"nothing much":    {func() { tr.log.cfg.Piled = 1e6 }, func() { tr.log.cfg.Piled = 1 }},
	} {
		tr.log.git = git
		c.do()
		tr.log.repack(context.Background())
		if l, p := tr.count(); l != loose || p != packs {
			t.Errorf("%s: %d loose and %d packs became %d and %d", name, loose, packs, l, p)
		}
		c.undo()
	}
	err := tr.log.repack(context.Background())
	tr.check(err)
	if l, p := tr.count(); l != 0 || p != 1 {
		t.Errorf("%d loose, %d packs at the end", l, p)
	}
}

func git() (string, error) { return "git", nil }

// script writes an executable script.
func (t *repoTree) script(file, text string) {
	t.Helper()
	syscall.ForkLock.RLock() // a process forked now would keep the script open, and the script could not be run
	defer syscall.ForkLock.RUnlock()
	t.check(os.WriteFile(file, []byte("#!/bin/sh\n"+text), 0o755))
}

// TestTidyObeysNobody checks that a repack runs no program from any configuration, and does not pass on any of the
// server's environment variables.
func TestTidyObeysNobody(t *testing.T) {
	t.Parallel()
	tr := newTree(t, Config{Idle: -1, Piled: 1})
	tr.litter()
	evil := filepath.Join(t.TempDir(), "evil")
	tr.script(evil, "touch "+evil+".ran\nexit 1\n")
	hooks := t.TempDir()
	for _, h := range []string{"pre-auto-gc", "post-rewrite", "reference-transaction", "post-index-change", "fsmonitor-watchman"} {
		tr.check(os.Symlink(evil, filepath.Join(hooks, h)))
		tr.check(os.MkdirAll(tr.path(".git/hooks"), 0o755))
		tr.check(os.Symlink(evil, tr.path(".git/hooks/"+h)))
	}
	text := "[include]\n\tpath = " + evil + ".config\n"
	for _, key := range []string{"core.fsmonitor", "core.sshCommand", "core.pager", "core.editor", "core.gitProxy", "core.askPass",
		"core.alternateRefsCommand", "credential.helper", "uploadpack.packObjectsHook", "gpg.program", "diff.external", "pager.repack", "trace2.eventTarget"} {
		section, name, _ := strings.Cut(key, ".")
		text += fmt.Sprintf("[%s]\n\t%s = %s\n", section, name, evil)
	}
	text += "[alias]\n\trepack = !" + evil + "\n\tpack-objects = !" + evil + "\n[core]\n\thooksPath = " + hooks + "\n" +
		"[repack]\n\twriteBitmaps = true\n\tpackKeptObjects = true\n[pack]\n\twriteBitmaps = true\n" +
		"[remote \"x\"]\n\tpromisor = true\n\turl = ext::" + evil + "\n[protocol \"ext\"]\n\tallow = always\n"
	config, err := os.ReadFile(tr.path(".git/config"))
	tr.check(err)
	tr.check(os.WriteFile(tr.path(".git/config"), append(config, text...), 0o644))
	program := filepath.Join(t.TempDir(), "git")
	tr.script(program, "env > "+program+".env\nexec git \"$@\"\n")
	tr.log.git = func() (string, error) { return program, nil }
	err = tr.log.repack(context.Background())
	tr.check(err)
	if _, err := os.Lstat(evil + ".ran"); err == nil {
		t.Error("a program from the configuration was run")
	}
	tr.check(os.WriteFile(tr.path(".git/config"), config, 0o644))
	if l, p := tr.count(); l != 0 || p != 1 {
		t.Errorf("%d loose, %d packs at the end", l, p)
	}
	env, err := os.ReadFile(program + ".env")
	tr.check(err)
	var names []string
	for line := range strings.Lines(string(env)) {
		name, _, _ := strings.Cut(line, "=")
		if name != "_" && name != "PWD" && name != "OLDPWD" && name != "SHLVL" { // the shell itself sets these
			names = append(names, name)
		}
	}
	slices.Sort(names)
	tr.equal("environment", strings.Join(names, " "),
		"GIT_ALLOW_PROTOCOL GIT_ATTR_NOSYSTEM GIT_CONFIG_GLOBAL GIT_CONFIG_NOSYSTEM GIT_CONFIG_SYSTEM GIT_DIR GIT_INDEX_FILE GIT_LITERAL_PATHSPECS "+
			"GIT_NO_LAZY_FETCH GIT_OBJECT_DIRECTORY GIT_OPTIONAL_LOCKS GIT_TERMINAL_PROMPT GIT_WORK_TREE HOME LC_ALL MALLOC_TRIM_THRESHOLD_ PATH")
}

// TestTidyEnds checks that when Run ends, the repack program and its child processes end too.
func TestTidyEnds(t *testing.T) {
	t.Parallel()
	tr := newTree(t, Config{Idle: time.Millisecond, Piled: 1})
	tr.litter()
	program := filepath.Join(t.TempDir(), "git")
	said := func(what, where string) string {
		return "echo " + what + " > " + program + ".tmp\nmv " + program + ".tmp " + where + "\n"
	}
	tr.script(program, "case \"$*\" in *repack*) ;; *) exec git \"$@\";; esac\n"+said("$$", program+".pid")+"until [ -e "+program+".go ]; do sleep 0.01; done\nsleep 1000 &\n"+said("$! $$", program+".pids")+"wait\n")
	tr.log.git = func() (string, error) { return program, nil }
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- tr.log.Run(ctx) }()
	var pids []byte
	read := func(file string) bool {
		var err error
		pids, err = os.ReadFile(file)
		return err == nil
	}
	const lowest = 20 - 19 // nice value 19, as the kernel reports it
	tr.until("the program runs", func() bool { return read(program + ".pid") })
	tr.until("it has the lowest priority", func() bool { // the priority is set after the program starts; its children inherit it
		pid, _ := strconv.Atoi(strings.TrimSpace(string(pids)))
		n, err := syscall.Getpriority(syscall.PRIO_PROCESS, pid)
		return err == nil && n == lowest
	})
	tr.check(os.WriteFile(program+".go", nil, 0o600))
	tr.until("it has started another program", func() bool { return read(program + ".pids") })
	tr.send("m1", "m1") // commits must be possible during the repack
	tr.until("committed", func() bool { return tr.log.State().Pending == 0 })
	for _, p := range strings.Fields(string(pids)) {
		pid, _ := strconv.Atoi(p)
		if n, err := syscall.Getpriority(syscall.PRIO_PROCESS, pid); err != nil || n != lowest {
			t.Errorf("priority %d, %v", n, err)
		}
	}
	cancel()
	tr.check(<-ended)
	for _, p := range strings.Fields(string(pids)) {
		pid, _ := strconv.Atoi(p)
		tr.until("process "+p+" has ended", func() bool {
			stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
			return err != nil || strings.Contains(string(stat), ") Z ")
		})
	}
}

// TestTidyTimes checks that a failure is reported once and not retried immediately, and that a busy tree is repacked
// even if it is never idle.
func TestTidyTimes(t *testing.T) {
	t.Parallel()
	cfg := Config{Idle: time.Minute, Piled: 100}
	now := time.Now()
	for _, c := range []struct {
		pile unpacked
		in   time.Duration
		due  bool
	}{
		{unpacked{size: 99, since: now}, 0, false},
		{unpacked{size: 100, since: now}, time.Minute, true},
		{unpacked{size: 1000, since: now}, -1, true},
		{unpacked{size: 1000, since: now, notYet: now.Add(time.Hour)}, time.Hour, true},
	} {
		at, due := c.pile.due(cfg)
		if due != c.due || due && c.in >= 0 && !at.Equal(now.Add(c.in)) || c.in < 0 && at.After(now) {
			t.Errorf("%+v: in %v, %v", c.pile, at.Sub(now), due)
		}
	}
	tr := newTree(t, Config{Idle: time.Millisecond, Piled: 1})
	tr.litter()
	runs := 0
	tr.log.git = func() (string, error) { runs++; return "/does/not/exist", nil }
	tr.log.tidy(context.Background())
	if at, due := tr.log.unpacked.due(tr.log.cfg); !due || time.Until(at) < tidyRetry/2 || runs != 1 {
		t.Errorf("the next time is in %v, due %v, %d runs", time.Until(at), due, runs)
	}
}
