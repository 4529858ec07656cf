package repo

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestConfigIgnoresCase checks that configuration files are parsed as Git parses them.
func TestConfigIgnoresCase(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "[core]\n\tignorecase = true\n", "[core]\n\tignorecase = false\n", "[CORE]\nIgnoreCase=TRUE", "[core]\nignorecase\n", "[core]\nignorecase =\n",
		"[core] ignorecase = yes", "[core]\nignorecase = on # so it is\n", "[core]\nignorecase = \"true\" ; yes\n", "[core]\nignorecase = 1\n", "[core]\nignorecase = 0\n",
		"[core]\nignorecase = true\n[user]\nname = x\n[core]\nignorecase = false\n", "[user]\nignorecase = true\n", "[core \"sub\"]\nignorecase = true\n",
		"# ignorecase = true\n[core]\n; ignorecase = true\n", "[core]\nbare = false\n\tignorecase = true\n[remote \"[core]\"]\nurl = x\n", "\ufeff[core]\nignorecase = true\n",
		"[alias]\nx = \"!rm -rf\"\n[core]\nfsmonitor = touch ran\nignorecase = true\n", "[core]\r\nignorecase = true\r\n",
	} {
		file := filepath.Join(t.TempDir(), "config")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command("git", "config", "--file", file, "--type=bool", "--default=false", "core.ignorecase").Output()
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if got, want := configIgnoresCase(text), strings.TrimSpace(string(out)) == "true"; got != want {
			t.Errorf("%q: %v, Git says %v", text, got, want)
		}
	}
}

// TestIgnoresCase checks that the configuration is found from any folder in any kind of working tree, and is read
// again when it changes. It also checks that, if something other than a regular file is at its path, the setting is
// treated as unset and the call does not block.
func TestIgnoresCase(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	main, linked, bare := filepath.Join(dir, "main"), filepath.Join(dir, "linked"), filepath.Join(dir, "bare")
	git := func(args ...string) {
		t.Helper()
		if out, err := exec.Command("git", append([]string{"-c", "user.name=p", "-c", "user.email=p@x"}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	git("init", "-q", main)
	git("-C", main, "commit", "-q", "--allow-empty", "-m", "x")
	git("-C", main, "worktree", "add", "-q", linked)
	git("init", "-q", "--separate-git-dir", filepath.Join(dir, "apart"), bare)
	deep := filepath.Join(main, "not", "there")
	var c Codebase
	look := func(want bool, dirs ...string) {
		t.Helper()
		for _, d := range dirs {
			if got, err := c.IgnoresCase(d); err != nil || got != want {
				t.Errorf("%s: %v, %v", strings.TrimPrefix(d, dir), got, err)
			}
		}
	}
	look(false, "", dir, main, linked, bare, deep)
	git("-C", main, "config", "core.ignorecase", "true")
	git("-C", bare, "config", "core.ignorecase", "yes")
	look(true, main, linked, bare, deep)
	look(true, main) // this result comes from the cache
	git("-C", main, "config", "core.ignorecase", "false")
	look(false, main, linked)
	look(true, bare)

	config := filepath.Join(main, ".git", "config")
	if err := os.Remove(config); err != nil {
		t.Fatal(err)
	}
	look(false, main)
	if err := unix.Mkfifo(config, 0o600); err != nil {
		t.Fatal(err)
	}
	look(false, main, deep, linked)
	gitFile := filepath.Join(linked, ".git")
	if err := os.Remove(gitFile); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(gitFile, 0o600); err != nil {
		t.Fatal(err)
	}
	look(false, linked)
	if err := os.RemoveAll(config); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(config, append([]byte("[core]\nignorecase = true\n"), make([]byte, maxConfig)...), 0o600); err != nil {
		t.Fatal(err)
	}
	look(false, main)
}

// TestLookBehindLink checks that a path through a link that points outside the working tree is treated as missing,
// not as a machine fault. Such a fault would prevent all agents from claiming paths.
func TestLookBehindLink(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if out, err := exec.Command("git", "init", "-q", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := os.Symlink("/etc", filepath.Join(dir, "sub")); err != nil {
		t.Fatal(err)
	}
	var c Codebase
	isFile, done := c.Look(dir)
	if isFile("sub/passwd") {
		t.Error("a file outside was seen")
	}
	if err := done(); err != nil {
		t.Error(err)
	}
	err := Folders(nil).Visit(dir, "", func(v *View) error {
		if v.Exists("sub/passwd") {
			t.Error("a file outside exists")
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestRelative checks that a path in a linked worktree, wherever that worktree is, is mapped to the path in the
// repository.
func TestRelative(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	git := func(args ...string) {
		t.Helper()
		if out, err := exec.Command("git", append([]string{"-c", "user.name=p", "-c", "user.email=p@x"}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	main := filepath.Join(dir, "main")
	for _, name := range []string{"main", "other", "main/nested"} {
		git("init", "-q", filepath.Join(dir, name))
		git("-C", filepath.Join(dir, name), "commit", "-q", "--allow-empty", "-m", "x")
	}
	git("-C", main, "worktree", "add", "-q", filepath.Join(dir, "sibling"))
	git("-C", main, "worktree", "add", "-q", filepath.Join(main, ".claude/worktrees/foo"))
	git("-C", filepath.Join(dir, "other"), "worktree", "add", "-q", filepath.Join(main, "guest"))
	for _, d := range []string{"main/app/docs", "sibling/app/only", "main/.claude/worktrees/foo/app"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"link": "sibling", "sibling/app/l": "/etc/passwd", "main/l": "app"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ top, path, want string }{
		{"main", "main", "."},
		{"main", "main/a.go", "a.go"},
		{"main", "main/l/a.go", "l/a.go"},
		{"main", "main/nested/a.go", "nested/a.go"},
		{"main", "main/guest/a.go", "guest/a.go"},
		{"main", "mains/a.go", ""},
		{"main", "other/a.go", ""},
		{"main", "sibling", "."},
		{"main", "sibling/app/new/*.go", "app/new/*.go"},
		{"main", "sibling/app/l", "app/l"},
		{"main", "sibling/../sibling/a.go", "a.go"},
		{"main", "link/a.go", "a.go"},
		{"main", "main/.claude/worktrees/foo/docs/d.md", "docs/d.md"},
		{"main", "main/.claude/worktrees/foo", "."},
		{"main", "main/.claude/worktrees/bar/x", ".claude/worktrees/bar/x"},
		{"main/app", "sibling/app/a.go", "a.go"},
		{"main/app", "sibling/lib/a.go", ""},
		{"main/app", "main/app/docs", "docs"},
		{"sibling", "sibling/a.go", "a.go"},
	} {
		rel, ok, err := Folders(nil).Relative(filepath.Join(dir, c.top), filepath.Join(dir, c.path))
		if err != nil || rel != c.want && ok || ok != (c.want != "") {
			t.Errorf("%s in %s: %q %v, %v; want %q", c.path, c.top, rel, ok, err, c.want)
		}
	}
	for _, work := range []string{"", "sibling"} {
		err := Folders(nil).Visit(main, filepath.Join(dir, work), func(v *View) error {
			if got := v.Exists("app/only"); got != (work != "") {
				t.Errorf("in %q: app/only exists: %v", work, got)
			}
			v.Relative(filepath.Join(dir, "sibling/app/x"))
			if !v.Exists("app/only") || !v.Exists("app/docs") {
				t.Error("a file that is in only one of the two worktrees is not found")
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// TestLink checks that a .git entry links a folder to a working tree only if the repository has a record of the
// worktree. A moved worktree is still linked, but copied and forged entries are not accepted.
func TestLink(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	main, at := filepath.Join(dir, "main"), func(name string) string { return filepath.Join(dir, name) }
	git := func(args ...string) {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-c", "user.name=x", "-c", "user.email=x@x"}, args...)...)
		cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "HOME="+dir)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
	}
	git("init", "-q", main)
	git("-C", main, "commit", "-q", "--allow-empty", "-m", "x")
	for _, name := range []string{"linked", "before"} {
		git("-C", main, "worktree", "add", "-q", at(name))
	}
	of, err := os.ReadFile(filepath.Join(at("linked"), ".git"))
	err = errors.Join(err,
		os.Rename(at("before"), at("moved")),
		os.CopyFS(at("copy"), os.DirFS(at("linked"))),
		os.Mkdir(at("file"), 0o700),
		os.WriteFile(filepath.Join(at("file"), ".git"), of, 0o600),
		os.MkdirAll(filepath.Join(at("folder"), ".git"), 0o700),
		os.WriteFile(filepath.Join(at("folder"), ".git/commondir"), []byte(main+"/.git\n"), 0o600),
		os.MkdirAll(at("unknown"), 0o700),
		os.WriteFile(filepath.Join(at("unknown"), ".git"), []byte("gitdir: "+main+"/.git/worktrees/none\n"), 0o600),
	)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"linked": main, "moved": main,
		"copy": at("copy"), "file": at("file"), "folder": at("folder"), "unknown": at("unknown"),
	} {
		if place, err := PlaceOf(at(name)); err != nil || place.Path != want || place.Top != want {
			t.Errorf("%s is at %+v, %v", name, place, err)
		}
	}
}
