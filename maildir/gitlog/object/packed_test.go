package object

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
)

// packedRepository is a repository of n commits whose objects Git has put into one pack, with
// deltas; names are of all of them.
func packedRepository(t *testing.T, n int, repack ...string) (git string, names map[string]Kind) {
	t.Helper()
	dir := t.TempDir()
	run := func(in string, args ...string) string {
		t.Helper()
		c := exec.Command("git", args...)
		c.Dir, c.Stdin = dir, strings.NewReader(in)
		out, err := c.Output()
		if err != nil {
			t.Fatalf("git %s: %v", args, err)
		}
		return string(out)
	}
	run("", "init", "-q", "-b", "main")
	var in strings.Builder
	for i := range n {
		fmt.Fprintf(&in, "commit refs/heads/main\ncommitter A <a@x> %d +0000\ndata 2\n%02d", 1700000000+i, i%100)
		fmt.Fprintf(&in, "\nM 100644 inline folder/file%d\ndata %d\n%s%05d\n", i%40, 3005, strings.Repeat("some text\n", 300), i)
	}
	run(in.String(), "fast-import", "--quiet")
	run("", append([]string{"-c", "pack.depth=50", "repack", "-adfq"}, repack...)...)
	names = map[string]Kind{}
	kinds := map[string]Kind{"commit": KindCommit, "tree": KindTree, "blob": KindBlob}
	for line := range strings.Lines(run("", "cat-file", "--batch-all-objects", "--batch-check=%(objectname) %(objecttype)")) {
		name, kind, _ := strings.Cut(strings.TrimSpace(line), " ")
		names[name] = kinds[kind]
	}
	return filepath.Join(dir, ".git"), names
}

// TestPackSet: every object of a pack with deltas is read as it is; one that is not there is not
// found.
func TestPackSet(t *testing.T) {
	t.Parallel()
	git, names := packedRepository(t, 600)
	s := openPacks(git)
	defer s.close()
	for name, kind := range names {
		h := plumbing.NewHash(name)
		data, err := s.read(kind, h)
		if err != nil || HashOf(kind, data) != h {
			t.Fatalf("%s %s: %v, %d bytes", kind, name, err, len(data))
		}
		h[19] ^= 1
		if _, err := s.read(kind, h); !errors.Is(err, errNotPacked) {
			t.Fatalf("a name that nothing has: %v", err)
		}
	}
}

// TestPackSetDamaged: a pack with any byte changed gives an object as it was or an error.
func TestPackSetDamaged(t *testing.T) {
	t.Parallel()
	git, names := packedRepository(t, 30)
	files, err := filepath.Glob(filepath.Join(git, "objects/pack/*.pack"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	whole, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	damaged := filepath.Join(filepath.Dir(files[0]), "new")
	for at := 12; at < len(whole); at += 7 {
		data := bytes.Clone(whole)
		data[at] ^= 0x55
		if err := errors.Join(os.WriteFile(damaged, data, 0o600), os.Rename(damaged, files[0])); err != nil {
			t.Fatal(err)
		}
		s := openPacks(git)
		for name, kind := range names {
			_, _ = s.read(kind, plumbing.NewHash(name)) // no panic, no endless loop
		}
		s.close()
	}
}
