package maildir_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"mailtree/maildir"
	"mailtree/maildir/claim"
	"mailtree/maildir/format"
	"mailtree/maildir/glob"
)

// claimFiles writes the files of n live claims by several agents into the tree, and waits until they are indexed.
func claimFiles(tb testing.TB, p *maildir.Project, n int) {
	tb.Helper()
	dir := filepath.Join(p.Dir(), "claims")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		tb.Fatal(err)
	}
	now := time.Now()
	for i := range n {
		data, err := json.Marshal(map[string]any{"path": claimed(i), "agent": fmt.Sprintf("Agent%02d", i%50), "exclusive": true, "reason": "because",
			"created": format.FormatTime(now.Add(-time.Duration(i) * time.Second)), "expires": format.FormatTime(now.Add(24 * time.Hour))})
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, fmt.Sprintf("%05d.json", i)), data, 0o600)
		}
		if err != nil {
			tb.Fatal(err)
		}
	}
	if err := p.Rescan(tb.Context()); err != nil {
		tb.Fatal(err)
	}
}

// claimed returns the pattern of the i-th claim. There are four forms of patterns, all in the same folder.
func claimed(i int) string {
	return fmt.Sprintf([]string{"src/pkg%03d/file%d.go", "src/pkg%03d/**/%d_test.go", "src/pkg%03d/{a,b}/part%d*", "src/**/deep%03d/x%d.go"}[i%4], i/40, i)
}

// BenchmarkClaim measures a claim while there are many other live claims. For comparison, it measures the same claim
// without other claims in the same run.
func BenchmarkClaim(b *testing.B) {
	for _, n := range []int{0, 10_000} {
		p := project(b, kept(b), "Ann")
		claimFiles(b, p, n)
		if err := p.FlushHistory(b.Context()); err != nil { // excludes the commit of the files from the measurement
			b.Fatal(err)
		}
		b.Run(fmt.Sprintf("live=%d/conflicts", n), func(b *testing.B) {
			for b.Loop() {
				if _, err := p.Box("Ann", format.Origin{}).Claim(b.Context(), claim.Request{Patterns: []string{"**/own.c"}, DryRun: true}); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("live=%d/whois", n), func(b *testing.B) {
			for b.Loop() {
				if _, err := p.Agents.Whois(b.Context(), "Ann"); err != nil {
					b.Fatal(err)
				}
			}
		})
		for _, c := range []struct{ what, pattern string }{{"path", "lib/own%d.go"}, {"glob", "src/pkg*/own%d.[ch]"}} {
			b.Run(fmt.Sprintf("live=%d/%s", n, c.what), func(b *testing.B) {
				i := 0
				for b.Loop() {
					r, err := p.Box("Ann", format.Origin{}).Claim(b.Context(), claim.Request{Patterns: []string{fmt.Sprintf(c.pattern, i)}})
					if err != nil || len(r.Granted) != 1 {
						b.Fatal("not granted", err)
					}
					i++
				}
			})
		}
	}
}

// BenchmarkCovers measures matching 100 paths against 10,000 patterns, both case-sensitively and case-insensitively.
// The "compile" case measures the cost of compiling the patterns. For comparison, another case compares only the
// first ten letters of each pair.
func BenchmarkCovers(b *testing.B) {
	paths := make([]string, 100)
	for i := range paths {
		paths[i] = fmt.Sprintf("src/pkg%03d/some/where/file%d.go", i*3, i)
	}
	for _, fold := range []bool{false, true} {
		all := make([]*glob.Pattern, 10_000)
		b.Run(fmt.Sprintf("compile/fold=%v", fold), func(b *testing.B) {
			for b.Loop() {
				for i := range all {
					all[i], _ = glob.Compile(claimed(i), fold)
				}
			}
		})
		b.Run(fmt.Sprintf("covers/fold=%v", fold), func(b *testing.B) {
			n := 0
			for b.Loop() {
				for _, p := range all {
					for _, path := range paths {
						if p.Covers(path) {
							n++
						}
					}
				}
			}
		})
	}
	b.Run("ceiling", func(b *testing.B) {
		patterns := make([]string, 10_000)
		for i := range patterns {
			patterns[i] = claimed(i)
		}
		n := 0
		for b.Loop() {
			for _, p := range patterns {
				for _, path := range paths {
					if p[:10] == path[:10] {
						n++
					}
				}
			}
		}
	})
}
