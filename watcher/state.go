package watcher

import (
	"sync"
	"time"
)

// The modes of State.
const (
	starting = "starting"
	watching = "watching"
	degraded = "degraded"
	polling  = "polling"
	stopped  = "stopped"
)

// State describes the watch for health checks and `mailtree doctor`.
type State struct {
	// Mode is "starting" (folders are being walked for the first time), "watching" (every folder that may be read is
	// watched), "degraded" (Scans find the changes), "polling" (NoEvents is set) or "stopped" (Run has returned).
	Mode string

	// Reason is a sentence for the user that says what is wrong and what to do about it. It is empty unless Mode is
	// "degraded".
	Reason string

	// Folders is the number of folders watched, Root included.
	Folders int

	// Pending is the number of changes that have been noticed but not reported yet: paths, folders to walk, and a
	// Scan. It includes the batch that OnBatch is handling.
	Pending int

	// Oldest is the time of the first event in Pending. It is zero if nothing is pending.
	Oldest time.Time

	// Overflows is the number of times that the kernel's queue has overflowed.
	Overflows int64
}

// status is the stored part of State. The rest is computed.
type status struct {
	mu      sync.Mutex
	mode    string
	reason  string
	folders int
}

// State returns the current state of the watch.
func (w *Watcher) State() State {
	// queue and waiting are read in the order in which a path passes through them, so that a path that moves between
	// the two reads is not missed.
	queued, first, overflows := w.queue.pending()
	waiting, oldest := w.waiting.pending()
	w.status.mu.Lock()
	defer w.status.mu.Unlock()
	return State{
		Mode:      w.status.mode,
		Reason:    w.status.reason,
		Folders:   w.status.folders,
		Pending:   queued + waiting,
		Oldest:    earlier(first, oldest),
		Overflows: overflows,
	}
}

// degrade records and logs why the watch is incomplete.
func (w *Watcher) degrade(reason string) {
	if w.setMode(degraded, reason) {
		w.cfg.Log.Warn("file watching is degraded", "root", w.cfg.Root, "reason", reason)
	}
	w.readyOnce.Do(func() { close(w.ready) })
}

// stand records that every folder is watched. It reports whether the watch is complete for the first time, in which
// case no Scan is needed.
func (w *Watcher) stand() (first bool) {
	if w.setMode(watching, "") {
		w.cfg.Log.Info("watching files", "root", w.cfg.Root)
	}
	w.readyOnce.Do(func() { first = true; close(w.ready) })
	return first
}

// stopped records that Run has ended.
func (w *Watcher) stopped() {
	w.setMode(stopped, "")
	w.setFolders(0)
}

// setMode sets the mode and its reason, and reports whether either of them changed.
func (w *Watcher) setMode(mode, reason string) bool {
	w.status.mu.Lock()
	defer w.status.mu.Unlock()
	changed := w.status.mode != mode || w.status.reason != reason
	w.status.mode, w.status.reason = mode, reason
	return changed
}

func (w *Watcher) setFolders(n int) {
	w.status.mu.Lock()
	defer w.status.mu.Unlock()
	w.status.folders = n
}
