package maildir_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mailtree/fixtures/storetest"
	"mailtree/maildir"
	"mailtree/maildir/format"
)

// touched sends n messages to Bob and touches a mark next to each copy. It returns the paths of the marks.
func touched(t *testing.T, p *maildir.Project, n int) (marks []string) {
	t.Helper()
	for range n {
		m := send(t, p, "Ann", maildir.Draft{To: []string{"Bob"}, Subject: "s", Body: "b"})
		d, err := p.Box("Bob", format.Origin{}).Delivery(t.Context(), m.ID)
		if err != nil {
			t.Fatal(err)
		}
		marks = append(marks, format.ReadMark(d.CopyPath))
	}
	if err := p.FlushHistory(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, mark := range marks {
		if err := os.WriteFile(filepath.Join(p.Dir(), mark), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return marks
}

// areTimed reports whether all of the marks contain a time.
func areTimed(t *testing.T, p *maildir.Project, marks []string) bool {
	t.Helper()
	for _, mark := range marks {
		if st, err := maildir.TreeOf(p).Stat(mark); err != nil {
			t.Fatal(err)
		} else if st.Size == 0 {
			return false
		}
	}
	return true
}

// countCommits returns the number of all commits of a project, and the number of commits in which the server wrote
// times into marks.
func countCommits(t *testing.T, p *maildir.Project) (all, stamps int) {
	t.Helper()
	out, err := exec.Command("git", "-C", p.Dir(), "log", "--format=%s").Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		all++
		if strings.HasPrefix(line, "stamp") {
			stamps++
		}
	}
	return all, stamps
}

// TestTouchMany checks that only a few operations are needed to write the times into many marks created with touch,
// and that empty marks do not have to be committed first.
func TestTouchMany(t *testing.T) {
	t.Parallel()
	p := project(t, storetest.Config{NoWatcher: true}, "Ann", "Bob")
	const n = maildir.MostStamped + 44
	marks := touched(t, p, n)
	before, _ := countCommits(t, p)
	p.Edited(marks, false)
	await(t, func() bool { return areTimed(t, p, marks) && p.Stalled() == 0 && maildir.Later(p) == 0 })
	if err := p.FlushHistory(t.Context()); err != nil {
		t.Fatal(err)
	}
	after, stamps := countCommits(t, p)
	if made := after - before; made > 12 || stamps == 0 {
		t.Errorf("%d marks made %d commits, %d of them with times", n, made, stamps)
	}
	if c := inbox(t, p, "Bob").Counts; c.Unread != 0 {
		t.Errorf("%+v", c)
	}
}

// TestTouchedMeanwhile checks that marks get their time at the next start if they were created while no server was
// running, or if they had no time yet when the server stopped.
func TestTouchedMeanwhile(t *testing.T) {
	t.Parallel()
	root := filepath.Join(t.TempDir(), "store")
	s := storetest.Open(t, storetest.Config{Root: root, NoWatcher: true, NoCheck: true})
	p := projectIn(t, s.Store, "Ann", "Bob")
	marks := touched(t, p, 5)
	s.StopBy(time.Now().Add(time.Hour))
	p.Edited(marks, false)
	if err := p.Rescan(t.Context()); err != nil {
		t.Fatal(err)
	}
	await(t, func() bool { return p.Stalled() == 0 && maildir.Later(p) == 0 })
	s.Stop()
	if areTimed(t, p, marks[:1]) {
		t.Error("a server that is stopping has written times")
	}
	s = storetest.Open(t, storetest.Config{Root: root, NoWatcher: true})
	p = s.Projects()[0]
	await(t, func() bool { return areTimed(t, p, marks) })
}
