package guard

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mailtree/maildir/claim"
	"mailtree/maildir/format"
	"mailtree/maildir/storedir"
	"mailtree/maildir/tree"
)

// TestStoppedNoted checks that the store records changes that the guard stops. It must record neither warnings nor
// checks that a user runs.
func TestStoppedNoted(t *testing.T) {
	t.Parallel()
	store, dir := editScene(t)
	if err := os.MkdirAll(filepath.Join(storedir.Repo(store, "code"), tree.TmpDir), 0o700); err != nil {
		t.Fatal(err)
	}
	noted := func() []claim.Stopped {
		t.Helper()
		at, err := storedir.OpenTree(store, "code", 0)
		if err != nil {
			t.Fatal(err)
		}
		defer at.Close()
		return claim.ReadStopped(t.Context(), at)
	}
	e := Edit{Store: store, Agent: session("BlueLake"), Paths: []string{dir + "/code/docs/a.md"}, Now: noon}
	q := Question{
		Store:   store,
		Project: "code",
		Dir:     filepath.Join(dir, "code"),
		Env:     append(os.Environ(), "AGENT_NAME=BlueLake"),
		Now:     noon,
		Paths:   []string{"app/a.go"},
	}
	warn := []string{"CLAIM_MODE=warn"}
	byHand, warned := q, e
	byHand.ByHand, warned.Env = true, warn
	Check(t.Context(), byHand, &bytes.Buffer{})
	CheckEdit(warned)
	if all := noted(); len(all) != 0 {
		t.Errorf("nothing was stopped: %+v", all)
	}

	CheckEdit(e)
	stranger := e
	stranger.Agent, stranger.Now = session("Strange"), noon.Add(time.Minute)
	CheckEdit(stranger)
	if v := Check(t.Context(), q, &bytes.Buffer{}); v.Code != Stop {
		t.Fatalf("the verdict is %+v", v)
	}
	docs, app := format.ClaimsDir+"/0.json", format.ClaimsDir+"/1.json"
	want := []claim.Stopped{
		{At: noon, Agent: "BlueLake", Doing: "change", File: app, Paths: []string{"app/a.go"}},
		{At: noon.Add(time.Minute), Doing: "edit", File: docs, Paths: []string{"docs/a.md"}},
		{At: noon, Agent: "BlueLake", Doing: "edit", File: docs, Paths: []string{"docs/a.md"}},
	}
	if diff := cmp.Diff(want, noted()); diff != "" {
		t.Error(diff)
	}
}
