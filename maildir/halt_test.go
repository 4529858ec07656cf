package maildir_test

import (
	"context"
	"sync"

	"mailtree/maildir/index"
	"mailtree/maildir/tree"
)

// halts stops goroutines that call pass with certain names. Each halt stops only one goroutine.
type halts struct {
	mu  sync.Mutex
	all []*halt
}

// halt describes one stop.
type halt struct {
	match   func(name string) bool
	reached chan struct{} // closed when a goroutine has stopped here
	goOn    chan struct{} // closed by the test
}

// at adds a halt for the next call to pass with a name for which match returns true.
func (h *halts) at(match func(name string) bool) *halt {
	h.mu.Lock()
	defer h.mu.Unlock()
	one := &halt{match, make(chan struct{}), make(chan struct{})}
	h.all = append(h.all, one)
	return one
}

// pass stops the calling goroutine if there is a halt for name.
func (h *halts) pass(name string) {
	var here *halt
	h.mu.Lock()
	for i, one := range h.all {
		if one.match(name) {
			here, h.all = one, append(h.all[:i:i], h.all[i+1:]...)
			break
		}
	}
	h.mu.Unlock()
	if here != nil {
		close(here.reached)
		<-here.goOn
	}
}

// watched is an index whose calls a test can stop or make fail. A hook that is nil has no effect.
type watched struct {
	index.Index
	looked  func(agent string) // called after an agent was looked up and before the result is returned
	ingest  func(paths []string)
	compare func() // called before the index is compared with the tree
	// differing receives a value when a comparison has found the differences. It may be nil.
	differing chan struct{}
	ingested  func(paths []string) error // called before the server's own writes are ingested; if it fails, Ingest fails
}

func (w *watched) Reconcile(ctx context.Context, project string, progress func(int)) (index.Ingested, error) {
	if w.compare != nil {
		w.compare()
	}
	return w.Index.Reconcile(ctx, project, progress)
}

func (w *watched) Differing(ctx context.Context, project string) ([]string, error) {
	paths, err := w.Index.Differing(ctx, project)
	select {
	case w.differing <- struct{}{}:
	default:
	}
	return paths, err
}

func (w *watched) Agent(ctx context.Context, project, name string) (*index.AgentRow, error) {
	row, err := w.Index.Agent(ctx, project, name)
	if w.looked != nil {
		w.looked(name)
	}
	return row, err
}

func (w *watched) Ingest(ctx context.Context, project string, paths []string, written map[string]tree.Written) (index.Ingested, error) {
	if w.ingest != nil && written == nil {
		w.ingest(paths)
	}
	if w.ingested != nil && written != nil {
		if err := w.ingested(paths); err != nil {
			return index.Ingested{}, err
		}
	}
	return w.Index.Ingest(ctx, project, paths, written)
}
