package maildir_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mailtree/fixtures/storetest"
	"mailtree/maildir"
	"mailtree/maildir/format"
)

// TestCheckCopies checks that CheckCopies finds an edit to any copy's header or body, and a missing canonical file. It
// must not report intended differences, or differences only in layout.
func TestCheckCopies(t *testing.T) {
	t.Parallel()
	p := project(t, storetest.Config{NoWatcher: true, NoCheck: true}, "Ann", "Bob", "Cid")
	paths := map[string]string{} // keyed by "subject kind"
	for _, subject := range []string{
		"as delivered", "inbox header", "inbox body", "outbox header", "canonical", "gone", "all gone but Cid's", "laid out",
	} {
		m := send(t, p, "Ann", maildir.Draft{To: []string{"Bob"}, BCC: []string{"Cid"}, Subject: subject, Body: "text"})
		paths[subject+" canonical"] = format.CanonicalPath(m.ID, m.Created)
		paths[subject+" outbox"] = format.OutboxPath("Ann", m.ID, m.Created)
		paths[subject+" Bob"] = format.InboxPath("Bob", m.ID, m.Created)
		paths[subject+" Cid"] = format.InboxPath("Cid", m.ID, m.Created)
	}
	dir := p.Dir()
	edit := func(path, old, new string) {
		name := filepath.Join(dir, paths[path])
		data, err := os.ReadFile(name)
		if err != nil || !strings.Contains(string(data), old) {
			t.Fatalf("%s: %q is not in %q, %v", path, old, data, err)
		}
		if err := os.WriteFile(name, []byte(strings.Replace(string(data), old, new, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	edit("inbox header Bob", `"importance": "normal"`, `"importance": "high"`)
	edit("inbox body Cid", "text", "other")
	edit("outbox header outbox", `"to": ["Bob"]`, `"to": ["Bob"], "mine": true`)
	edit("canonical canonical", "text", "other")
	edit("laid out Bob", `"to": ["Bob"]`, `"to":   [ "Bob" ]`)
	for _, path := range []string{"gone canonical", "all gone but Cid's canonical", "all gone but Cid's outbox", "all gone but Cid's Bob"} {
		if err := os.Remove(filepath.Join(dir, paths[path])); err != nil {
			t.Fatal(err)
		}
	}
	got, err := maildir.CheckCopies(t.Context(), maildir.TreeOf(p))
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]string{}
	for name, path := range paths {
		names[path] = name
	}
	named := func(paths []string) (all []string) {
		for _, path := range paths {
			all = append(all, names[path])
		}
		return all
	}
	edited := []string{"outbox header outbox", "canonical outbox", "inbox header Bob", "canonical Bob", "inbox body Cid", "canonical Cid"}
	if diff := cmp.Diff(edited, named(got.Differing)); diff != "" {
		t.Errorf("edited: %s", diff)
	}
	if diff := cmp.Diff([]string{"gone outbox", "all gone but Cid's Cid"}, named(got.Orphaned)); diff != "" {
		t.Errorf("orphaned: %s", diff)
	}
}
