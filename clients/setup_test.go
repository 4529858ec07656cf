package clients

import (
	"bytes"
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"mailtree/clients/edit"
)

var update = flag.Bool("update", false, "rewrite the files after a setup in fixtures/clients")

// TestSetup sets up clients in the home folders and code bases of fixtures/clients, and compares the resulting files
// with the expected ones. It also checks that a second setup changes nothing, and that removing the setup restores the
// files byte for byte. The README.md file there explains the form of a case.
func TestSetup(t *testing.T) {
	t.Parallel()
	cases, err := filepath.Glob("../fixtures/clients/*.txtar")
	if err != nil || len(cases) < 20+len(List()) {
		t.Fatalf("found %d cases, %v", len(cases), err)
	}
	for _, name := range cases {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			t.Parallel()
			a, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			c := begin(t, a)
			after := c.run()
			if *update {
				a.Files = append(inside(a, "before"), after...)
				if err := os.WriteFile(name, txtar.Format(a), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			want := &txtar.Archive{Files: append(inside(a, "after"), inside(a, "refused")...)}
			if d := cmp.Diff(string(txtar.Format(want)), string(txtar.Format(&txtar.Archive{Files: after}))); d != "" {
				t.Error(d)
			}
		})
	}
}

// inside returns the files in an archive that are in the given folder.
func inside(a *txtar.Archive, dir string) (files []txtar.File) {
	for _, f := range a.Files {
		if f.Name == dir || strings.HasPrefix(f.Name, dir+"/") {
			files = append(files, f)
		}
	}
	return files
}

// attempt is one case: a setup in a separate folder. The case may prepare the folder's files.
type attempt struct {
	t      *testing.T
	root   string
	setup  Setup
	wanted Wanted
	crlf   bool // all files have CRLF line endings
	again  bool // the initial files already contain our entry
	before map[string]string
	dirs   []string // the initial folders
}

// begin parses the lines before the archive's first file, and writes the initial files.
func begin(t *testing.T, a *txtar.Archive) *attempt {
	c := &attempt{t: t, root: t.TempDir(), wanted: Wanted{Server: Server{Args: []string{"stdio"}}, NoHooks: true}}
	at := Site{Home: filepath.Join(c.root, "home"), Dir: filepath.Join(c.root, "code"), Env: func(string) string { return "" }}
	c.setup = Setup{Site: at, Scope: User}
	for _, dir := range []string{at.Home, at.Dir} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	var last []func()
	for l := range strings.Lines(string(a.Comment)) {
		words := strings.Fields(l)
		if len(words) == 0 || strings.HasPrefix(l, "#") {
			continue
		}
		switch words[0] {
		case "setup":
			for _, client := range List() {
				if client.Name == words[1] {
					c.setup.Client = client
				}
			}
		case "project":
			c.setup.Scope, c.setup.Git = Project, filepath.Join(c.root, "git")
			if err := os.Mkdir(c.setup.Git, 0o700); err != nil {
				t.Fatal(err)
			}
		case "toolset":
			c.setup.Toolset = words[1]
			c.wanted.Server.Args = append(c.wanted.Server.Args, "--toolset", words[1])
		case "http":
			c.wanted.Server = Server{URL: words[1]}
		case "headers":
			c.wanted.Server.Headers = HeadersCommand("")
		case "hooks":
			c.wanted.NoHooks = false
		case "store":
			c.setup.Store = strings.Join(words[1:], " ")
		case "notes":
			c.wanted.Instructions = true
		case "allow":
			c.wanted.Allow = true
		case "crlf":
			c.crlf = true
		case "again":
			c.again = true
		default:
			last = append(last, func() { c.prepare(words) })
		}
	}
	for _, f := range inside(a, "before") {
		data := f.Data
		if c.crlf {
			data = bytes.ReplaceAll(data, []byte("\n"), []byte("\r\n"))
		}
		name := filepath.Join(c.root, strings.TrimPrefix(f.Name, "before/"))
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, data, 0o640); err != nil {
			t.Fatal(err)
		}
	}
	for _, do := range last {
		do()
	}
	c.before, c.dirs = c.files(), c.folders()
	return c
}

// prepare changes an initial file in a way that an archive cannot represent.
func (c *attempt) prepare(words []string) {
	c.t.Helper()
	name := filepath.Join(c.root, words[1])
	data, _ := os.ReadFile(name)
	var err error
	switch words[0] {
	case "cut": // remove the newline at the end of the last line
		err = os.WriteFile(name, bytes.TrimSpace(data), 0o640)
	case "mark": // begin the file with a byte-order mark
		err = os.WriteFile(name, append([]byte("\ufeff"), data...), 0o640)
	case "readonly":
		err = os.Chmod(name, 0o440)
	case "link": // the words are: link NAME TARGET
		if err = os.MkdirAll(filepath.Dir(name), 0o700); err == nil {
			err = os.Symlink(words[2], name)
		}
	case "folder":
		err = os.MkdirAll(name, 0o700)
	default:
		c.t.Fatalf("unknown word: %s", words[0])
	}
	if err != nil {
		c.t.Fatal(err)
	}
}

// files returns the bytes, modes and link targets of all files below the root, except backups.
func (c *attempt) files() map[string]string {
	c.t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(c.root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, _ := filepath.Rel(c.root, path)
		fi, err := d.Info()
		if err != nil {
			return err
		}
		if d.Type() == fs.ModeSymlink {
			all[name], err = os.Readlink(path)
			return err
		}
		data, err := os.ReadFile(path)
		all[name] = fi.Mode().String() + "\n" + string(data)
		return err
	})
	if err != nil {
		c.t.Fatal(err)
	}
	return all
}

// folders returns the names of all folders below the root.
func (c *attempt) folders() (names []string) {
	c.t.Helper()
	err := filepath.WalkDir(c.root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			names = append(names, path)
		}
		return err
	})
	if err != nil {
		c.t.Fatal(err)
	}
	return names
}

// run sets up the client twice, and then removes the setup. It returns the files that the first setup changed, or its
// error as a file named "refused".
func (c *attempt) run() (after []txtar.File) {
	c.t.Helper()
	err := c.apply(c.setup.Add(c.wanted))
	now := c.files()
	if err != nil {
		if d := cmp.Diff(c.before, now); d != "" {
			c.t.Errorf("refused, but something changed:\n%s", d)
		}
		text := strings.ReplaceAll(err.Error(), c.root+"/", "")
		return []txtar.File{{Name: "refused", Data: []byte(text + "\n")}}
	}
	after = c.changed(now)
	if again, err := c.setup.Add(c.wanted); err != nil || len(again) > 0 {
		c.t.Errorf("the second setup changes %d files, %v", len(again), err)
	}
	if hooks, err := c.setup.Hooks(); err != nil || !c.wanted.NoHooks && hooks.Have != hooks.Want {
		c.t.Errorf("the hooks are %+v, %v", hooks, err)
	}
	if err := c.apply(c.setup.Remove()); err != nil {
		c.t.Errorf("the setup was not removed: %v", err)
	}
	if c.again {
		if _, leads, err := c.setup.Entry(); leads != nil || err != nil {
			c.t.Errorf("after the removal there is an entry: %v, %v", leads, err)
		}
		if hooks, err := c.setup.Hooks(); hooks.Some || err != nil {
			c.t.Errorf("after the removal there are hooks: %v, %v", hooks, err)
		}
	} else if d := cmp.Diff(c.before, c.files()); d != "" {
		c.t.Errorf("after the removal, the files differ from the initial ones:\n%s", d)
	} else if d := cmp.Diff(c.dirs, c.folders()); d != "" {
		c.t.Errorf("after the removal, the folders differ from the initial ones:\n%s", d)
	}
	return after
}

func (c *attempt) apply(changes []*Change, err error) error {
	for _, change := range changes {
		if err == nil {
			err = change.Apply()
		}
	}
	return err
}

// changed returns the files that differ from the initial ones. It checks that backups equal the initial files, and that
// modes and links have not changed.
func (c *attempt) changed(now map[string]string) (files []txtar.File) {
	c.t.Helper()
	err := filepath.WalkDir(c.root, func(path string, d fs.DirEntry, err error) error {
		name, _ := filepath.Rel(c.root, path)
		text, is := now[name]
		if err != nil || !is || text == c.before[name] {
			return err
		}
		if of, kept := strings.CutSuffix(name, ".before-mailtree"); kept {
			if in, git := strings.CutPrefix(of, "git/mailtree/"); git {
				of = "code/" + in
			} else if c.setup.Scope == Project {
				c.t.Errorf("%s is in the code base", name)
			}
			if text != c.before[of] {
				c.t.Errorf("%s differs from the original %s", name, of)
			}
			return nil
		}
		mode, data, _ := strings.Cut(text, "\n")
		was, _, ok := strings.Cut(c.before[name], "\n")
		if !ok { // a new file; if it is one of the user's own, other users must not be able to read it
			was = map[Scope]string{User: "-rw-------", Project: "-rw-r--r--"}[c.setup.Scope]
		}
		if was != mode {
			c.t.Errorf("%s has the mode %s now, %s before", name, mode, was)
		}
		if c.crlf && c.before[name] != "" {
			if strings.Count(data, "\n") != strings.Count(data, "\r\n") {
				c.t.Errorf("%s mixes line ends: %q", name, data)
			}
			data = strings.ReplaceAll(data, "\r\n", "\n")
		}
		if strings.Contains(c.before[name], "\ufeff") != strings.HasPrefix(data, "\ufeff") {
			c.t.Errorf("%s lost or gained a byte-order mark", name)
		}
		data = strings.TrimPrefix(data, "\ufeff")
		if data == string(c.setup.plugin()) {
			data = "(clients/plugin/opencode.js)"
		}
		if !strings.HasSuffix(data, "\n") {
			data += "\n"
		}
		files = append(files, txtar.File{Name: "after/" + name, Data: []byte(data)})
		return nil
	})
	if err != nil {
		c.t.Fatal(err)
	}
	return files
}

// TestRemoveAfterEdits checks that removing a setup preserves the changes that the user has made since the setup.
func TestRemoveAfterEdits(t *testing.T) {
	t.Parallel()
	for _, of := range []struct{ client, file, before, after string }{
		{"cursor", ".cursor/mcp.json", `{"a": 1}`, `{"a": 2}`},
		{"codex", ".codex/config.toml", "a = 1\n", "a = 2\n"},
	} {
		c := begin(t, &txtar.Archive{
			Comment: []byte("setup " + of.client),
			Files:   []txtar.File{{Name: "before/home/" + of.file, Data: []byte(of.before)}},
		})
		if err := c.apply(c.setup.Add(c.wanted)); err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(c.setup.Home, of.file)
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		data = bytes.Replace(data, []byte("1"), []byte("2"), 1)
		if err := os.WriteFile(name, data, 0o640); err != nil {
			t.Fatal(err)
		}
		if err := c.apply(c.setup.Remove()); err != nil {
			t.Fatal(err)
		}
		if data, err = os.ReadFile(name); err != nil || string(data) != of.after {
			t.Errorf("%s is %q, %v; want %q", of.file, data, err, of.after)
		}
	}
}

// TestChangedMeanwhile checks that a setup does not overwrite a change that another program made after the setup had
// read the file.
func TestChangedMeanwhile(t *testing.T) {
	t.Parallel()
	c := begin(t, &txtar.Archive{
		Comment: []byte("setup claude"),
		Files:   []txtar.File{{Name: "before/home/.claude.json", Data: []byte("{}\n")}},
	})
	changes, err := c.setup.Add(c.wanted)
	if err != nil || len(changes) != 1 {
		t.Fatalf("%d changes, %v", len(changes), err)
	}
	name := filepath.Join(c.setup.Home, ".claude.json")
	if err := os.WriteFile(name, []byte("{\"new\": 1}\n"), 0o640); err != nil {
		t.Fatal(err)
	}
	if err := changes[0].Apply(); !errors.Is(err, ErrChanged) {
		t.Errorf("Apply returned %v", err)
	}
	if data, err := os.ReadFile(name); err != nil || string(data) != "{\"new\": 1}\n" {
		t.Errorf("the file is %q, %v", data, err)
	}
}

// TestPartsOfOneFile checks that two parts for the same file become a single change, and that they are removed
// together.
func TestPartsOfOneFile(t *testing.T) {
	t.Parallel()
	const before = "{\n  \"a\": { }\n}\n"
	c := begin(t, &txtar.Archive{
		Comment: []byte("setup gemini"),
		Files:   []txtar.File{{Name: "before/home/.gemini/settings.json", Data: []byte(before)}},
	})
	file, err := c.setup.config()
	if err != nil {
		t.Fatal(err)
	}
	form, other := edit.JSON{Comments: true}, edit.Entry{Path: []string{"hooks", "x"}, Keys: []edit.Key{{Name: "on", Value: true}}}
	parts := []part{c.setup.entry(file, c.wanted.Server, false), {
		file:  file,
		put:   func(data []byte) ([]byte, error) { return form.Put(data, other) },
		cut:   func(data []byte) ([]byte, error) { return form.Cut(data, other.Path) },
		ours:  func(data []byte) bool { got, _ := form.Get(data, other.Path); return got != nil },
		empty: form.Empty,
	}}
	changes, err := c.setup.changes(parts, part.putting)
	if err := c.apply(changes, err); err != nil || len(changes) != 1 {
		t.Fatalf("%d changes, %v", len(changes), err)
	}
	data, err := os.ReadFile(file)
	for _, p := range parts {
		if err != nil || !p.ours(data) {
			t.Errorf("the file is %s, %v", data, err)
		}
	}
	changes, err = c.setup.changes(parts, part.cutting)
	if err := c.apply(changes, err); err != nil {
		t.Fatal(err)
	}
	if data, err = os.ReadFile(file); err != nil || string(data) != before {
		t.Errorf("the file is %q, %v", data, err)
	}
}
