package maildir_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"mailtree/fixtures/storetest"
	"mailtree/maildir/storedir"
)

// setPath edits the path in a machine's project.json, and waits until the server has indexed the edit.
func (m sharer) setPath(t *testing.T, path string) {
	t.Helper()
	text := fmt.Sprintf(`{"human_key": %q, "slug": "s", "created": "2026-01-01T00:00:00Z"}`+"\n", path)
	if err := os.WriteFile(filepath.Join(m.p.Dir(), "project.json"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := m.p.Rescan(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestSyncKeepsPath checks that each machine reads a shared project's path from shared.json, and that neither an edit
// of project.json nor a merge changes the path. When the sync is off, the machine that created the project must use
// the path in project.json.
func TestSyncKeepsPath(t *testing.T) {
	t.Parallel()
	a, b := sharedByTwo(t)
	paths := func(ofA, ofB string) {
		t.Helper()
		if a.p.HumanKey() != ofA || b.p.HumanKey() != ofB {
			t.Errorf("the paths are %s and %s, want %s and %s", a.p.HumanKey(), b.p.HumanKey(), ofA, ofB)
		}
	}
	for _, m := range []sharer{a, b} {
		m.setPath(t, "/abs/edited/"+m.p.Slug)
		paths(shop, "/abs/path/1/shop")
	}
	level(t, a, b)
	paths(shop, "/abs/path/1/shop")
	for _, m := range []sharer{a, b} {
		if err := m.p.Sync.Set(false); err != nil {
			t.Fatal(err)
		}
	}
	paths(shop, "/abs/path/1/shop")
	a.setPath(t, shop)
	for _, on := range []bool{true, false} { // the path is the same in both files
		if err := a.p.Sync.Set(on); err != nil {
			t.Fatal(err)
		}
	}
	a.setPath(t, "/abs/moved")
	b.setPath(t, "/abs/moved")
	paths("/abs/moved", "/abs/path/1/shop")
}

// TestSyncPathOfOlderVersion checks a project whose sync was turned on by an older version. The server must add the
// project's path to shared.json, so that a merge cannot change the path.
func TestSyncPathOfOlderVersion(t *testing.T) {
	t.Parallel()
	root := filepath.Join(t.TempDir(), "store")
	s := storetest.Open(t, storetest.Config{Root: root, Sync: onlyAsked})
	slug := projectIn(t, s.Store).Slug
	s.Stop()
	if err := storedir.SaveShared(filepath.Join(root, "projects", slug), storedir.Shared{On: true}); err != nil {
		t.Fatal(err)
	}
	s = storetest.Open(t, storetest.Config{Root: root, Sync: onlyAsked})
	if shared, err := storedir.LoadShared(root, slug); err != nil || shared.Key != shop || !shared.On {
		t.Errorf("shared.json contains %+v, %v", shared, err)
	}
	m := sharer{s, s.Projects()[0]}
	m.setPath(t, "/abs/merged")
	if m.p.HumanKey() != shop {
		t.Errorf("the path is %s", m.p.HumanKey())
	}
}
