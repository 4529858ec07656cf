package resume

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func folder(t *testing.T) *Folder {
	return &Folder{Dir: filepath.Join(t.TempDir(), "sessions"), Key: []byte("key"), Most: 3}
}

var params = json.RawMessage(`{"protocolVersion":"2025-06-18"}`)

// save stores a new session whose last use was the given duration ago.
func save(t *testing.T, f *Folder, owner string, ago time.Duration) (id string) {
	t.Helper()
	id = f.NewID(owner)
	if err := f.Save(id, Session{Initialize: params}); err != nil {
		t.Fatal(err)
	}
	at := time.Now().Add(-ago)
	if err := os.Chtimes(filepath.Join(f.Dir, id), at, at); err != nil {
		t.Fatal(err)
	}
	return id
}

func loads(f *Folder, id, owner string) bool {
	_, ok := f.Load(id, owner)
	return ok
}

// TestSession checks that loading a session returns the state that was saved last, and that only the file's owner may
// read the file.
func TestSession(t *testing.T) {
	f := folder(t)
	id := save(t, f, "me", 0)
	want := Session{Initialize: params, URIs: []string{"resource://inbox/BlueLake"}}
	if err := f.Save(id, want); err != nil {
		t.Fatal(err)
	}
	got, ok := f.Load(id, "me")
	if diff := cmp.Diff(want, got); diff != "" || !ok {
		t.Errorf("loaded %t: %s", ok, diff)
	}
	for _, p := range []struct {
		name string
		mode os.FileMode
	}{{f.Dir, 0o700 | os.ModeDir}, {filepath.Join(f.Dir, id), 0o600}} {
		if info, err := os.Stat(p.name); err != nil || info.Mode() != p.mode {
			t.Errorf("%s: %v (%v), want mode %v", p.name, info.Mode(), err, p.mode)
		}
	}
	if entries, err := os.ReadDir(f.Dir); err != nil || len(entries) != 1 {
		t.Errorf("files: %v (%v)", entries, err)
	}
	f.Remove(id)
	if loads(f, id, "me") {
		t.Error("loaded after it was removed")
	}
}

// TestOwner checks that an id is invalid if it has been changed, if it belongs to another owner or if the key differs.
// A path must not be a valid id, even if it is signed.
func TestOwner(t *testing.T) {
	f := folder(t)
	id := save(t, f, "me", 0)
	nonce, signature, _ := strings.Cut(id, ".")
	below := "guests/" + strings.Repeat("X", nonceLen-len("guests/"))
	below += "." + f.sign(below, "me")
	if err := os.Mkdir(filepath.Join(f.Dir, "guests"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(f.Dir, below), []byte(`{"initialize":{}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	other := *f
	other.Key = []byte("other key")
	for _, tt := range []struct {
		f         *Folder
		id, owner string
		want      bool
	}{
		{f, id, "me", true},
		{f, id, "you", false},
		{f, id, "", false},
		{&other, id, "me", false},
		{f, nonce, "me", false},
		{f, nonce + "." + signature[1:], "me", false},
		{f, nonce + ".", "me", false},
		{f, "", "me", false},
		{f, below, "me", false},
		{&Folder{Key: f.Key}, id, "me", false},
	} {
		if got := loads(tt.f, tt.id, tt.owner); got != tt.want {
			t.Errorf("%q of %q was loaded: %t", tt.id, tt.owner, got)
		}
	}
}

// TestRoom checks that sessions that have been unused for a day are dropped. If there are more than Most, the least
// recently used ones must be dropped too.
func TestRoom(t *testing.T) {
	f := folder(t)
	old := save(t, f, "me", Lasts+time.Minute)
	if loads(f, old, "me") {
		t.Error("loaded after a day")
	}
	a, b, c := save(t, f, "me", 2*time.Hour), save(t, f, "me", 3*time.Hour), save(t, f, "me", time.Hour)
	if _, err := os.Lstat(filepath.Join(f.Dir, old)); err == nil {
		t.Error("the file still exists after a day")
	}
	f.Use(b)
	d := save(t, f, "me", 0)
	got := fmt.Sprint(loads(f, a, "me"), loads(f, b, "me"), loads(f, c, "me"), loads(f, d, "me"))
	if want := "false true true true"; got != want {
		t.Errorf("a, b, c, d are there: %s, want %s", got, want)
	}
	if err := f.Save(d, Session{Initialize: params, URIs: make([]string, maxURIs+1)}); err != nil || loads(f, d, "me") {
		t.Errorf("loaded with too many URIs (%v)", err)
	}
}
