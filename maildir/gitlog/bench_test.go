package gitlog

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mailtree/maildir"
)

var stored = flag.Int("gitlog.stored", 10000, "messages stored before the commits of BenchmarkCommit")

// BenchmarkCommit measures durable commits of messages of three paths, 1.5 KB each.
func BenchmarkCommit(b *testing.B) {
	text := strings.Repeat("A line of a message of ordinary length.\n", 36)
	send := func(l *Log, dir string, n int) {
		id := fmt.Sprintf("msg_%09d", n)
		day := fmt.Sprintf("2025/10/%02d", n%30)
		var paths []string
		for _, p := range []string{"messages", fmt.Sprintf("agents/A%d/outbox", n%20), fmt.Sprintf("agents/A%d/inbox", n*7%20)} {
			p = filepath.Join(p, day, id+".md")
			paths = append(paths, p)
			if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, p)), 0o755); err != nil {
				b.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, p), []byte(id+text), 0o644); err != nil {
				b.Fatal(err)
			}
		}
		l.Record([]maildir.Op{op("send", fmt.Sprintf("A%d", n%20), id, paths...)}, nil)
	}
	for _, have := range []int{0, *stored} {
		dir := b.TempDir()
		if err := Init(dir); err != nil {
			b.Fatal(err)
		}
		l, err := Open(Config{Dir: dir})
		if err != nil {
			b.Fatal(err)
		}
		n := 0
		flush := func() {
			if err := l.Flush(context.Background()); err != nil {
				b.Fatal(err)
			}
		}
		for ; n < have; n++ {
			send(l, dir, n)
		}
		flush()
		for _, group := range []int{1, 64} {
			b.Run(fmt.Sprintf("stored=%d/group=%d", have, group), func(b *testing.B) {
				for b.Loop() {
					b.StopTimer()
					for range group {
						send(l, dir, n)
						n++
					}
					b.StartTimer()
					flush()
				}
				b.ReportMetric(float64(b.N*group)/b.Elapsed().Seconds(), "msgs/s")
			})
		}
	}
}
