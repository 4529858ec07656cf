package maildir_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mailtree/fixtures/storetest"
	"mailtree/maildir"
	"mailtree/maildir/claim"
	"mailtree/maildir/format"
)

// claimBeside makes Ann claim or renew a.go in a separate goroutine. The channel receives the error.
func claimBeside(t *testing.T, p *maildir.Project, reason string) <-chan error {
	answer := make(chan error, 1)
	go func() {
		_, err := p.Box("Ann", format.Origin{}).Claim(t.Context(), claim.Request{Patterns: []string{"a.go"}, Reason: reason})
		answer <- err
	}()
	return answer
}

// TestLeftovers checks that a running server removes leftovers of failed operations and killed processes from
// staging. Files that another process may still be writing must be kept.
func TestLeftovers(t *testing.T) {
	t.Parallel()
	var h halts
	m := &machine{}
	p := project(t, storetest.Config{Fail: m.fail, Step: h.pass}, "Ann", "Bob")
	tmp := filepath.Join(p.Dir(), ".mailtree/tmp")
	if err := errors.Join(<-claimBeside(t, p, "first"), p.FlushHistory(t.Context())); err != nil {
		t.Fatal(err)
	}

	// A renewal fails after its file was renamed into place. The renewal is not undone, because the user has edited the
	// file since then. The file that the renewal replaced remains in staging.
	renamed := h.at(isStep("sync renamed"))
	renewed := claimBeside(t, p, "second")
	<-renamed.reached
	files, err := filepath.Glob(filepath.Join(p.Dir(), "claims/*.json"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v %v", files, err)
	}
	data, err := os.ReadFile(files[0])
	if err == nil {
		err = os.WriteFile(files[0], []byte(strings.Replace(string(data), "second", "by hand", 1)), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	mend := breakSync(m)
	close(renamed.goOn)
	if err := <-renewed; !errors.Is(err, maildir.ErrUnavailable) {
		t.Errorf("got %v", err)
	}
	mend()
	if left := staged(t, tmp); len(left) != 1 {
		t.Fatalf("in staging: %v", left)
	}

	for _, name := range []string{"BlueLake-1-2", "folder"} { // files left behind by killed processes
		if err := os.MkdirAll(filepath.Join(tmp, name, "deep"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	ageAll(t, tmp)
	if err := os.WriteFile(filepath.Join(tmp, "BlueLake-3-4"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	before := staged(t, tmp)
	if err := maildir.SweepStaging(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if after := staged(t, tmp); len(before) != len(after)+3 || !slices.Contains(after, "BlueLake-3-4") {
		t.Errorf("of the files %v, %v are left", before, after)
	}
	if diff := cmp.Diff([]string{"BlueLake-3-4"}, staged(t, tmp)); diff != "" {
		t.Error(diff)
	}
}

// staged lists the files in staging.
func staged(t *testing.T, tmp string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(tmp)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// ageAll moves the times of all files in staging back by two hours.
func ageAll(t *testing.T, tmp string) {
	t.Helper()
	then := time.Now().Add(-2 * time.Hour)
	for _, name := range staged(t, tmp) {
		if err := os.Chtimes(filepath.Join(tmp, name), then, then); err != nil {
			t.Fatal(err)
		}
	}
}
