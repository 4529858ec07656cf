package maildir_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mailtree/fixtures/bulk"
	"mailtree/fixtures/storetest"
	"mailtree/maildir"
	"mailtree/maildir/format"
)

var benchBody = strings.Repeat("The plan for the users table and its migration. ", 20)

// kept returns the configuration of a store whose files are not deleted after the benchmark. On ext4, deleting them
// would slow down the next case.
func kept(b *testing.B) storetest.Config {
	return storetest.Config{Root: filepath.Join(bulk.Dir(b), "store"), NoCheck: true}
}

// BenchmarkSend measures a durable send without HTTP: the cost of this package, the disk and the index.
func BenchmarkSend(b *testing.B) {
	p := project(b, kept(b), "Ann", "Bob")
	for _, n := range []int{1, 8, 64} {
		b.Run(fmt.Sprintf("clients=%d", n), func(b *testing.B) {
			parallel(b, n, func(i int64) error {
				_, err := p.Box("Ann", format.Origin{}).Send(b.Context(), maildir.Draft{To: []string{"Bob"}, Subject: fmt.Sprint("Message ", i), Body: benchBody})
				return err
			})
		})
	}
}

// BenchmarkPop measures popping all messages from a mailbox. The result is compared with the send rate in the same
// run, although a send writes three files and a pop only one.
func BenchmarkPop(b *testing.B) {
	p := project(b, kept(b), "Ann", "Bob")
	for _, n := range []int{1, 8, 64} {
		b.Run(fmt.Sprintf("clients=%d", n), func(b *testing.B) {
			parallel(b, 64, func(i int64) error {
				_, err := p.Box("Ann", format.Origin{}).Send(b.Context(), maildir.Draft{To: []string{"Bob"}, Subject: fmt.Sprint("Message ", i), Body: benchBody})
				return err
			})
			b.ResetTimer()
			parallel(b, n, func(int64) error {
				d, err := p.Box("Bob", format.Origin{}).Pop(b.Context())
				if err == nil && d == nil {
					err = fmt.Errorf("mailbox empty")
				}
				return err
			})
		})
	}
}

// parallel makes b.N calls from the given number of goroutines, and reports the number of calls per second.
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

// BenchmarkParse measures the parsing of one message file of about 1.5 KB.
func BenchmarkParse(b *testing.B) {
	m := &format.Message{
		ID:         "msg_1",
		ThreadID:   "T-1",
		Project:    "/abs/path",
		From:       "Ann",
		To:         []string{"Bob", "Cat"},
		Subject:    "Plan",
		Created:    time.Unix(1760000000, 0),
		Importance: format.Normal,
		Body:       benchBody,
	}
	file := format.FormatMessage(m)
	b.SetBytes(int64(len(file)))
	for b.Loop() {
		if _, err := format.ParseMessage("msg_1", file); err != nil {
			b.Fatal(err)
		}
	}
}
