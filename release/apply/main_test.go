package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/mod/module"

	"mailtree/release"
)

// TestApplied checks that the repository matches release/home, so that apply would change nothing.
func TestApplied(t *testing.T) {
	home, err := release.Read("../home")
	if err != nil {
		t.Fatal(err)
	}
	changed, err := derive("../..", home)
	if err != nil {
		t.Fatal(err)
	}
	for path := range changed {
		t.Errorf("%s differs from what release/home says: run go -C release run ./apply", path)
	}
}

// TestModule checks that Go accepts the name of every file in the module, so that `go install` can download it. Names
// that Windows reserves, such as nul.txt, are not allowed on any system.
func TestModule(t *testing.T) {
	list, err := exec.CommandContext(t.Context(), "git", "-C", "../..", "ls-files", "-z").Output()
	if err != nil {
		t.Fatal(err)
	}
	for path := range strings.SplitSeq(strings.TrimSuffix(string(list), "\x00"), "\x00") {
		if err := module.CheckFilePath(path); err != nil {
			t.Error(err)
		}
	}
}

// TestApply checks that applying another home to a copy of the repository updates every file that depends on the
// home, and that a second run changes nothing. Applying the repository's own home again must restore every file.
func TestApply(t *testing.T) {
	root := t.TempDir()
	list, err := exec.CommandContext(t.Context(), "git", "-C", "../..", "ls-files", "-z", "--cached", "--others", "--exclude-standard",
		"*.go", "go.mod", "release/*", "server.json", "README.md", "docs/howto/install.md").Output()
	if err != nil {
		t.Fatal(err)
	}
	before := map[string]string{}
	for path := range strings.SplitSeq(strings.TrimSuffix(string(list), "\x00"), "\x00") {
		data, err := os.ReadFile(filepath.Join("../..", path))
		if err != nil {
			t.Fatal(err)
		}
		before[path] = string(data)
		write(t, root, path, string(data))
	}
	apply := func(home string) (changed int) {
		t.Helper()
		write(t, root, "release/home", home)
		read, err := release.Read(filepath.Join(root, "release/home"))
		if err != nil {
			t.Fatal(err)
		}
		files, err := derive(root, read)
		if err != nil {
			t.Fatal(err)
		}
		for path, data := range files {
			write(t, root, path, string(data))
		}
		return len(files)
	}
	if n := apply(example); n < 500 {
		t.Errorf("only %d files changed", n)
	}
	if n := apply(example); n != 0 {
		t.Errorf("a second run changed %d files", n)
	}
	left := regexp.MustCompile(`(?m)^\s*(import )?([a-z]+ )?"mailtree/[a-z/]+"$|internal\.mailtree/mailtree"|^module mailtree`)
	for path := range before {
		if found := left.FindString(read(t, root, path)); found != "" && path != "release/home.go" && !strings.HasSuffix(path, "_test.go") {
			t.Errorf("%s still contains %q", path, found)
		}
	}
	for path, want := range map[string]string{
		"go.mod":                "module github.com/example/mailtree\n",
		"release/go.mod":        "module github.com/example/mailtree/release\n",
		"server.json":           `"name": "io.github.example/mailtree"`,
		"mcp/card.go":           `"io.github.example/mailtree"`,
		"guard/program.go":      `"@example/mailtree"`,
		pluginSource:            `repository = "https://github.com/example/mailtree"`,
		"README.md":             "npm install -g @example/mailtree\n",
		"docs/howto/install.md": "npm install -g @example/mailtree\n",
	} {
		if got := read(t, root, path); !strings.Contains(got, want) {
			t.Errorf("%s does not contain %q", path, want)
		}
	}
	if lines := strings.Count(read(t, root, "README.md"), "\n"); lines > 130 {
		t.Errorf("the README has %d lines, over the limit of 130", lines)
	}
	apply(before["release/home"])
	for path, want := range before {
		if got := read(t, root, path); got != want {
			t.Errorf("%s is not as before", path)
		}
	}
}

const example = `
repository = https://github.com/example/mailtree
maintainer = The mailtree authors <mailtree@example.org>
registry = io.github.example/mailtree
npm = @example/mailtree
pypi = example-mailtree
image = ghcr.io/example/mailtree
tap = example/tap
`

// TestHome checks that Read rejects a home file that contains a mistake.
func TestHome(t *testing.T) {
	for text, want := range map[string]string{
		"repository = https://github.com/example/mailtree": "is empty: set all values or none",
		strings.Replace(example, "https:", "git:", 1):      "must be an https address",
		strings.Replace(example, "tap", "taps", 1):         `cannot read the line "taps = example/tap"`,
		strings.Replace(example, "/mailtree", "/", 1):      "does not yield a valid module path",
	} {
		dir := t.TempDir()
		write(t, dir, "home", text)
		if _, err := release.Read(filepath.Join(dir, "home")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func write(t *testing.T, root, path, text string) {
	t.Helper()
	file := filepath.Join(root, path)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, root, path string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
