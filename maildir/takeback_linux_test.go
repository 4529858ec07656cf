package maildir_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mailtree/fixtures/storetest"
	"mailtree/maildir"
)

// TestJournalOfFailedUndo checks that a failed operation that cannot be rolled back stays in the journal, regardless
// of later writes and commits. The next start must roll it back.
func TestJournalOfFailedUndo(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ harm, mend func(tree, away string) error }{
		// The file that the renewal replaced is missing from staging.
		"the file": {
			func(tree, away string) error { return moveOne(filepath.Join(tree, ".mailtree/tmp"), away) },
			func(tree, away string) error { return moveOne(away, filepath.Join(tree, ".mailtree/tmp")) },
		},
		// The journal record of the rollback cannot be written.
		"the journal": {
			func(tree, away string) error {
				file := filepath.Join(tree, ".mailtree/journal")
				return errors.Join(os.Rename(file, filepath.Join(away, "journal")), os.MkdirAll(filepath.Join(file, "in the way"), 0o700))
			},
			func(tree, _ string) error { return os.RemoveAll(filepath.Join(tree, ".mailtree/journal")) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var h halts
			root, away := filepath.Join(t.TempDir(), "store"), t.TempDir()
			m := &machine{}
			s := storetest.Open(t, storetest.Config{Fail: m.fail, Root: root, Step: h.pass})
			p, err := s.EnsureProject(t.Context(), shop)
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range []string{"Ann", "Bob"} {
				if _, err := p.Agents.Register(t.Context(), maildir.Registration{Program: "x", Model: "y", Task: "z", NameHint: n}); err != nil {
					t.Fatal(err)
				}
			}
			if err := errors.Join(<-claimBeside(t, p, "first"), p.FlushHistory(t.Context())); err != nil {
				t.Fatal(err)
			}

			renamed := h.at(isStep("sync renamed"))
			renewed := claimBeside(t, p, "second")
			<-renamed.reached
			if err := c.harm(p.Dir(), away); err != nil {
				t.Fatal(err)
			}
			mend := breakSync(m)
			close(renamed.goOn)
			if err := <-renewed; !errors.Is(err, maildir.ErrUnavailable) || !strings.Contains(err.Error(), "could not undo its partial changes") {
				t.Errorf("got %v", err)
			}
			mend()
			if err := c.mend(p.Dir(), away); err != nil {
				t.Fatal(err)
			}
			ageAll(t, filepath.Join(p.Dir(), ".mailtree/tmp"))
			if err := maildir.SweepStaging(t.Context(), p); err != nil { // SweepStaging must keep the operation's files
				t.Fatal(err)
			}
			send(t, p, "Ann", maildir.Draft{To: []string{"Bob"}, Subject: "kept", Body: "b"})
			if err := p.FlushHistory(t.Context()); err != nil {
				t.Fatal(err)
			}
			if data, err := os.ReadFile(filepath.Join(p.Dir(), ".mailtree/journal")); err != nil || strings.Count(string(data), `"verb":"renew"`) != 1 {
				t.Errorf("the journal: %v\n%s", err, data)
			}
			s.Stop()

			s = storetest.Open(t, storetest.Config{Root: root})
			p = s.Projects()[0]
			claims, err := p.Claims.List(t.Context(), false)
			if err != nil || len(claims) != 1 || claims[0].Reason != "first" {
				t.Errorf("claims after the next start: %+v %v", claims, err)
			}
			if page := inbox(t, p, "Bob"); page.Total != 1 {
				t.Errorf("inbox: %+v", page)
			}
			if data, err := os.ReadFile(filepath.Join(p.Dir(), ".mailtree/journal")); err != nil || len(data) > 0 {
				t.Errorf("the journal of the next start: %v\n%s", err, data)
			}
		})
	}
}

// moveOne moves the only file in a folder to another folder.
func moveOne(from, to string) error {
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	if len(entries) != 1 {
		return errors.New("not one file")
	}
	return os.Rename(filepath.Join(from, entries[0].Name()), filepath.Join(to, entries[0].Name()))
}
