package gitlog

import (
	"bufio"
	"context"
	"crypto/sha1"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"mailtree/maildir/tree"
	"mailtree/maildir/writer"
)

var stored = flag.Int("gitlog.stored", 10000, "messages stored before the commits of BenchmarkCommit")

// BenchmarkCommit measures durable commits of messages from twenty agents, with three files of 1.5 KB each. It reports
// the number of commits per second, and how much each commit adds to .git/objects.
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
		l.Record([]writer.Op{op("send", fmt.Sprintf("A%d", n%20), id, paths...)}, nil)
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
		for _, group := range []int{1, 16, 64, 1000} {
			b.Run(fmt.Sprintf("stored=%d/group=%d", have, group), func(b *testing.B) {
				before := objectBytes(b, dir)
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
				b.ReportMetric(float64(objectBytes(b, dir)-before)/float64(b.N*group), "B/msg")
			})
		}
	}
}

// objectBytes returns the total size of all objects in the repository at dir.
func objectBytes(b *testing.B, dir string) (n int64) {
	err := filepath.WalkDir(filepath.Join(dir, ".git/objects"), func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		fi, err := d.Info()
		n += fi.Size()
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	return n
}

var piled = flag.Int("gitlog.piled", 300, "commits made before BenchmarkTidy repacks")

// BenchmarkTidy measures a repack, and the commits before and after it, including the first commit by a newly opened
// Log.
func BenchmarkTidy(b *testing.B) {
	dir := b.TempDir()
	if err := Init(dir); err != nil {
		b.Fatal(err)
	}
	l, err := Open(Config{Dir: dir, Piled: 1})
	if err != nil {
		b.Fatal(err)
	}
	n := 0
	commit := func(group int) time.Duration {
		for range group {
			id := fmt.Sprintf("msg_%09d", n)
			var paths []string
			for _, p := range []string{"messages", fmt.Sprintf("agents/A%d/outbox", n%20), fmt.Sprintf("agents/A%d/inbox", n*7%20)} {
				p = filepath.Join(p, fmt.Sprintf("2025/10/%02d", n/1000), id+".md")
				paths = append(paths, p)
				if err := errors.Join(os.MkdirAll(filepath.Dir(filepath.Join(dir, p)), 0o755), os.WriteFile(filepath.Join(dir, p), []byte(id), 0o644)); err != nil {
					b.Fatal(err)
				}
			}
			l.Record([]writer.Op{op("send", "A", id, paths...)}, nil)
			n++
		}
		start := time.Now()
		if err := l.Flush(context.Background()); err != nil {
			b.Fatal(err)
		}
		return time.Since(start)
	}
	measure := func(when string) {
		repo, err := l.openRepository(b.Context(), l.mem)
		if err != nil {
			b.Fatal(err)
		}
		have, err := repo.sweep()
		if err != nil {
			b.Fatal(err)
		}
		var warm, cold []time.Duration
		for range 9 {
			warm = append(warm, commit(1))
			l.mem = newMemory()
			cold = append(cold, commit(1))
		}
		slices.Sort(warm)
		slices.Sort(cold)
		b.Logf("%s: %d loose objects, %d packs; a commit takes %v, and by a new Log %v", when, have.loose, have.packs, warm[4], cold[4])
	}
	for i := range *piled {
		commit(1 + i%2*10) // creates loose objects as well as packs
	}
	measure("before")
	start := time.Now()
	if err := l.repack(context.Background()); err != nil {
		b.Fatal(err)
	}
	b.Logf("repacked in %v", time.Since(start))
	measure("after")
}

var entries = flag.Int("gitlog.entries", 300000, "entries in the index of BenchmarkIndex")

// BenchmarkIndex measures commits of one file to a repository with a very large index. It reports the memory that
// these commits use, and the peak resident memory of the process.
func BenchmarkIndex(b *testing.B) {
	dir := b.TempDir()
	if err := Init(dir); err != nil {
		b.Fatal(err)
	}
	size := makeIndex(b, filepath.Join(dir, ".git/index"), *entries)
	l, err := Open(Config{Dir: dir})
	if err != nil {
		b.Fatal(err)
	}
	n := 0
	b.ReportAllocs()
	for b.Loop() {
		p := fmt.Sprintf("messages/2025/10/%02d/msg_%09d.md", n%30, n)
		n++
		if err := errors.Join(os.MkdirAll(filepath.Dir(filepath.Join(dir, p)), 0o755), os.WriteFile(filepath.Join(dir, p), []byte(p), 0o644)); err != nil {
			b.Fatal(err)
		}
		l.Record([]writer.Op{op("send", "A", p, p)}, nil)
		if err := l.Flush(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
	status, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(status)) {
		if kb, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			n, _ := strconv.Atoi(strings.Fields(kb)[0])
			b.ReportMetric(float64(n)/1000, "MB-peak")
		}
	}
	b.ReportMetric(float64(size)/1e6, "MB-index")
}

// makeIndex writes an index with n entries, for which there are no files on disk.
func makeIndex(b testing.TB, file string, n int) int64 {
	f, err := os.Create(file)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	sum := sha1.New()
	out := bufio.NewWriterSize(io.MultiWriter(f, sum), 1<<16)
	out.Write(binary.BigEndian.AppendUint32([]byte("DIRC\x00\x00\x00\x02"), uint32(n)))
	each := 1 + n/100
	for i := range n {
		name := fmt.Sprintf("agents/A%04d/inbox/2025/10/%02d/msg_20251023_%09d.md", i/each, i%each/(1+each/30), i)
		head := make([]byte, 62)
		binary.BigEndian.PutUint32(head[8:], 1760000000)
		binary.BigEndian.PutUint32(head[24:], modeFile)
		binary.BigEndian.PutUint32(head[40:], uint32(i+1))
		binary.BigEndian.PutUint16(head[60:], uint16(len(name)))
		out.Write(append(append(head, name...), make([]byte, 8-(62+len(name))%8)...))
	}
	if err := out.Flush(); err != nil {
		b.Fatal(err)
	}
	if _, err := f.Write(sum.Sum(nil)); err != nil {
		b.Fatal(err)
	}
	fi, err := f.Stat()
	if err != nil {
		b.Fatal(err)
	}
	return fi.Size()
}

// BenchmarkLoad measures how long a commit of 1,000 files takes to load the files, before it writes anything. In one
// case, it reads the files from disk. In the other case, the operation has recorded their content.
func BenchmarkLoad(b *testing.B) {
	dir := b.TempDir()
	if err := Init(dir); err != nil {
		b.Fatal(err)
	}
	text := strings.Repeat("A line of a message of ordinary length.\n", 36)
	var paths []string
	told := map[string]operation{}
	for i := range 1000 {
		p := fmt.Sprintf("agents/A%d/inbox/2025/10/23/msg_%09d.md", i%20, i)
		tmp := filepath.Join(dir, "staged")
		if err := errors.Join(os.MkdirAll(filepath.Dir(filepath.Join(dir, p)), 0o755), os.WriteFile(tmp, []byte(text), 0o644)); err != nil {
			b.Fatal(err)
		}
		fi, err := os.Stat(tmp)
		if err != nil {
			b.Fatal(err)
		}
		st := tree.FileStat{Size: fi.Size(), MTime: fi.ModTime().UnixNano(), Inode: fi.Sys().(*syscall.Stat_t).Ino}
		if err := os.Rename(tmp, filepath.Join(dir, p)); err != nil {
			b.Fatal(err)
		}
		told[p] = operation{Op: writer.Op{Written: map[string]tree.Written{p: {Data: []byte(text), Stat: st}}}}
		paths = append(paths, p)
	}
	l, err := Open(Config{Dir: dir})
	if err != nil {
		b.Fatal(err)
	}
	for name, written := range map[string]map[string]operation{"read": nil, "told": told} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				repo, err := l.openRepository(b.Context(), newMemory())
				if err != nil {
					b.Fatal(err)
				}
				plan, err := newPlan(repo, hash{}, nil)
				if err != nil {
					b.Fatal(err)
				}
				plan.written = written
				plan.name(paths, 0)
				if err := plan.load(nil); err != nil {
					b.Fatal(err)
				}
				plan.close()
			}
		})
	}
}
