package main

import (
	"context"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"mailtree/fixtures/inmemory"
	"mailtree/fixtures/storetest"
	"mailtree/fixtures/waits"
)

// TestFaultKill checks that nothing is lost if the server is repeatedly killed at random moments under load. After each
// start, everything that the server reported as done is on disk, and the start takes less than two seconds of processor
// time. At the end, every invariant holds, and each message was popped once.
func TestFaultKill(t *testing.T) {
	t.Parallel()
	kills := extent(20, 1000)
	d := newDaemon(t, filepath.Join(inmemory.Dir(t), "store"))
	d.start()
	l := newLoad(t, d)
	l.claims, l.pace = true, 5*time.Millisecond
	sends, pops, acks := map[string]bool{}, 0, 0
	for k := range kills {
		ctx, cancel := context.WithCancel(t.Context())
		clients := l.clients(ctx, 6)
		l.live(k)
		d.kill()
		clients.Wait()
		cancel()
		d.real = k%4 == 3 // the released program does not have the pop verb
		d.start()
		l.fresh(sends, &pops, &acks)
		if t.Failed() {
			t.Fatalf("after kill %d", k+1)
		}
	}
	d.real = false
	d.kill()
	d.start()
	l.drain()
	d.check(l.ledger)
	waits.Limit(t, "the busiest start, in processor time,", d.busiest, startLimit)
	t.Logf("%d kills: %s", kills, l)
}

// live keeps a server running until it has answered some calls, and for a short time after that. In some rounds, there
// are enough calls for a commit. Because live counts calls, the server does as much work on a slow machine as on a fast
// one.
func (l *load) live(k int) {
	most := 10
	if k%10 == 9 {
		most = 100
	}
	want := l.answered() + rand.N(most)
	until(l.d.t, "calls are answered", time.Minute, func() bool { return l.answered() >= want })
	waits.Pace(rand.N(15 * time.Millisecond))
}

// answered returns how many calls have been answered so far.
func (l *load) answered() int {
	_, sent, popped, acked, _, _ := l.ledger.Counts()
	return sent + popped + acked
}

// fresh checks the files of everything that the server has reported as done since the last call to fresh.
func (l *load) fresh(sends map[string]bool, pops, acks *int) {
	var sent []storetest.Sent
	for _, s := range l.ledger.Sends() {
		if !sends[s.ID] {
			sends[s.ID] = true
			sent = append(sent, s)
		}
	}
	popped, acked := l.ledger.Pops(), l.ledger.Acks()
	for _, p := range append(storetest.CheckAnswered(l.d.store, sent, popped[*pops:], ".read"),
		storetest.CheckAnswered(l.d.store, nil, acked[*acks:], ".ack")...) {
		l.d.t.Error(p)
	}
	*pops, *acks = len(popped), len(acked)
}
