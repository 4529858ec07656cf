package maildir_test

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"testing"
	"time"

	"mailtree/fixtures/storetest"
	"mailtree/maildir"
	"mailtree/maildir/format"
)

// TestDayFolders checks that a day's folder contains at most a thousand messages. Further messages must be stored in
// its subfolders 1, 2, …, even after a restart, and must be readable like any other message.
func TestDayFolders(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	folder := path.Dir(format.InboxPath("Bob", "x", now))
	root, total := filepath.Join(t.TempDir(), "store"), 0
	for _, step := range []struct {
		fill string // folder that contains the old messages
		old  int
		want []string // expected folders of the new messages
	}{
		{"", 0, []string{folder}},
		{folder, 998, []string{folder, folder + "/1"}},
		{folder + "/1", 999, []string{folder + "/2", folder + "/2"}},
	} {
		for i := range step.old {
			save(t, filepath.Join(root, "projects", format.Slug(shop), "repo"), step.fill, fmt.Sprintf("old-%d-%d", total, i), now)
		}
		s := storetest.Open(t, storetest.Config{Root: root, Now: func() time.Time { return now }})
		p := projectIn(t, s.Store)
		for _, name := range []string{"Ann", "Bob"} {
			if err := p.Agents.EnsureAgent(t.Context(), name, maildir.Registration{}); err != nil {
				t.Fatal(err)
			}
		}
		a := author{t, p}
		for _, want := range step.want {
			m := send(t, p, "Ann", maildir.Draft{To: []string{"Bob"}, Subject: "New", Body: "b"})
			if got := want + "/" + m.ID + ".md"; !a.exists(got) {
				t.Errorf("there is no %s", got)
			}
			if got := format.CanonicalPath(m.ID, m.Created); !a.exists(got) {
				t.Errorf("there is no %s, although the folder is not full", got)
			}
			total++
		}
		total += step.old
		if got := inbox(t, p, "Bob").Total; got != total {
			t.Errorf("the inbox has %d messages, want %d", got, total)
		}
		s.Stop()
	}
}

// save writes an inbox copy for Bob into the tree, as a user would.
func save(t *testing.T, tree, folder, id string, created time.Time) {
	t.Helper()
	a := filepath.Join(tree, folder)
	text := fmt.Sprintf("---json\n{\"id\": %q, \"from\": \"Ann\", \"to\": [\"Bob\"], \"subject\": \"Old\", \"created\": %q}\n---\n",
		id, created.Format(time.RFC3339))
	if err := os.MkdirAll(a, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(a, id+".md"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
