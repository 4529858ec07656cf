package maildir_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mailtree/fixtures/storetest"
	"mailtree/maildir"
)

var benchBody = strings.Repeat("The plan for the users table and its migration. ", 20)

// BenchmarkSend is the durable send without HTTP: what the domain, the disk and the index cost.
func BenchmarkSend(b *testing.B) {
	p := project(b, storetest.Config{NoCheck: true}, "Ann", "Bob")
	for _, n := range []int{1, 8, 64} {
		b.Run(fmt.Sprintf("clients=%d", n), func(b *testing.B) {
			parallel(b, n, func(i int64) error {
				_, err := p.Send(b.Context(), maildir.Draft{From: "Ann", To: []string{"Bob"}, Subject: fmt.Sprint("Message ", i), Body: benchBody})
				return err
			})
		})
	}
}

// BenchmarkPop drains a mailbox; its ceiling is the send of the same run, which writes three files where a pop writes one.
func BenchmarkPop(b *testing.B) {
	p := project(b, storetest.Config{NoCheck: true}, "Ann", "Bob")
	for _, n := range []int{1, 8, 64} {
		b.Run(fmt.Sprintf("clients=%d", n), func(b *testing.B) {
			parallel(b, 64, func(i int64) error {
				_, err := p.Send(b.Context(), maildir.Draft{From: "Ann", To: []string{"Bob"}, Subject: fmt.Sprint("Message ", i), Body: benchBody})
				return err
			})
			b.ResetTimer()
			parallel(b, n, func(int64) error {
				d, err := p.Pop(b.Context(), "Bob")
				if err == nil && d == nil {
					err = fmt.Errorf("mailbox empty")
				}
				return err
			})
		})
	}
}

// parallel runs b.N calls from so many goroutines and reports calls per second.
func parallel(b *testing.B, clients int, call func(i int64) error) {
	var all sync.WaitGroup
	var n atomic.Int64
	b.ResetTimer()
	for range clients {
		all.Go(func() {
			for i := n.Add(1); i <= int64(b.N); i = n.Add(1) {
				if err := call(i); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "ops/s")
}

// BenchmarkParse is the reading of one message file of about 1.5 KB.
func BenchmarkParse(b *testing.B) {
	m := &maildir.Message{ID: "msg_1", ThreadID: "T-1", Project: "/abs/path", From: "Ann", To: []string{"Bob", "Cat"}, Subject: "Plan", Created: time.Unix(1760000000, 0), Importance: maildir.Normal, Body: benchBody}
	file := maildir.FormatMessage(m)
	b.SetBytes(int64(len(file)))
	for b.Loop() {
		if _, err := maildir.ParseMessage("msg_1", file); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkVisible is the time from a person's save (a rename, as editors do) until the message is listed and found,
// watcher included. Its floor is the watcher's settle time, three milliseconds.
func BenchmarkVisible(b *testing.B) {
	p := project(b, storetest.Config{NoCheck: true}, "Ann")
	dir := filepath.Join(p.Tree().Dir(), "messages/by/hand")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		b.Fatal(err)
	}
	var worst time.Duration
	n := 0
	for b.Loop() {
		n++
		m := &maildir.Message{ID: fmt.Sprint("h", n), From: "Ann", Subject: "by hand", Created: time.Unix(1760000000+int64(n), 0), Importance: maildir.Normal, Body: benchBody}
		tmp := filepath.Join(dir, ".new")
		if err := os.WriteFile(tmp, maildir.FormatMessage(m), 0o600); err != nil {
			b.Fatal(err)
		}
		began := time.Now()
		if err := os.Rename(tmp, filepath.Join(dir, m.ID+".md")); err != nil {
			b.Fatal(err)
		}
		for {
			if _, err := p.Message(b.Context(), m.ID); err == nil {
				break
			}
		}
		worst = max(worst, time.Since(began))
	}
	b.ReportMetric(float64(worst.Microseconds())/1000, "worst-ms")
}
