package claim

import (
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mailtree/maildir/format"
	"mailtree/maildir/glob"
	"mailtree/maildir/tree"
)

func claimTree(t *testing.T, files map[string]string) *tree.Tree {
	t.Helper()
	dir := t.TempDir()
	for _, d := range []string{tree.TmpDir, format.ClaimsDir} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for p, text := range files {
		save(t, filepath.Join(dir, p), text)
	}
	tr, err := tree.Open(dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tr.Close() })
	return tr
}

func save(t *testing.T, name, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}

func claimText(pattern string) string {
	return `{"path":"` + pattern + `","agent":"GreenCastle","created":"2026-01-01T00:00:00Z","expires":"2096-01-01T00:00:00Z"}`
}

// patterns returns the claims' patterns and paths, sorted.
func patterns(claims []Row) []string {
	var out []string
	for _, c := range claims {
		out = append(out, c.Pattern+" "+c.Path)
	}
	slices.Sort(out)
	return out
}

// TestClaimFiles checks that Files reads the valid claims in a folder that contains all kinds of files, and reports the
// invalid claim files.
func TestClaimFiles(t *testing.T) {
	tr := claimTree(t, map[string]string{
		"claims/a.json":             claimText("a"),
		"claims/deep/er/b.json":     claimText("b"),
		"claims/gone.json":          claimText("gone"),
		"claims/gone.released":      "",
		"claims/odd.json":           claimText("odd"), // odd.released is a folder, so it is not a release mark
		"claims/odd.released/x":     "",
		"claims/big.json":           claimText("big"), // big.released is too large, so it is not a release mark
		"claims/big.released":       strings.Repeat("x", format.MaxSmall+1),
		"claims/bad.json":           claimText("../.."),
		"claims/empty.json":         "",
		"claims/huge.json":          claimText("h") + strings.Repeat(" ", format.MaxSmall),
		"claims/.hidden.json":       claimText("hidden"),
		"claims/.git/x.json":        claimText("git"),
		"claims/x.json~":            claimText("backup"),
		"claims/README":             "",
		"other/c.json":              claimText("c"),
		"claims/full.json":          claimText("full") + strings.Repeat(" ", format.MaxSmall-len(claimText("full"))),
		"claims/deep/gone.json":     claimText("gone too"),
		"claims/deep/gone.released": "2026-01-01T00:00:00Z\n",
		"claims/" + strings.Repeat("d/", 40) + "in.json": claimText("in"),
	})
	at := filepath.Join(tr.Dir(), format.ClaimsDir)
	if err := errors.Join(syscall.Mkfifo(filepath.Join(at, "fifo.json"), 0o600), os.Symlink("a.json", filepath.Join(at, "link.json")),
		os.Symlink("../other", filepath.Join(at, "linked")), syscall.Mkfifo(filepath.Join(at, "fifo.released"), 0o600),
		os.Symlink("a.json", filepath.Join(at, "a.released"))); err != nil {
		t.Fatal(err)
	}
	claims, bad, err := Files(tr, nil)
	if err != nil {
		t.Fatal(err)
	}
	deep := "claims/" + strings.Repeat("d/", 40)
	want := []string{"a claims/a.json", "b claims/deep/er/b.json", "big claims/big.json", "full claims/full.json", "in " + deep + "in.json", "odd claims/odd.json"}
	if diff := cmp.Diff(want, patterns(claims)); diff != "" {
		t.Error(diff)
	}
	var paths []string
	for _, b := range bad {
		paths = append(paths, b.Path)
	}
	if diff := cmp.Diff([]string{"claims/bad.json", "claims/empty.json", "claims/fifo.json", "claims/huge.json", "claims/link.json"}, paths); diff != "" {
		t.Error(diff)
	}
	only, _, _ := Files(tr, func(c *Row) bool { return c.Pattern == "b" })
	if diff := cmp.Diff([]string{"b claims/deep/er/b.json"}, patterns(only)); diff != "" {
		t.Error(diff)
	}
	none := claimTree(t, nil)
	if err := os.Remove(filepath.Join(none.Dir(), format.ClaimsDir)); err != nil {
		t.Fatal(err)
	}
	if claims, bad, err := Files(none, nil); claims != nil || bad != nil || err != nil {
		t.Error(claims, bad, err)
	}
}

// TestBlocking checks which claims block a change.
func TestBlocking(t *testing.T) {
	now := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	claim := func(agent, pattern string, day int) Row {
		c := format.Claim{
			Pattern:   pattern,
			Agent:     agent,
			Exclusive: true,
			Created:   now.AddDate(0, 0, -day),
			Expires:   now.Add(time.Hour),
		}
		return Row{Claim: c, Path: "claims/" + agent + pattern + ".json"}
	}
	with := func(c Row, change func(*Row)) Row { change(&c); return c }
	for _, c := range []struct {
		name   string
		claims []Row
		agent  string
		paths  string
		fold   bool
		want   string
	}{
		{"a file", []Row{claim("A", "src/a.go", 1)}, "B", "src/a.go src/b.go", false, "A src/a.go: src/a.go"},
		{"a folder", []Row{claim("A", "src", 1)}, "B", "src/a.go x/src", false, "A src: src/a.go"},
		{"a glob", []Row{claim("A", "src/**/*.go", 1)}, "B", "src/x/y/a.go src/a.py srcs/a.go", false, "A src/**/*.go: src/x/y/a.go"},
		{"the root's files", []Row{claim("A", "*.go", 1)}, "B", "a.go src/a.go", false, "A *.go: a.go"},
		{"everything", []Row{claim("A", ".", 1)}, "B", "a.go", false, "A .: a.go"},
		{"not clean", []Row{claim("A", "./src//x/", 1)}, "B", "src/x/a.go", false, "A ./src//x/: src/x/a.go"},
		{"a hidden folder", []Row{claim("A", ".github/*", 1)}, "B", ".github/x", false, "A .github/*: .github/x"},
		{"braces", []Row{claim("A", "{a,b/c}/*.go", 1)}, "B", "b/c/x.go", false, "A {a,b/c}/*.go: b/c/x.go"},
		{"escaped", []Row{claim("A", `src/\*`, 1)}, "B", "src/* src/a", false, `A src/\*: src/*`},
		{"one's own", []Row{claim("A", "src", 1)}, "A", "src/a.go", false, ""},
		{"nobody known", []Row{claim("A", "src", 1)}, "", "src/a.go", false, "A src: src/a.go"},
		{"shared", []Row{with(claim("A", "src", 1), func(c *Row) { c.Exclusive = false })}, "B", "src/a.go", false, ""},
		{"expired now", []Row{with(claim("A", "src", 1), func(c *Row) { c.Expires = now })}, "B", "src/a.go", false, ""},
		{"released", []Row{with(claim("A", "src", 1), func(c *Row) { c.Released = true })}, "B", "src/a.go", false, ""},
		{"case counts", []Row{claim("A", "Src/*.GO", 1)}, "B", "src/a.go", false, ""},
		{"case does not", []Row{claim("A", "Src/*.GO", 1), claim("C", "GRÖSSE", 2)}, "B", "src/a.go größe grösse/X", true, "C GRÖSSE: grösse/X; A Src/*.GO: src/a.go"},
		{"earliest first", []Row{claim("A", "src", 1), claim("C", "src", 2)}, "B", "src/a.go", false, "C src: src/a.go; A src: src/a.go"},
		{"mine is older", []Row{claim("A", "src", 1), claim("B", "src/a.go", 2)}, "B", "src/a.go src/b.go", false, "A src: src/b.go"},
		{"mine is younger", []Row{claim("A", "src", 2), claim("B", "src/a.go", 1)}, "B", "src/a.go", false, "A src: src/a.go"},
		{"mine is as old, my name later", []Row{claim("A", "src", 1), claim("B", "src", 1)}, "B", "src/a.go", false, "A src: src/a.go"},
		{"mine is as old, my name first", []Row{claim("A", "src", 1), claim("B", "src", 1)}, "A", "src/a.go", false, ""},
		{"mine is older but shared", []Row{claim("A", "src", 1), with(claim("B", "src", 2), func(c *Row) { c.Exclusive = false })}, "B", "src/a.go", false, "A src: src/a.go"},
		{"no path", []Row{claim("A", "**", 1)}, "B", "", false, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			i := NewIntent(c.agent, strings.Fields(c.paths), c.fold, now)
			var got []string
			for _, b := range i.Blocking(c.claims) {
				got = append(got, b.Claim.Agent+" "+b.Claim.Pattern+": "+strings.Join(b.Paths, " "))
			}
			if strings.Join(got, "; ") != c.want {
				t.Errorf("got %q, want %q", strings.Join(got, "; "), c.want)
			}
		})
	}
}

// TestConcernsMisses checks that Concerns does not rule out any claim that covers a path.
func TestConcernsMisses(t *testing.T) {
	now := time.Now()
	parts := []string{"a", "B", ".", "..", "", "*", "**", "?", "{a,B}", "[ab]", `\a`, "ä", "Ä", "\u212a", "k", ".x"}
	random := rand.New(rand.NewPCG(5, 6))
	word := func(n int) string {
		var e []string
		for range 1 + random.IntN(n) {
			e = append(e, parts[random.IntN(len(parts))])
		}
		return strings.Join(e, "/")
	}
	covered := 0
	for range 200_000 {
		p, f, fold := word(4), word(4), random.IntN(2) == 0
		if strings.ContainsAny(f, `*?{[\`) || !fs.ValidPath(f) || f == "." {
			continue
		}
		c, err := glob.Compile(p, fold)
		if err != nil || !c.Covers(f) {
			continue
		}
		covered++
		row := Row{Claim: format.Claim{Pattern: p, Agent: "A", Exclusive: true, Expires: now.Add(time.Hour)}}
		if !NewIntent("B", []string{f}, fold, now).Concerns(&row) {
			t.Fatalf("%q covers %q (fold %v), but was left out", p, f, fold)
		}
	}
	if covered < 1000 {
		t.Errorf("only %d tried", covered)
	}
}

// TestClaimFilesUnlistable checks that Files returns an error for a claims folder that cannot be listed, instead of
// treating the folder as empty.
func TestClaimFilesUnlistable(t *testing.T) {
	tr := claimTree(t, map[string]string{"claims/a.json": claimText("a")})
	calls := 0
	tr.Fail = func(p string) error {
		if p == format.ClaimsDir {
			if calls++; calls > 1 {
				return syscall.EACCES
			}
		}
		return nil
	}
	if claims, _, err := Files(tr, nil); !errors.Is(err, syscall.EACCES) {
		t.Errorf("%v, %v", claims, err)
	}
}
