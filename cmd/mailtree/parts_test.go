package main

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
)

// TestAwaitParts checks that only the part that hangs is reported, even if it is not the last in the list. The time
// limit is the same for all parts, because awaitParts waits for them concurrently.
func TestAwaitParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		a := &app{log: slog.New(slog.NewTextHandler(&log, nil))}
		var hangs, quick sync.WaitGroup
		end := make(chan struct{})
		hangs.Go(func() { <-end })
		a.awaitParts([]part{{"requests", &quick}, {"hooks", &hangs}, {"deliveries", &quick}, {"callers", &quick}})
		close(end)
		if lines := strings.Count(log.String(), "\n"); lines != 1 || !strings.Contains(log.String(), "the hooks have not finished") {
			t.Errorf("the log has %d lines: %s", lines, log.String())
		}
	})
}
