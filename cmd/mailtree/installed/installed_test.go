package installed

import (
	"os"
	"path/filepath"
	"reflect"
	"sync"
	"testing"

	"mailtree/maildir/storedir"
)

// TestNote checks that each of several concurrent notes is stored exactly once, even if the list ends with a line that
// was cut off.
func TestNote(t *testing.T) {
	t.Parallel()
	store := t.TempDir()
	if err := os.WriteFile(filepath.Join(store, storedir.InstalledFile), []byte(`{"kind":"gua`), 0o600); err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{}
	var wg sync.WaitGroup
	for _, dir := range []string{"/a", "/b", "/c", "/d"} {
		want[dir] = true
		for range 5 {
			wg.Go(func() {
				if err := Note(store, Entry{Kind: Guard, Dir: dir}); err != nil {
					t.Error(err)
				}
			})
		}
	}
	wg.Wait()
	all, err := Read(store)
	got := map[string]bool{}
	for _, e := range all {
		got[e.Dir] = true
	}
	if err != nil || len(all) != len(want) || !reflect.DeepEqual(got, want) {
		t.Errorf("%v, %v", all, err)
	}
	if err := Forget(store); err != nil {
		t.Error(err)
	}
	if all, err := Read(store); err != nil || all != nil {
		t.Errorf("after Forget: %v, %v", all, err)
	}
}

// TestNoStore checks that Note does not create a store.
func TestNoStore(t *testing.T) {
	t.Parallel()
	store := filepath.Join(t.TempDir(), "none")
	if err := Note(store, Entry{Kind: Guard, Dir: "/a"}); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(store); err == nil {
		t.Error("the note created a store")
	}
}
