package writer

import "sync"

// gate keeps groups from becoming visible while the tree is compared as a whole, so that nobody
// indexes half a group.
type gate struct {
	mu      sync.Mutex
	visible int           // groups of which files may be in place but not in the index
	shut    chan struct{} // closed when it opens again; nil: open
}

// enterGroup waits until groups may become visible.
func (g *gate) enterGroup() {
	for {
		g.mu.Lock()
		wait := g.shut
		if wait == nil {
			g.visible++
		}
		g.mu.Unlock()
		if wait == nil {
			return
		}
		<-wait
	}
}

func (g *gate) leaveGroup() {
	g.mu.Lock()
	g.visible--
	g.mu.Unlock()
}

// close lets no further group become visible and returns how many are. One at a time may have it
// closed.
func (g *gate) close() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut == nil {
		g.shut = make(chan struct{})
	}
	return g.visible
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	close(g.shut)
	g.shut = nil
}
