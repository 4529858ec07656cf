package repo

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// fill creates a working tree whose index contains the given names, and returns the tree's top.
func fill(t testing.TB, names string, initArgs ...string) (top string, git func(stdin string, args ...string)) {
	top = t.TempDir()
	git = func(stdin string, args ...string) {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-C", top}, args...)...)
		cmd.Stdin = strings.NewReader(stdin)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	git("", append([]string{"init", "-q"}, initArgs...)...)
	git("", "hash-object", "-w", "--stdin")
	git(entries(t, top, names), "update-index", "--index-info")
	return top, git
}

// entries returns input for update-index that adds an empty file for each name. NAME@2 means an entry in conflict.
func entries(t testing.TB, top, names string) string {
	blob, err := exec.Command("git", "-C", top, "hash-object", "/dev/null").Output()
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for name := range strings.FieldsSeq(names) {
		name, stage, _ := strings.Cut(name, "@")
		fmt.Fprintf(&all, "100644 %s %s\t%s\n", strings.TrimSpace(string(blob)), "0"[len(stage):]+stage, name)
	}
	return all.String()
}

// TestTracked checks that the list matches the current index, and that an index that could not be read is not treated
// as empty.
func TestTracked(t *testing.T) {
	t.Parallel()
	later := time.Now().Add(time.Hour)
	var x Tracked
	look := func(dir string, deadline time.Time, want string) {
		t.Helper()
		names, ok := x.Below(dir, deadline)
		if got := fmt.Sprint(names, ok); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	top, git := fill(t, "a.go lib/a.go lib/b.go library")
	look(top, time.Now(), "[] false")
	look(top, later, "[a.go lib/a.go lib/b.go library] true")
	look(top, time.Now(), "[a.go lib/a.go lib/b.go library] true") // this result comes from the cache
	look(filepath.Join(top, "lib"), later, "[a.go b.go] true")
	look(filepath.Join(top, "not/there"), later, "[] true")
	git("", "update-index", "--force-remove", "lib/a.go")
	look(top, later, "[a.go lib/b.go library] true")
	for _, form := range [][]string{{"--index-version", "4"}, {"--split-index"}, {"--no-split-index"}} {
		git("", append([]string{"update-index"}, form...)...)
		git(entries(t, top, "new"+form[0]), "update-index", "--index-info")
		look(top, later, "[a.go lib/b.go library new"+form[0]+"] true")
		git("", "update-index", "--force-remove", "new"+form[0])
	}
	look(t.TempDir(), later, "[] false")

	fresh := t.TempDir()
	if err := os.Mkdir(filepath.Join(fresh, ".git"), 0o777); err != nil {
		t.Fatal(err)
	}
	look(fresh, later, "[] false") // a .git folder that is not a repository
	if out, err := exec.Command("git", "init", "-q", fresh).CombinedOutput(); err != nil {
		t.Fatalf("git init: %v\n%s", err, out)
	}
	look(fresh, later, "[] true")
	look(filepath.Join(fresh, "lib"), later, "[] true")
	look(fresh, time.Now(), "[] false")

	conflict, _ := fill(t, "a.go b.go@1 b.go@2 b.go@3")
	look(conflict, later, "[a.go b.go] true")
	sha256, _ := fill(t, "a.go b.go lib/long/name.go", "--object-format=sha256")
	look(sha256, later, "[a.go b.go lib/long/name.go] true")
	for range maxKept + 1 {
		other, _ := fill(t, "a.go")
		look(other, later, "[a.go] true")
	}
	if len(x.kept) != maxKept {
		t.Errorf("%d lists are remembered", len(x.kept))
	}
}

// TestTrackedObeysNobody checks that Tracked does not run any program from the repository's configuration.
func TestTrackedObeysNobody(t *testing.T) {
	t.Parallel()
	top, git := fill(t, "a.go")
	ran := filepath.Join(t.TempDir(), "ran")
	git("", "config", "core.fsmonitor", "touch "+ran)
	git("", "config", "filter.x.clean", "touch "+ran)
	git("", "config", "alias.ls-files", "!touch "+ran)
	git("", "config", "core.hooksPath", filepath.Dir(ran))
	if names, ok := new(Tracked).Below(top, time.Now().Add(time.Hour)); !ok || len(names) != 1 {
		t.Errorf("got %v %v", names, ok)
	}
	if _, err := os.Lstat(ran); err == nil {
		t.Error("a program ran")
	}
}

// TestTrackedAtOnce checks that many goroutines can read lists while the files change, even if not all lists fit in the
// cache.
func TestTrackedAtOnce(t *testing.T) {
	t.Parallel()
	var x Tracked
	var all sync.WaitGroup
	for range maxKept + 1 {
		top, git := fill(t, "lib/a.go")
		for range 3 {
			all.Go(func() {
				for range 20 {
					names, ok := x.Below(filepath.Join(top, "lib"), time.Now().Add(time.Hour))
					if ok && !slices.Contains(names, "a.go") {
						t.Errorf("got %v", names)
					}
				}
			})
		}
		git(entries(t, top, "lib/b.go"), "update-index", "--index-info")
	}
	all.Wait()
}

// BenchmarkTracked measures reading an index of 100,000 files.
func BenchmarkTracked(b *testing.B) {
	var names strings.Builder
	for i := range 100_000 {
		fmt.Fprintf(&names, "services/s%03d/internal/handlers/file%05d.go ", i%200, i)
	}
	top, _ := fill(b, names.String())
	for b.Loop() {
		if _, ok := new(Tracked).Below(top, time.Now().Add(time.Hour)); !ok {
			b.Fatal("not read")
		}
	}
}
