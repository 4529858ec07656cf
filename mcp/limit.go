package mcp

import (
	"net/http"
	"sync/atomic"
)

// gauge counts what is in use and refuses more than max.
type gauge struct {
	max  int64
	used atomic.Int64
}

func (g *gauge) take(n int64) bool {
	if g.used.Add(n) > g.max {
		g.used.Add(-n)
		return false
	}
	return true
}

func (g *gauge) give(n int64) { g.used.Add(-n) }

// busy answers that a limit is reached.
func busy(w http.ResponseWriter, id []byte, what string) {
	w.Header().Set("Retry-After", "1")
	writeError(w, http.StatusServiceUnavailable, id, codeBusy, "the server is busy ("+what+"): try again in a moment")
}

// sessions counts the sessions begun with initialize. Stateless requests have sessions without an id.
func (s *Server) sessions() int64 {
	n := s.starting.Load()
	for _, d := range s.doors {
		for ss := range d.set.Server().Sessions() {
			if ss.ID() != "" {
				n++
			}
		}
	}
	return n
}
