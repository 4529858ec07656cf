package maildir

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
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

	"mailtree/maildir/glob"
)

// claimTexts are what a claim file may hold; also the seeds of the fuzz test.
var claimTexts = []string{
	"{\n  \"path\": \"app/api/*.py\",\n  \"agent\": \"GreenCastle\",\n  \"exclusive\": true,\n  \"reason\": \"migrations\",\n  \"created\": \"2026-01-01T00:00:00.123456Z\",\n  \"expires\": \"2096-01-01T00:00:00Z\"\n}\n",
	`{"path":"a","agent":"A","exclusive":false,"reason":"","created":"2026-01-01T00:00:00+02:00","expires":"2096-01-01T00:00:00Z"}`,
	`{"path":"a","agent":"A","created":"2026-01-01T00:00:00Z","expires":"2096-01-01T00:00:00Z","more":[1,{"x":null}]}`,
	`{"path":"a","path":"b","agent":"A","created":"2026-01-01T00:00:00Z","expires":"2096-01-01T00:00:00Z"}`,
	`{"path":"a","agent":"A","created":"2026-01-01T00:00:00Z","expires":"2096-01-01T00:00:00Z",}`,
	`{"path":"a","agent":"A","created":"2026-01-01T00:00:00Z","expires":"2096-01-01T00:00:00Z"} x`,
	`{"path":"a","agent":"A","created":"2026-01-01T00:00:00Z" "expires":"2096-01-01T00:00:00Z"}`,
	`{"path":"a","agent":"A","exclusive":truex,"created":"2026-01-01T00:00:00Z","expires":"2096-01-01T00:00:00Z"}`,
	`{"path":"a","agent":"A","exclusive":null,"created":"2026-01-01T00:00:00Z","expires":"2096-01-01T00:00:00Z"}`,
	`{"path":"a\u002f*","agent":"A","created":"2026-01-01T00:00:00Z","expires":"2096-01-01T00:00:00Z"}`,
	`{"path":"../..","agent":"A","created":"2026-01-01T00:00:00Z","expires":"2096-01-01T00:00:00Z"}`,
	`{"path":"a..b/c","agent":"A","created":"2026-01-01T00:00:00Z","expires":"2096-01-01T00:00:00Z"}`,
	`{"path":"{a,}","agent":"A","created":"2026-01-01T00:00:00Z","expires":"2096-01-01T00:00:00Z"}`,
	`{"path":"a","agent":"A/B","created":"2026-01-01T00:00:00Z","expires":"2096-01-01T00:00:00Z"}`,
	`{"path":"a","agent":"A","created":"","expires":"2096-01-01T00:00:00Z"}`,
	`{"path":"a","agent":"A","created":"2026-01-01","expires":"2096-01-01T00:00:00Z"}`,
	"{\"path\":\"a\x01\",\"agent\":\"A\",\"created\":\"2026-01-01T00:00:00Z\",\"expires\":\"2096-01-01T00:00:00Z\"}",
	"{\"path\":\"a\xff\",\"agent\":\"A\",\"created\":\"2026-01-01T00:00:00Z\",\"expires\":\"2096-01-01T00:00:00Z\"}",
	`{"path":"C:/x","agent":"A","created":"2026-01-01T00:00:00Z","expires":"2096-01-01T00:00:00Z"}`,
	`{"path":"a","agent":"A","Path":"b","created":"2026-01-01T00:00:00Z","expires":"2096-01-01T00:00:00Z"}`,
	"", "{}", "[]", "null", "{", `{"path"`, `{"path":"`, "\ufeff{}",
}

// FuzzScanClaim holds the quick reader against the exact one, and what the cache keeps against what was read.
func FuzzScanClaim(f *testing.F) {
	for _, s := range claimTexts {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		want, wantErr := ParseClaim(data)
		got, err := scanClaim(data)
		if fmt.Sprint(err) != fmt.Sprint(wantErr) {
			t.Fatalf("%q: error %v, want %v", data, err, wantErr)
		}
		if err != nil {
			return
		}
		if got != want {
			t.Fatalf("%q:\n%v\n%v", data, got, want)
		}
		var kept Claim
		if !readClaim(writeClaim(&got), &kept) || kept != got {
			t.Fatalf("%q: kept as %v, was %v", data, kept, got)
		}
	})
}

// TestQuickClaim tells that the files which the server writes take the short way.
func TestQuickClaim(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)
	for _, p := range []string{"src/a.go", "app/**/*.py", "größe/?.md"} {
		want := Claim{p, "GreenCastle", true, "why: <not>", now, now.Add(time.Hour)}
		var got Claim
		if !quickClaim(string(formatClaim(want, nil)), &got) || got != want {
			t.Errorf("%s: %v", p, got)
		}
	}
}

func claimTree(t *testing.T, files map[string]string) *Tree {
	t.Helper()
	dir := t.TempDir()
	for _, d := range []string{tmpDir, claimsDir} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for p, text := range files {
		save(t, filepath.Join(dir, p), text)
	}
	tr, err := OpenTree(dir, 0)
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

// patterns lists what was found, sorted.
func patterns(claims []ClaimRow) []string {
	var out []string
	for _, c := range claims {
		out = append(out, c.Pattern+" "+c.Path)
	}
	slices.Sort(out)
	return out
}

// TestClaimFiles reads a folder with everything in it.
func TestClaimFiles(t *testing.T) {
	tr := claimTree(t, map[string]string{
		"claims/a.json":             claimText("a"),
		"claims/deep/er/b.json":     claimText("b"),
		"claims/gone.json":          claimText("gone"),
		"claims/gone.released":      "",
		"claims/odd.json":           claimText("odd"), // its mark is a folder, which is none
		"claims/odd.released/x":     "",
		"claims/big.json":           claimText("big"), // as is one that is too large
		"claims/big.released":       strings.Repeat("x", MaxSmall+1),
		"claims/bad.json":           claimText("../.."),
		"claims/empty.json":         "",
		"claims/huge.json":          claimText("h") + strings.Repeat(" ", MaxSmall),
		"claims/.hidden.json":       claimText("hidden"),
		"claims/.git/x.json":        claimText("git"),
		"claims/x.json~":            claimText("backup"),
		"claims/README":             "",
		"other/c.json":              claimText("c"),
		"claims/full.json":          claimText("full") + strings.Repeat(" ", MaxSmall-len(claimText("full"))),
		"claims/deep/gone.json":     claimText("gone too"),
		"claims/deep/gone.released": "2026-01-01T00:00:00Z\n",
		"claims/" + strings.Repeat("d/", maxClaimDepth) + "in.json":    claimText("in"),
		"claims/" + strings.Repeat("d/", maxClaimDepth+1) + "out.json": claimText("out"),
	})
	at := filepath.Join(tr.Dir(), claimsDir)
	if err := errors.Join(syscall.Mkfifo(filepath.Join(at, "fifo.json"), 0o600), os.Symlink("a.json", filepath.Join(at, "link.json")),
		os.Symlink("../other", filepath.Join(at, "linked")), syscall.Mkfifo(filepath.Join(at, "fifo.released"), 0o600), os.Symlink("a.json", filepath.Join(at, "a.released"))); err != nil {
		t.Fatal(err)
	}
	claims, bad, err := tr.ClaimFiles(nil)
	if err != nil {
		t.Fatal(err)
	}
	deep := "claims/" + strings.Repeat("d/", maxClaimDepth)
	want := []string{"a claims/a.json", "b claims/deep/er/b.json", "big claims/big.json", "full claims/full.json", "in " + deep + "in.json", "odd claims/odd.json"}
	if diff := cmp.Diff(want, patterns(claims)); diff != "" {
		t.Error(diff)
	}
	var paths []string
	for _, b := range bad {
		paths = append(paths, b.Path)
	}
	if diff := cmp.Diff([]string{"claims/bad.json", deep + "d", "claims/empty.json", "claims/fifo.json", "claims/huge.json", "claims/link.json"}, paths); diff != "" {
		t.Error(diff)
	}
	only, _, _ := tr.ClaimFiles(func(c *ClaimRow) bool { return c.Pattern == "b" })
	if diff := cmp.Diff([]string{"b claims/deep/er/b.json"}, patterns(only)); diff != "" {
		t.Error(diff)
	}
	none := claimTree(t, nil)
	if err := os.Remove(filepath.Join(none.Dir(), claimsDir)); err != nil {
		t.Fatal(err)
	}
	if claims, bad, err := none.ClaimFiles(nil); claims != nil || bad != nil || err != nil {
		t.Error(claims, bad, err)
	}
}

// TestClaimFilesCached makes changes of all kinds and holds each reading with what was kept against one without.
func TestClaimFilesCached(t *testing.T) {
	files := map[string]string{}
	for i := range 2 * keepClaimFiles {
		files[fmt.Sprintf("claims/%d/c%04d.json", i%3, i)] = claimText(fmt.Sprint("p", i))
	}
	tr := claimTree(t, files)
	later := time.Now().Add(time.Minute) // everything has settled
	read := func(cached bool) ([]string, []Problem) {
		t.Helper()
		if !cached {
			if err := os.Remove(filepath.Join(tr.Dir(), claimCachePath)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Fatal(err)
			}
		}
		claims, bad, err := tr.claimFiles(nil, later)
		if err != nil {
			t.Fatal(err)
		}
		return patterns(claims), bad
	}
	random := rand.New(rand.NewPCG(1, 2))
	name := func() string {
		i := random.IntN(2 * keepClaimFiles)
		return filepath.Join(tr.Dir(), fmt.Sprintf("claims/%d/c%04d.json", i%3, i))
	}
	changes := map[string]func(string) error{
		"in place, same size and mtime": func(p string) error {
			fi, err := os.Stat(p)
			if err != nil {
				return nil
			}
			data, _ := os.ReadFile(p)
			return errors.Join(os.WriteFile(p, []byte(strings.Replace(string(data), `"p`, `"q`, 1)), 0o600), os.Chtimes(p, fi.ModTime(), fi.ModTime()))
		},
		"replaced": func(p string) error {
			return errors.Join(os.WriteFile(p+"~", []byte(claimText("new")), 0o600), os.Rename(p+"~", p))
		},
		"removed":    func(p string) error { os.Remove(p); return nil },
		"released":   func(p string) error { return os.WriteFile(ReleasedMark(p), nil, 0o600) },
		"taken back": func(p string) error { os.Remove(ReleasedMark(p)); return nil },
		"damaged":    func(p string) error { return os.WriteFile(p, []byte("{"), 0o600) },
		"a link":     func(p string) error { os.Remove(p); return os.Symlink("c0000.json", p) },
		"a fifo":     func(p string) error { os.Remove(p); return syscall.Mkfifo(p, 0o600) },
		"moved":      func(p string) error { os.Rename(p, filepath.Join(tr.Dir(), claimsDir, filepath.Base(p))); return nil },
	}
	read(true)
	if _, err := os.Stat(filepath.Join(tr.Dir(), claimCachePath)); err != nil {
		t.Fatal("nothing was kept:", err)
	}
	again := claimScan{t: tr, start: later, cache: tr.readClaimCache()}
	if err := again.scan(claimsDir, 0); err != nil || again.news > 0 || len(again.found) != len(files) {
		t.Fatalf("%d things were read again, %d claims found (%v)", again.news, len(again.found), err)
	}
	for range 4 {
		for what, change := range changes {
			if err := change(name()); err != nil {
				t.Fatal(what, err)
			}
			got, gotBad := read(true)
			want, wantBad := read(false)
			if diff := cmp.Diff(want, got) + cmp.Diff(wantBad, gotBad); diff != "" {
				t.Fatalf("%s: %s", what, diff)
			}
		}
	}
}

// TestClaimCacheKeepsOnlySettled tells that what was written just now is read again.
func TestClaimCacheKeepsOnlySettled(t *testing.T) {
	files := map[string]string{}
	for i := range keepClaimFiles {
		files[fmt.Sprintf("claims/c%04d.json", i)] = claimText("p")
	}
	tr := claimTree(t, files)
	if _, _, err := tr.claimFiles(nil, time.Now().Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(tr.Dir(), claimCachePath)); !errors.Is(err, fs.ErrNotExist) {
		t.Error("kept:", err)
	}
}

// TestClaimCacheDamaged gives the reader caches that are none.
func TestClaimCacheDamaged(t *testing.T) {
	files := map[string]string{}
	for i := range keepClaimFiles {
		files[fmt.Sprintf("claims/c%04d.json", i)] = claimText(fmt.Sprint("p", i))
	}
	tr := claimTree(t, files)
	later := time.Now().Add(time.Minute)
	claims, _, err := tr.claimFiles(nil, later)
	if err != nil {
		t.Fatal(err)
	}
	want, file := patterns(claims), filepath.Join(tr.Dir(), claimCachePath)
	good, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	body := len(claimCacheHead) + 4
	random := rand.New(rand.NewPCG(3, 4))
	for i := range 300 {
		data := slices.Clone(good)
		switch i % 3 {
		case 0: // any byte, and the checksum tells
			data[random.IntN(len(data))] ^= byte(1 + random.IntN(255))
		case 1:
			data = data[:random.IntN(len(data))]
		case 2: // a checksum that is right over lengths that are not: what is read must not run away
			data = data[:body+random.IntN(len(data)-body)]
			for range 3 {
				if len(data) > body {
					data[body+random.IntN(min(200, len(data)-body))] ^= byte(1 + random.IntN(255))
				}
			}
			binary.LittleEndian.PutUint32(data[len(claimCacheHead):], crc32.ChecksumIEEE(data[body:]))
			save(t, file, string(data))
			tr.readClaimCache()
			continue
		}
		save(t, file, string(data))
		claims, bad, err := tr.claimFiles(nil, later)
		if diff := cmp.Diff(want, patterns(claims)); diff != "" || bad != nil || err != nil {
			t.Fatal(i, bad, err, diff)
		}
	}
}

// TestBlocking is the guard's question, row by row.
func TestBlocking(t *testing.T) {
	now := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	claim := func(agent, pattern string, day int) ClaimRow {
		return ClaimRow{Claim: Claim{pattern, agent, true, "", now.AddDate(0, 0, -day), now.Add(time.Hour)}, Path: "claims/" + agent + pattern + ".json"}
	}
	with := func(c ClaimRow, change func(*ClaimRow)) ClaimRow { change(&c); return c }
	for _, c := range []struct {
		name   string
		claims []ClaimRow
		agent  string
		paths  string
		fold   bool
		want   string
	}{
		{"a file", []ClaimRow{claim("A", "src/a.go", 1)}, "B", "src/a.go src/b.go", false, "A src/a.go: src/a.go"},
		{"a folder", []ClaimRow{claim("A", "src", 1)}, "B", "src/a.go x/src", false, "A src: src/a.go"},
		{"a glob", []ClaimRow{claim("A", "src/**/*.go", 1)}, "B", "src/x/y/a.go src/a.py srcs/a.go", false, "A src/**/*.go: src/x/y/a.go"},
		{"the root's files", []ClaimRow{claim("A", "*.go", 1)}, "B", "a.go src/a.go", false, "A *.go: a.go"},
		{"everything", []ClaimRow{claim("A", ".", 1)}, "B", "a.go", false, "A .: a.go"},
		{"not clean", []ClaimRow{claim("A", "./src//x/", 1)}, "B", "src/x/a.go", false, "A ./src//x/: src/x/a.go"},
		{"a hidden folder", []ClaimRow{claim("A", ".github/*", 1)}, "B", ".github/x", false, "A .github/*: .github/x"},
		{"braces", []ClaimRow{claim("A", "{a,b/c}/*.go", 1)}, "B", "b/c/x.go", false, "A {a,b/c}/*.go: b/c/x.go"},
		{"escaped", []ClaimRow{claim("A", `src/\*`, 1)}, "B", "src/* src/a", false, `A src/\*: src/*`},
		{"one's own", []ClaimRow{claim("A", "src", 1)}, "A", "src/a.go", false, ""},
		{"nobody known", []ClaimRow{claim("A", "src", 1)}, "", "src/a.go", false, "A src: src/a.go"},
		{"shared", []ClaimRow{with(claim("A", "src", 1), func(c *ClaimRow) { c.Exclusive = false })}, "B", "src/a.go", false, ""},
		{"expired now", []ClaimRow{with(claim("A", "src", 1), func(c *ClaimRow) { c.Expires = now })}, "B", "src/a.go", false, ""},
		{"released", []ClaimRow{with(claim("A", "src", 1), func(c *ClaimRow) { c.Released = true })}, "B", "src/a.go", false, ""},
		{"case counts", []ClaimRow{claim("A", "Src/*.GO", 1)}, "B", "src/a.go", false, ""},
		{"case does not", []ClaimRow{claim("A", "Src/*.GO", 1), claim("C", "GRÖSSE", 2)}, "B", "src/a.go größe grösse/X", true, "C GRÖSSE: grösse/X; A Src/*.GO: src/a.go"},
		{"earliest first", []ClaimRow{claim("A", "src", 1), claim("C", "src", 2)}, "B", "src/a.go", false, "C src: src/a.go; A src: src/a.go"},
		{"mine is older", []ClaimRow{claim("A", "src", 1), claim("B", "src/a.go", 2)}, "B", "src/a.go src/b.go", false, "A src: src/b.go"},
		{"mine is younger", []ClaimRow{claim("A", "src", 2), claim("B", "src/a.go", 1)}, "B", "src/a.go", false, "A src: src/a.go"},
		{"mine is as old, my name later", []ClaimRow{claim("A", "src", 1), claim("B", "src", 1)}, "B", "src/a.go", false, "A src: src/a.go"},
		{"mine is as old, my name first", []ClaimRow{claim("A", "src", 1), claim("B", "src", 1)}, "A", "src/a.go", false, ""},
		{"mine is older but shared", []ClaimRow{claim("A", "src", 1), with(claim("B", "src", 2), func(c *ClaimRow) { c.Exclusive = false })}, "B", "src/a.go", false, "A src: src/a.go"},
		{"no path", []ClaimRow{claim("A", "**", 1)}, "B", "", false, ""},
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

// TestConcernsMisses tells that the quick look leaves out no claim that covers a path.
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
		row := ClaimRow{Claim: Claim{Pattern: p, Agent: "A", Exclusive: true, Expires: now.Add(time.Hour)}}
		if !NewIntent("B", []string{f}, fold, now).Concerns(&row) {
			t.Fatalf("%q covers %q (fold %v), and was left out", p, f, fold)
		}
	}
	if covered < 1000 {
		t.Errorf("only %d tried", covered)
	}
}
