package page_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mailtree/fixtures/bulk"
	"mailtree/fixtures/storetest"
	"mailtree/fixtures/waits"
	"mailtree/maildir"
	"mailtree/maildir/format"
	"mailtree/page"
)

const (
	openPages   = 50
	senders     = 16
	sendsASec   = 500
	roundLasts  = 3 * time.Second
	openedViews = 6
)

// BenchmarkStream measures how much 50 open pages slow down senders of 500 messages per second. It alternates between
// sending with and without open pages. "with-to-without" is the ratio of the mean times per send, and
// "cpu-to-without" the ratio of the total CPU times. The pages belong to one user and show six views, which are
// reloaded whenever their streams report a change. One benchmark operation is a round with open pages.
func BenchmarkStream(b *testing.B) {
	mail := bulk.Mail{Name: "page", Messages: 10_000, Linked: true, Git: true}
	if bulk.Large() {
		mail.Messages = 100_000
	}
	root := mail.Store(b)
	storetest.Rebuild(b, root)
	now := after(mail)
	s := storetest.Open(b, storetest.Config{Root: root, NoWatcher: true, NoCheck: true, Now: now})
	p, err := s.Project(b.Context(), bulk.Slug())
	if err != nil {
		b.Fatal(err)
	}
	h := httptest.NewServer(page.New(page.Config{Store: s.Store, Person: "Agent01", Now: now}))
	b.Cleanup(h.Close)
	x := &crowd{B: b, p: p, url: h.URL + "/p/" + bulk.Slug() + "/"}
	x.round() // the first round warms up
	var without, with round
	b.ResetTimer()
	for range b.N {
		b.StopTimer()
		without.add(x.round())
		b.StartTimer()
		shut := x.open()
		with.add(x.round())
		shut()
	}
	b.ReportMetric(with.mean()/without.mean(), "with-to-without")
	b.ReportMetric(with.cpu.Seconds()/without.cpu.Seconds(), "cpu-to-without")
	b.ReportMetric(without.mean()*1e3, "ms/send")
	b.ReportMetric(float64(len(with.each))/with.took.Seconds(), "sends/s")
	b.ReportMetric(float64(x.shown.Load())/with.took.Seconds()/openPages, "views/page/s")
	without.each.Report(b, "without-")
	with.each.Report(b, "with-")
}

// round contains the times measured in one or more rounds of sending.
type round struct {
	each bulk.Times
	cpu  time.Duration
	took time.Duration
}

func (r *round) add(other round) {
	r.each, r.cpu, r.took = append(r.each, other.each...), r.cpu+other.cpu, r.took+other.took
}

func (r *round) mean() float64 {
	var all time.Duration
	for _, d := range r.each {
		all += d
	}
	return all.Seconds() / float64(len(r.each))
}

// crowd consists of the senders and the open pages of one store.
type crowd struct {
	*testing.B
	p     *maildir.Project
	url   string // the project's URL
	shown atomic.Int64
}

// round sends messages for a while. Each message is sent at its scheduled time if a sender is free.
func (x *crowd) round() round {
	var all round
	var mu sync.Mutex
	var sending sync.WaitGroup
	began, cpu := time.Now(), bulk.CPU()
	var next atomic.Int64
	for range senders {
		sending.Go(func() {
			for {
				n := next.Add(1)
				due := began.Add(time.Duration(n) * time.Second / sendsASec)
				if due.Sub(began) > roundLasts {
					return
				}
				waits.Pace(time.Until(due))
				at := time.Now()
				_, err := x.p.Box("Agent00", format.Origin{}).Send(x.Context(), maildir.Draft{
					To:      []string{"Agent01"},
					Subject: "Report",
					Body:    "The plan for the users table and its migration.",
				})
				if err != nil {
					x.Error(err)
				}
				mu.Lock()
				all.each = append(all.each, time.Since(at))
				mu.Unlock()
			}
		})
	}
	sending.Wait()
	all.cpu, all.took = bulk.CPU()-cpu, time.Since(began)
	return all
}

// open opens the pages. It returns a function that closes them.
func (x *crowd) open() (shut func()) {
	ctx, cancel := context.WithCancel(x.Context())
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: openPages}}
	var reading, opening sync.WaitGroup
	views := [openedViews]string{"", "inbox", "thread/T-1", "agents", "activity", "threads"}
	for i := range openPages {
		opening.Add(1)
		reading.Go(func() {
			stream := x.get(ctx, client, "stream", "")
			opening.Done()
			if stream == nil {
				return
			}
			defer stream.Body.Close()
			for lines := bufio.NewScanner(stream.Body); lines.Scan(); {
				tick, ok := strings.CutPrefix(lines.Text(), "data: ")
				if !ok {
					continue
				}
				if view := x.get(ctx, client, views[i%len(views)], tick); view != nil {
					_, _ = io.Copy(io.Discard, view.Body)
					view.Body.Close()
					x.shown.Add(1)
				}
			}
		})
	}
	opening.Wait()
	return func() { cancel(); reading.Wait(); client.CloseIdleConnections() }
}

// get requests a view or part of a view, and retries if the server is busy. It returns nil once the pages are closed.
func (x *crowd) get(ctx context.Context, client *http.Client, view, part string) *http.Response {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, x.url+view, nil)
	if err != nil {
		x.Error(err)
		return nil
	}
	r.Header.Set("Mailtree-Fragment", part)
	res, err := client.Do(r)
	switch {
	case ctx.Err() != nil:
		return nil
	case err != nil:
		x.Error(view, err)
		return nil
	case res.StatusCode == http.StatusServiceUnavailable: // too many concurrent responses for this machine
		res.Body.Close()
		waits.Pace(time.Second)
		return x.get(ctx, client, view, part)
	case res.StatusCode != http.StatusOK:
		res.Body.Close()
		x.Error(view, res.Status)
		return nil
	}
	return res
}
