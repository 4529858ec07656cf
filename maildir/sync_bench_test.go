package maildir_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mailtree/fixtures/storetest"
	"mailtree/fixtures/waits"
	"mailtree/maildir"
	"mailtree/maildir/format"
	"mailtree/maildir/history"
	"mailtree/maildir/index"
)

// countingHistory counts all pushes, and separately the pushes that failed because another machine pushed first.
type countingHistory struct {
	history.Log
	pushes, lost *atomic.Int64
}

func (h countingHistory) Push(ctx context.Context) error {
	err := h.Log.Push(ctx)
	h.pushes.Add(1)
	if errors.Is(err, history.ErrBehind) {
		h.lost.Add(1)
	}
	return err
}

func (h countingHistory) PushClaims(ctx context.Context, was, is string) error {
	err := h.Log.PushClaims(ctx, was, is)
	h.pushes.Add(1)
	if errors.Is(err, history.ErrBehind) {
		h.lost.Add(1)
	}
	return err
}

// counted opens n machines, each with one agent, that share a project's mail through a bare repository. It then starts
// counting their pushes.
func counted(b *testing.B, n int, interval time.Duration) (bare string, all []sharer, pushes, lost *atomic.Int64) {
	b.Helper()
	pushes, lost = new(atomic.Int64), new(atomic.Int64)
	count := func(h history.Log) history.Log { return countingHistory{h, pushes, lost} }
	bare = filepath.Join(b.TempDir(), "mail.git")
	gitIn(b, b.TempDir(), "init", "-q", "--bare", "-b", "main", bare)
	for i := range n {
		m := sharer{Store: storetest.Open(b, storetest.Config{Sync: interval, History: count, NoCheck: true})}
		var err error
		if i == 0 {
			if m.p, err = m.EnsureProject(b.Context(), shop); err == nil {
				gitIn(b, m.p.Dir(), "remote", "add", "origin", bare)
				err = m.p.Sync.Set(true)
			}
			m.now(b)
		} else {
			m.p, err = m.Join(b.Context(), bare, shop)
		}
		if err != nil {
			b.Fatal(err)
		}
		m.register(b, fmt.Sprintf("Agent%d", i))
		m.now(b)
		all = append(all, m)
	}
	for _, m := range all {
		m.now(b)
	}
	pushes.Store(0)
	lost.Store(0)
	return bare, all, pushes, lost
}

// BenchmarkSharedClaim measures how long agents wait for the result of a claim when agents on several machines make
// claims at the same time. Each agent repeatedly claims its own path. For comparison, it measures one git push of a
// prepared tree. For results, see docs/explanation/sync.md, "How many machines".
func BenchmarkSharedClaim(b *testing.B) {
	for _, n := range []int{1, 2, 3, 5, 10} {
		b.Run(fmt.Sprintf("machines=%d", n), func(b *testing.B) {
			_, all, pushes, lost := counted(b, n, onlyAsked)
			var mu sync.Mutex
			var took []time.Duration
			b.ResetTimer()
			for k := range 10 * b.N {
				var asking sync.WaitGroup
				for i, m := range all {
					asking.Go(func() {
						began := time.Now()
						if by := m.claims(b, fmt.Sprintf("Agent%d", i), fmt.Sprintf("path%d/%d", i, k)); by != "" {
							b.Errorf("held by %s", by)
						}
						mu.Lock()
						defer mu.Unlock()
						took = append(took, time.Since(began))
					})
				}
				asking.Wait()
			}
			b.StopTimer()
			slices.Sort(took)
			b.ReportMetric(took[len(took)/2].Seconds(), "s-p50")
			b.ReportMetric(took[len(took)*95/100].Seconds(), "s-p95")
			b.ReportMetric(float64(pushes.Load())/float64(len(took)), "pushes/claim")
			b.ReportMetric(100*float64(lost.Load())/float64(pushes.Load()), "%-lost")
		})
	}
	b.Run("ceiling", func(b *testing.B) {
		_, all, _, _ := counted(b, 1, onlyAsked)
		dir := all[0].p.Dir()
		tree := gitIn(b, dir, "rev-parse", "HEAD^{tree}")
		began := time.Now()
		for k := range 10 * b.N {
			gitIn(b, dir, "push", "-q", "origin", fmt.Sprintf("%s:refs/ceiling/%d", tree, k))
		}
		b.ReportMetric(time.Since(began).Seconds()/float64(10*b.N), "s-p50")
	})
}

// BenchmarkSync measures how long it takes until a message can be read on another machine. The machines share a
// project's mail through a bare repository on this machine and poll it every second. In each of the b.N iterations, an
// agent on each machine sends one message per second to an agent on the next machine, for ten seconds. For results,
// see docs/explanation/sync.md, "How many machines".
func BenchmarkSync(b *testing.B) {
	for _, n := range []int{2, 3, 5, 10} {
		b.Run(fmt.Sprintf("machines=%d", n), func(b *testing.B) {
			_, all, pushes, lost := counted(b, n, time.Second)
			var mu sync.Mutex
			sent, took := map[string]time.Time{}, []time.Duration{}
			changes := func(m sharer, agent string, stop <-chan struct{}) {
				seen := map[string]bool{}
				for {
					page, err := m.p.Box(agent, format.Origin{}).Inbox(b.Context(), index.InboxQuery{Limit: 200}, false, maildir.Waiting{})
					if err != nil {
						return
					}
					mu.Lock()
					for _, d := range page.Messages {
						if at, known := sent[d.Subject]; known && !seen[d.Subject] {
							seen[d.Subject] = true
							took = append(took, time.Since(at))
						}
					}
					mu.Unlock()
					select {
					case <-stop:
						return
					case <-time.After(20 * time.Millisecond):
					}
				}
			}
			stop := make(chan struct{})
			var reading, writing sync.WaitGroup
			began := time.Now()
			b.ResetTimer()
			for i, m := range all {
				next := (i + 1) % n
				reading.Go(func() { changes(all[next], fmt.Sprintf("Agent%d", next), stop) })
				writing.Go(func() {
					for k := range 10 * b.N {
						subject := fmt.Sprintf("%d of %d", k, i)
						mu.Lock()
						sent[subject] = time.Now()
						mu.Unlock()
						m.send(b, fmt.Sprintf("Agent%d", i), fmt.Sprintf("Agent%d", next), subject)
						waits.Pace(time.Second)
					}
				})
			}
			writing.Wait()
			seconds := time.Since(began).Seconds()
			pushed, raced := pushes.Load(), lost.Load()
			for deadline := time.Now().Add(10 * time.Minute); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
				mu.Lock()
				done := len(took) == len(sent)
				mu.Unlock()
				if done {
					break
				}
			}
			b.StopTimer()
			close(stop)
			reading.Wait()
			slices.Sort(took)
			if len(took) < len(sent) {
				b.Errorf("%d of %d messages arrived", len(took), len(sent))
			}
			b.ReportMetric(took[len(took)/2].Seconds(), "s-p50")
			b.ReportMetric(took[len(took)*95/100].Seconds(), "s-p95")
			b.ReportMetric(float64(pushed)/seconds, "pushes/s")
			b.ReportMetric(100*float64(raced)/float64(max(pushed, 1)), "%-lost")
		})
	}
}
