package indexer

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"mailtree/maildir"
)

// Trees of benchmarks are never deleted between cases: ext4 then scans past freed inodes and the next case looks ten times
// slower (LIMITS.md). They lie in -scratch, which the caller clears.
var (
	large   = flag.Bool("large", false, "also rebuild 100,000 messages and search 1,000,000")
	scratch = flag.String("scratch", "", "where benchmarks keep their trees; \"\" for a folder that stays in the system's temporary one")
)

func benchDir(b *testing.B) string {
	b.Helper()
	if *scratch != "" {
		if err := os.MkdirAll(*scratch, 0o777); err != nil {
			b.Fatal(err)
		}
	}
	dir, err := os.MkdirTemp(*scratch, "mailtree-bench-")
	if err != nil {
		b.Fatal(err)
	}
	return dir
}

var benchStart = time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)

const benchText = "The parser drops the last token when the buffer ends inside a string; see the trace below for the state it was in.\n"

// benchMessage makes message n of the benchmarks: about 1.5 KB, sixteen agents, every hundredth with a rare word.
func benchMessage(n int) (m *maildir.Message, paths []string) {
	at := benchStart.Add(time.Duration(n) * 13 * time.Second)
	from, to := fmt.Sprintf("Agent%02d", n%16), fmt.Sprintf("Agent%02d", (n*7+1)%16)
	body := fmt.Sprintf("# Report %d\n\n", n)
	for i := range 11 {
		body += fmt.Sprintf("%d word%d ", i, (n*31+i*17)%5000) + benchText
	}
	if n%100 == 0 {
		body += "zirconium"
	}
	m = &maildir.Message{ID: fmt.Sprintf("msg_%s_%016x", at.Format("20060102"), n), ThreadID: fmt.Sprintf("T-%d", n/8), Project: "/bench", From: from, To: []string{to},
		Subject: fmt.Sprintf("Report %d of the parser", n), Created: at, Importance: maildir.Normal, Body: body}
	day := at.Format("2006/01/02/")
	return m, []string{"messages/" + day + m.ID + ".md", "agents/" + from + "/outbox/" + day + m.ID + ".md", "agents/" + to + "/inbox/" + day + m.ID + ".md"}
}

// writeBench writes messages from to to of the benchmarks and returns their paths.
func writeBench(b *testing.B, dir string, from, to int) (paths []string) {
	b.Helper()
	made := map[string]bool{}
	for n := from; n < to; n++ {
		m, at := benchMessage(n)
		data := maildir.FormatMessage(m)
		for _, p := range at {
			name := filepath.Join(dir, p)
			if d := filepath.Dir(name); !made[d] {
				made[d] = true
				if err := os.MkdirAll(d, 0o777); err != nil {
					b.Fatal(err)
				}
			}
			if err := os.WriteFile(name, data, 0o666); err != nil {
				b.Fatal(err)
			}
		}
		paths = append(paths, at...)
	}
	return paths
}

func benchTree(b *testing.B, n int) *maildir.Tree {
	b.Helper()
	dir := benchDir(b)
	writeBench(b, dir, 0, n)
	tree, err := maildir.OpenTree(dir, 0)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { tree.Close() })
	return tree
}

func BenchmarkRebuild(b *testing.B) {
	for _, n := range []int{10_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			if n > 10_000 && !*large {
				b.Skip("needs -large")
			}
			trees := map[string]*maildir.Tree{"bench": benchTree(b, n)}
			path := filepath.Join(benchDir(b), "index.sqlite3")
			for b.Loop() {
				if err := Rebuild(b.Context(), path, trees, nil); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "msgs/s")
		})
	}
}

func BenchmarkIngest(b *testing.B) {
	for _, group := range []int{1, 64} {
		b.Run(fmt.Sprint(group), func(b *testing.B) {
			dir := benchDir(b)
			tree, err := maildir.OpenTree(dir, 0)
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { tree.Close() })
			x, err := Open(b.Context(), Config{Path: filepath.Join(benchDir(b), "index.sqlite3")})
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { x.Close() })
			attach(b, x, "bench", tree)
			paths := writeBench(b, dir, 0, 4096)
			done := 0
			for b.Loop() {
				if done == len(paths) {
					b.StopTimer()
					n := done / 3
					paths = append(paths, writeBench(b, dir, n, n+4096)...)
					b.StartTimer()
				}
				ingest(b, x, "bench", paths[done:done+3*group]...)
				done += 3 * group
			}
			b.ReportMetric(float64(group)*float64(b.N)/b.Elapsed().Seconds(), "msgs/s")
		})
	}
}

// benchIndex is an index of n messages.
func benchIndex(b *testing.B, n int) *Index {
	b.Helper()
	tree := benchTree(b, n)
	path := filepath.Join(benchDir(b), "index.sqlite3")
	if err := Rebuild(b.Context(), path, map[string]*maildir.Tree{"bench": tree}, nil); err != nil {
		b.Fatal(err)
	}
	x, err := Open(b.Context(), Config{Path: path})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { x.Close() })
	attach(b, x, "bench", tree)
	return x
}

func BenchmarkInbox(b *testing.B) {
	x := benchIndex(b, 10_000)
	for b.Loop() {
		rows, err := x.Inbox(b.Context(), maildir.InboxQuery{Project: "bench", Agent: "Agent01", UnreadOnly: true, Limit: 20})
		if err != nil || len(rows) != 20 {
			b.Fatal(len(rows), err)
		}
	}
}

func BenchmarkSearch(b *testing.B) {
	sizes := []int{10_000}
	if *large {
		sizes = append(sizes, 1_000_000)
	}
	for _, n := range sizes {
		x := benchIndex(b, n)
		for _, q := range []maildir.SearchQuery{{Match: "parser"}, {Match: "zirconium"}, {Match: `"last token"`}, {Match: "zir*"}, {Match: "wor*"}, {Match: "parser", From: "Agent03"}, {From: "Agent03"}, {Match: "parser", Rank: true}} {
			b.Run(fmt.Sprintf("%d/%s from %s rank %v", n, q.Match, q.From, q.Rank), func(b *testing.B) {
				q.Project, q.Limit = "bench", 20
				for b.Loop() {
					hits, err := x.Search(b.Context(), q)
					if err != nil || len(hits) != 20 {
						b.Fatal(len(hits), err)
					}
				}
			})
		}
	}
}
