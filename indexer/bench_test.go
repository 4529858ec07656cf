package indexer

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mailtree/fixtures/bulk"
	"mailtree/maildir/format"
	"mailtree/maildir/index"
	"mailtree/maildir/tree"
)

// These benchmarks measure only the index, without file creation, history or HTTP. The end-to-end benchmarks are in
// packages mcp, maildir and cmd/mailtree. See README, "Speed".

// benchFile returns the path of m's index file, which is next to the tree. If an earlier run has built the index,
// benchFile reuses it.
func benchFile(b *testing.B, m bulk.Mail) string {
	b.Helper()
	store := m.Store(b)
	path := filepath.Join(store, "index.sqlite3")
	if bulk.Exists(path) {
		return path
	}
	if err := Rebuild(b.Context(), path, map[string]*tree.Tree{bulk.Slug(): m.Tree(b)}, nil); err != nil {
		b.Fatal(err)
	}
	return path
}

func benchIndex(b *testing.B, m bulk.Mail) *Index {
	b.Helper()
	x, err := Open(b.Context(), Config{Path: benchFile(b, m)})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { x.Close() })
	attach(b, x, bulk.Slug(), m.Tree(b))
	return x
}

// BenchmarkRebuild measures building the index of a tree from its files.
func BenchmarkRebuild(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			if n > 10_000 {
				bulk.NeedLarge(b)
			}
			if n > 1_000 && testing.Short() {
				b.Skip("short")
			}
			trees := map[string]*tree.Tree{"bench": bulk.Mail{Messages: n}.Tree(b)}
			path := filepath.Join(bulk.Dir(b), "index.sqlite3")
			for b.Loop() {
				if err := Rebuild(b.Context(), path, trees, nil); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "msgs/s")
		})
	}
}

// BenchmarkIngest measures the cost of ingesting a group of sends. "names" passes only the files' names, as for a
// user's edits. "written" also passes the bytes, as for the server's own writes.
func BenchmarkIngest(b *testing.B) {
	for _, group := range []int{1, 64} {
		b.Run(fmt.Sprintf("names/group=%d", group), func(b *testing.B) { benchIngest(b, group, false) })
		b.Run(fmt.Sprintf("written/group=%d", group), func(b *testing.B) { benchIngest(b, group, true) })
	}
}

func benchIngest(b *testing.B, group int, written bool) {
	mail, dir := bulk.Mail{}, bulk.Dir(b)
	work, err := tree.Open(dir, 0)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { work.Close() })
	x, err := Open(b.Context(), Config{Path: filepath.Join(bulk.Dir(b), "index.sqlite3")})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { x.Close() })
	attach(b, x, "bench", work)
	paths := mail.Write(b, dir, 0, group*b.N)
	var each bulk.Times
	var cpu time.Duration
	b.ResetTimer()
	for i := range b.N {
		b.StopTimer()
		files := map[string]tree.Written{}
		for n := group * i; n < group*(i+1) && written; n++ {
			m, at := mail.Message(n)
			data := format.FormatMessage(m)
			for _, p := range at {
				st, err := work.Stat(p)
				if err != nil {
					b.Fatal(err)
				}
				files[p] = tree.Written{Data: data, Stat: st}
			}
		}
		b.StartTimer()
		used, began := bulk.CPU(), time.Now()
		at := paths[3*group*i : 3*group*(i+1)]
		if written {
			_, err = x.Ingest(b.Context(), "bench", at, files)
		} else {
			_, err = x.Ingest(b.Context(), "bench", at, nil)
		}
		each, cpu = append(each, time.Since(began)), cpu+bulk.CPU()-used
		b.StopTimer()
		if err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(group*b.N), "us/msg")
	b.ReportMetric(float64(cpu.Microseconds())/float64(group*b.N), "cpu-us/msg")
	b.ReportMetric(float64(group*b.N)/b.Elapsed().Seconds(), "msgs/s")
	each.Report(b, "")
}

// benchSizes returns the amounts of mail for which the benchmarks run. The results should not depend on the amount.
func benchSizes(b *testing.B) []bulk.Mail {
	switch {
	case testing.Short():
		return []bulk.Mail{{Messages: 3_000}}
	case !bulk.Large():
		return []bulk.Mail{{Messages: 10_000}}
	}
	return []bulk.Mail{{Messages: 100_000}, {Messages: 1_000_000, Linked: true}}
}

// BenchmarkInbox measures reading a page of 20 unread messages in one agent's inbox.
func BenchmarkInbox(b *testing.B) {
	for _, m := range benchSizes(b) {
		b.Run(fmt.Sprint(m.Messages), func(b *testing.B) {
			x := benchIndex(b, m)
			timed(b, func() (int, error) {
				rows, _, err := x.Inbox(b.Context(), index.InboxQuery{Project: bulk.Slug(), Agent: "Agent01", UnreadOnly: true,
					Limit: 20})
				return len(rows), err
			})
		})
	}
}

// BenchmarkSearch measures reading a page of 20 results with snippets, newest first. The query "floor" finds nothing,
// so its time is a lower bound. "cut" is the fraction of the searches that stopped early at the time limit for prefixes,
// with the results that they had found by then.
func BenchmarkSearch(b *testing.B) {
	hour := bulk.Start().Add(time.Hour).Format(time.RFC3339)
	queries := []struct{ name, text string }{
		{"floor", "nothinghasthis"},
		{"term/every", "parser"},
		{"term/common", "word77"},
		{"term/rare", "zirconium"},
		{"phrase", `"last token"`},
		{"phrase/long", `"drops the last token when the buffer"`},
		{"prefix/2", "wo*"},
		{"prefix/3", "wor*"},
		{"prefix/5", "word1*"},
		{"prefix/6", "word12*"},
		{"prefix/rare", "zirc*"},
		{"words/2", "parser buffer"},
		{"words/rare", "parser zirconium"},
		{"words/or", "zirconium OR word77"},
		{"words/not", "parser NOT zirconium"},
		{"from", "parser from:Agent03"},
		{"from/rare", "zirconium from:Agent04"},
		{"from/only", "from:Agent03"},
		{"thread", "parser thread:T-100"},
		{"before", "parser before:" + hour},
		{"after", "parser after:" + hour},
		{"importance", "parser importance:normal"},
		{"subject", "subject:parser"},
		{"or/filters", "parser from:Agent03 OR zirconium from:Agent04"},
		{"rank", "parser"},
		{"rank/filters", "parser from:Agent03 OR word77 from:Agent04"},
	}
	for _, m := range benchSizes(b) {
		b.Run(fmt.Sprint(m.Messages), func(b *testing.B) {
			x := benchIndex(b, m)
			for _, q := range queries {
				b.Run(q.name, func(b *testing.B) {
					ask := asked(b, q.text)
					ask.Project, ask.Limit, ask.Rank = bulk.Slug(), 20, strings.HasPrefix(q.name, "rank")
					want, err := x.Search(b.Context(), ask)
					if err != nil || !want.Cut && (len(want.Hits) == 0) != (q.name == "floor") {
						b.Fatal(len(want.Hits), err)
					}
					cut := 0
					timed(b, func() (int, error) {
						found, err := x.Search(b.Context(), ask)
						if found.Cut {
							cut++
						}
						if found.Cut || want.Cut { // the number of results depends on the speed of the machine
							return 20, err
						}
						return len(found.Hits) - len(want.Hits) + 20, err
					})
					b.ReportMetric(float64(cut)/float64(b.N), "cut")
				})
			}
		})
	}
}

// timed measures a query that must find 20 results.
func timed(b *testing.B, query func() (int, error)) {
	var each bulk.Times
	b.ResetTimer()
	for range b.N {
		began := time.Now()
		n, err := query()
		each = append(each, time.Since(began))
		if err != nil || n != 20 {
			b.Fatal(n, err)
		}
	}
	b.StopTimer()
	each.Report(b, "")
}

// BenchmarkReconcile measures comparing a tree with an up-to-date index, as the server does at every start.
func BenchmarkReconcile(b *testing.B) {
	for _, m := range benchSizes(b) {
		b.Run(fmt.Sprint(m.Messages), func(b *testing.B) {
			x := benchIndex(b, m)
			if _, err := x.Reconcile(b.Context(), bulk.Slug(), nil); err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if in, err := x.Reconcile(b.Context(), bulk.Slug(), nil); err != nil || len(in.Changes) > 0 {
					b.Fatal(len(in.Changes), err)
				}
			}
			b.ReportMetric(3*float64(m.Messages)*float64(b.N)/b.Elapsed().Seconds(), "files/s")
		})
	}
}
