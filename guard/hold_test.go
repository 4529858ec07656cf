package guard

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mailtree/maildir/format"
	"mailtree/maildir/storedir"
)

// TestHeld checks which edits a hold on BlueLake in the project "code" stops, and what the agent is told.
func TestHeld(t *testing.T) {
	t.Parallel()
	store, dir := editScene(t)
	const says = "mailtree guard: robin holds BlueLake: wait for me\n"
	h := format.Hold{By: "robin", Reason: "wait for me", Since: noon.Add(-time.Hour), Until: noon.Add(90 * time.Minute)}
	valid := string(format.FormatHold(h, nil))
	for _, c := range []struct {
		name, file  string // the content of the hold's file; "" if there is none
		path, agent string
		env         string
		later       time.Duration
		deny, warn  string // part of the expected text; "" if none is expected
	}{
		{name: "a file that nobody claims", file: valid, path: "code/free", agent: "BlueLake", deny: says},
		{name: "the time left", file: valid, path: "code/free", agent: "BlueLake", deny: "The hold ends in 1h 30m, at 2026-01-01 13:30 UTC"},
		{name: "whom to ask", file: valid, path: "code/free", agent: "BlueLake",
			deny: "To continue earlier, ask robin with your mail tool or this command:\n  MAILTREE_ME=BlueLake mailtree send robin --project " + dir + `/code -m "May I continue?"` + "\n"},
		{name: "a file that another agent claims", file: valid, path: "code/docs/a.md", agent: "BlueLake", deny: says},
		{name: "the name in another case", file: valid, path: "code/free", agent: "bluelake", deny: says},
		{name: "a linked working tree", file: valid, path: "linked/free", agent: "BlueLake", deny: says},
		{name: "another project in the folder", file: valid, path: "code/nested/b.txt", agent: "BlueLake", deny: says},
		{name: "another working tree in the folder", file: valid, path: "code/sub/a", agent: "BlueLake"},
		{name: "a file outside of the project", file: valid, path: "plain/b.txt", agent: "BlueLake"},
		{name: "another agent", file: valid, path: "code/free", agent: "GreenCastle"},
		{name: "an unknown agent", file: valid, path: "code/free"},
		{name: "no hold", path: "code/free", agent: "BlueLake"},
		{name: "an invalid file", file: `{"by": "robin"}`, path: "code/free", agent: "BlueLake"},
		{name: "it has ended", file: valid, path: "code/free", agent: "BlueLake", later: 90 * time.Minute},
		{name: "just before its end", file: valid, path: "code/free", agent: "BlueLake", later: 90*time.Minute - 1, deny: says},
		{name: "only a warning", file: valid, path: "code/free", agent: "BlueLake", env: "CLAIM_MODE=warn", warn: "This is only a warning: the edit continues."},
		{name: "bypassed", file: valid, path: "code/free", agent: "BlueLake", env: "GUARD_BYPASS=1"},
		{name: "hostile texts", file: strings.Replace(valid, "wait for me", `a\u001b[31mb\u202e`, 1), path: "code/free", agent: "BlueLake",
			deny: `robin holds BlueLake: a\x1b[31mb\u202e"` + "\n"},
	} {
		path := filepath.Join(storedir.Repo(store, "code"), format.HoldPath("BlueLake"))
		if c.file == "" {
			if err := os.RemoveAll(path); err != nil {
				t.Fatal(err)
			}
		} else if err := os.WriteFile(path, []byte(c.file), 0o600); err != nil {
			t.Fatal(err)
		}
		deny, warn := CheckEdit(Edit{
			Store: store,
			Usual: store,
			Agent: session(c.agent),
			Paths: []string{filepath.Join(dir, c.path)},
			Env:   strings.Fields(c.env),
			Now:   noon.Add(c.later),
			Dir:   dir,
		})
		if !strings.Contains(deny, c.deny) || c.deny == "" && deny != "" || !strings.Contains(warn, c.warn) || c.warn == "" && warn != "" {
			t.Errorf("%s: deny %q, want %q; warn %q, want %q", c.name, deny, c.deny, warn, c.warn)
		}
	}
}

// TestHeldCommits checks that a hold stops only commits that change files in the folder of its project.
func TestHeldCommits(t *testing.T) {
	t.Parallel()
	store, dir := editScene(t)
	path := filepath.Join(storedir.Repo(store, "code-nested"), format.HoldPath("BlueLake"))
	h := format.Hold{By: "robin", Since: noon, Until: noon.Add(time.Hour)}
	if err := os.WriteFile(path, format.FormatHold(h, nil), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		project, paths, agent string
		code                  int
	}{
		{"code-nested", "", "BlueLake", Pass}, // the commit does not affect the project's folder
		{"code-nested", "nested/b.txt", "BlueLake", Stop},
		{"code", "nested/b.txt", "BlueLake", Stop}, // the project's folder is in the working tree
		{"code", "free", "BlueLake", Pass},
		{"code", "", "BlueLake", Pass},
		{"code-nested", "", "GreenCastle", Pass},
	} {
		var text bytes.Buffer
		q := Question{
			Store: store, Project: c.project, Paths: strings.Fields(c.paths), Dir: filepath.Join(dir, "code"),
			Env: []string{"AGENT_NAME=" + c.agent, "PATH=" + os.Getenv("PATH")}, Now: noon,
		}
		v := Check(t.Context(), q, &text)
		if v.Code != c.code || (v.Held != nil) != (c.code == Stop) {
			t.Errorf("%s, %q, %s: %+v\n%s", c.project, c.paths, c.agent, v, &text)
		}
	}
}
