package embedded

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mailtree/maildir/tree"
)

// TestUntracked checks that Untracked finds the same files as git ls-files, in a tree with ignored files and folders,
// files that are both ignored and tracked, and a nested repository.
func TestUntracked(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	git := func(args ...string) string {
		t.Helper()
		c := exec.Command("git", append([]string{"-C", dir}, args...)...)
		c.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1")
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, out)
		}
		return string(out)
	}
	git("init", "-q")
	git("init", "-q", "nested")
	exclude := "/run\n"
	for name, text := range map[string]string{
		".git/info/exclude":    exclude,
		".gitignore":           "\ufeff*.tmp\r\n# a comment\n!keep.tmp\n/top\nbuild/\n**/deep/x\n\\#hash\n*.[oa]\n a b \n",
		"sub/.gitignore":       "/local\n!*.tmp\nmore/**\n",
		"sub/build/.gitignore": "!*\n",
		"a.tmp":                "", "keep.tmp": "", "top": "", "sub/top": "", "build": "", "x/build/y": "", "sub/build/y": "",
		"q/deep/x": "", "q/deep/y": "", "#hash": "", "a.o": "", "sub/a.tmp": "", "sub/local": "", "sub/q/local": "", "sub/more/z": "",
		"run/x": "", ".hidden/x": "", "nested/x": "", "tracked.tmp": "", "tracked": "", "line\nend": "", "space ": "",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	git("add", "-f", "tracked", "tracked.tmp")
	w, err := tree.Open(dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	tracked := func(path string) bool { return strings.HasPrefix(path, "tracked") }
	for _, paths := range [][]string{{""}, {"sub", "a.tmp", "keep.tmp"}, {"sub/more", "x/build/y", "nested/x", "none", ".hidden"}} {
		var got []string
		if err := Untracked(t.Context(), w, []byte(exclude), paths, tracked, func(path string) { got = append(got, path) }); err != nil {
			t.Fatal(err)
		}
		args := []string{"ls-files", "-z", "--others", "--exclude-standard", "--"}
		for _, path := range paths {
			if path != "" {
				args = append(args, path)
			}
		}
		var want []string
		for path := range strings.SplitSeq(git(args...), "\x00") {
			if path != "" && !strings.HasSuffix(path, "/") { // a path that ends in "/" is a nested repository
				want = append(want, path)
			}
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%q: untracked are\n%q, git says\n%q", paths, got, want)
		}
	}
}
