package guard

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mailtree/maildir/format"
	"mailtree/maildir/storedir"
)

// noon is the time of the edits in these tests.
var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// editScene creates a store with claims, and the following folders of code:
//
//	code          a working tree, the project /code; GreenCastle claims docs, app/*.go and sub/docs for 90 minutes
//	code/nested   a separate project; GreenCastle claims a.txt
//	code/sub      another working tree inside code
//	linked        a linked working tree of code
//	link          a link to code
//	plain         a project without a working tree; GreenCastle claims a.txt
func editScene(t *testing.T) (store, top string) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	store = filepath.Join(dir, "store")
	write := func(file, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	project := func(slug string, claims ...string) {
		t.Helper()
		repo, folder := storedir.Repo(store, slug), filepath.Join(dir, strings.ReplaceAll(slug, "-", "/"))
		write(filepath.Join(repo, format.ProjectFile), string(format.FormatProject(folder, slug, noon)))
		for _, agent := range []string{"GreenCastle", "BlueLake"} {
			write(filepath.Join(repo, format.ProfilePath(agent)), fmt.Sprintf(`{"name": %q}`, agent))
		}
		for i, pattern := range claims {
			c := format.Claim{Pattern: pattern, Agent: "GreenCastle", Exclusive: true, Created: noon, Expires: noon.Add(90 * time.Minute)}
			write(filepath.Join(repo, fmt.Sprintf("claims/%d.json", i)), string(format.FormatClaim(c, nil)))
		}
	}
	project("code", "docs", "app/*.go", "sub/docs")
	project("code-nested", "a.txt")
	project("plain", "a.txt")
	write(filepath.Join(dir, "plain/a.txt"), "")
	for _, args := range []string{
		"init -q code", "-C code -c user.name=N -c user.email=n@example.org commit -q --allow-empty -m one",
		"-C code worktree add -q ../linked", "init -q code/sub",
	} {
		c := exec.Command("git", strings.Fields(args)...)
		c.Dir = dir
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("git %s: %v\n%s", args, err, out)
		}
	}
	for link, to := range map[string]string{"link": "code", "code/free.md": "docs/a.md"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(dir, "code/docs/a.md"), "")
	return store, dir
}

// session returns a function for Edit.Agent that returns the given agent.
func session(agent string) func() (string, error) {
	return func() (string, error) { return agent, nil }
}

// TestCheckEdit checks that the same claims apply to an edit as to a commit of the file, regardless of the path
// through which the file is edited.
func TestCheckEdit(t *testing.T) {
	t.Parallel()
	store, dir := editScene(t)
	for _, c := range []struct {
		paths, agent, env string
		in                string // the folder in which the agent works
		deny, warn        string // part of the expected text; "" if none is expected
	}{
		{paths: "code/docs/a.md", agent: "BlueLake", deny: "GreenCastle holds docs for another 1h 30m"},
		{paths: "code/docs/new/b.md", agent: "BlueLake", deny: "  docs/new/b.md\n"},
		{paths: "code/app/a.go", agent: "BlueLake", deny: "claim file: " + store},
		{paths: "code/app/a.go", agent: "BlueLake", deny: `  MAILTREE_ME=BlueLake mailtree send GreenCastle --project ` + dir + `/code -m "May I have app/*.go?"` + "\n"},
		{paths: "code/app/a.go", agent: "BlueLake", in: "code/app", deny: `  MAILTREE_ME=BlueLake mailtree send GreenCastle -m "May I have app/*.go?"` + "\n"},
		{paths: "code/app/a.go", agent: "BlueLake", deny: "Your agent name here is BlueLake."},
		{paths: "code/app/a.py code/docs/../app/b.go", agent: "BlueLake", deny: "  app/b.go\n"},
		{paths: "code/app/a.py", agent: "BlueLake"},
		{paths: "code/docs/a.md", agent: "GreenCastle"},
		{paths: "code/docs/a.md", agent: "greencastle"},
		{paths: "link/docs/a.md", agent: "BlueLake", deny: "GreenCastle holds docs"},
		{paths: "linked/docs/a.md", agent: "BlueLake", deny: "GreenCastle holds docs"},
		{paths: "code/free.md", agent: "BlueLake", deny: "  docs/a.md\n"},
		{paths: "code/nested/a.txt", agent: "BlueLake", deny: "  a.txt\n"},
		{paths: "code/sub/docs/a.md", agent: "BlueLake"},
		{paths: "plain/a.txt", agent: "BlueLake", deny: "GreenCastle holds a.txt"},
		{paths: "elsewhere/a.txt", agent: "BlueLake"},
		{paths: "code/docs/a.md", deny: "Your agent name is unknown"},
		{paths: "code/docs/a.md", env: "GUARD_UNKNOWN=warn", warn: "This is only a warning: the edit continues."},
		{paths: "code/docs/a.md", agent: "BlueLak", env: "GUARD_UNKNOWN=warn", deny: "Your name is BlueLak, but the project has no such agent. Did you mean BlueLake?"},
		{paths: "code/docs/a.md", agent: "BlueLake", env: "CLAIM_MODE=warn", warn: "GreenCastle holds docs"},
		{paths: "code/docs/a.md", agent: "BlueLake", env: "CLAIM_MODE=off"},
		{paths: "code/docs/a.md", agent: "BlueLake", env: "GUARD_MODE=off", deny: "GreenCastle holds docs"},
		{paths: "code/docs/a.md", agent: "BlueLake", env: "CLAIM_MODE=blok", warn: `NOT CHECKED: CLAIM_MODE is "blok"`},
	} {
		e := Edit{Store: store, Usual: store, Agent: session(c.agent), Env: strings.Fields(c.env), Now: noon, Dir: filepath.Join(dir, c.in)}
		for p := range strings.FieldsSeq(c.paths) {
			e.Paths = append(e.Paths, dir+"/"+p)
		}
		deny, warn := CheckEdit(e)
		for _, says := range []struct{ what, got, want string }{{"deny", deny, c.deny}, {"warn", warn, c.warn}} {
			if !strings.Contains(says.got, says.want) || says.want == "" && says.got != "" {
				t.Errorf("%s by %q, %s: %s is %q, want %q", c.paths, c.agent, c.env, says.what, says.got, says.want)
			}
		}
	}
	e := Edit{Store: store, Agent: session("BlueLake"), Paths: []string{dir + "/code/docs/a.md"}, Now: noon.Add(2 * time.Hour)}
	if deny, warn := CheckEdit(e); deny != "" || warn != "" {
		t.Errorf("the claim has expired: %q, %q", deny, warn)
	}
}
