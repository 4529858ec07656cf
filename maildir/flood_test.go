package maildir_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"mailtree/fixtures/storetest"
	"mailtree/maildir"
	"mailtree/maildir/format"
	"mailtree/maildir/index"
)

// TestFloodOfEdits checks that a very large number of edits is ingested in portions, and that all files of a message
// are in the same portion. Mail sent during the import must be handled between two portions. A comparison with the tree
// must not end before the last portion is ingested.
func TestFloodOfEdits(t *testing.T) {
	t.Parallel()
	const most = 1024 + 3 // a full portion, plus the remaining files of its last message
	var flood []string
	ours := map[string]bool{} // by id
	for n := range 3 * most {
		id := fmt.Sprintf("m%d", n)
		ours[id] = true
		flood = append(flood, "messages/2026/"+id+".md", "agents/Ann/outbox/2026/"+id+".md", "agents/Bob/inbox/2026/"+id+".md", "agents/Bob/inbox/2026/"+id+".read")
	}
	var mu sync.Mutex
	var answered bool
	portions, seen := 0, map[string]bool{}
	var first halts
	start := first.at(func(string) bool { return true })
	var p *maildir.Project
	portion := func(paths []string) {
		ids := map[string]int{}
		for _, path := range paths {
			if id := format.Locate(path).ID; ours[id] {
				ids[id]++
			}
		}
		if len(ids) == 0 { // the server itself wrote these files
			return
		}
		first.pass("a portion")
		mu.Lock()
		defer mu.Unlock()
		if len(paths) > most {
			t.Errorf("a portion has %d paths", len(paths))
		}
		for id, n := range ids {
			seen[id] = true
			if n != 4 {
				t.Errorf("a portion has %d of the 4 files of %s", n, id)
			}
		}
		if !answered { // keep sending edits until the message has been sent
			portions++
			p.Edited(paths, false)
		}
	}
	differing := make(chan struct{}, 1)
	index := func(x index.Index) index.Index { return &watched{Index: x, ingest: portion, differing: differing} }
	p = project(t, storetest.Config{NoWatcher: true, Index: index}, "Ann", "Bob")
	p.Edited(flood, false)
	<-start.reached
	close(start.goOn)
	send(t, p, "Ann", maildir.Draft{To: []string{"Bob"}, Subject: "s", Body: "b"})
	mu.Lock()
	answered = true
	mu.Unlock()

	hold := first.at(func(string) bool { return true })
	p.Edited(flood, false)
	<-hold.reached
	level := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
		defer cancel()
		level <- p.Rescan(ctx)
	}()
	<-differing // the comparison has found the files to ingest, but has not returned yet
	next := first.at(func(string) bool { return true })
	close(hold.goOn)
	<-next.reached // some of the files have been ingested, but not all
	select {
	case err := <-level:
		t.Error("the comparison was answered before everything was ingested:", err)
	default:
	}
	close(next.goOn)
	if err := <-level; err != nil {
		t.Error(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(seen) != len(ours) || portions == 0 {
		t.Errorf("%d messages of %d, %d portions before the answer", len(seen), len(ours), portions)
	}
}
