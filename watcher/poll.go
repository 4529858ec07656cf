package watcher

import (
	"context"
	"time"
)

// poll sends a Scan to OnBatch every Poll until ctx is done. It is used for file systems that report no changes. Each
// wait begins after OnBatch has returned, so Scans never pile up.
func (w *Watcher) poll(ctx context.Context) {
	w.setMode(polling, "")
	w.cfg.Log.Info("polling files for changes", "root", w.cfg.Root, "every", w.cfg.Poll)
	w.readyOnce.Do(func() { close(w.ready) })
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(w.cfg.Poll):
		}
		w.cfg.OnBatch(ctx, Batch{Scan: true})
	}
}
