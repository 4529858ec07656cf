package mcp

import (
	"errors"
	"fmt"
	"net/http"
)

// Probes need no token, so their responses contain nothing about the store. See docs/howto/monitor.md.

// livez answers GET /livez. A server that can answer at all is alive.
func (s *Server) livez(w http.ResponseWriter, _ *http.Request) { writeProbe(w, nil) }

// readyz answers GET /readyz: 200 if the server can answer calls now, otherwise 503.
func (s *Server) readyz(w http.ResponseWriter, r *http.Request) {
	var err error
	select {
	case <-s.stopping:
		err = errors.New("the server is stopping")
	default:
		if s.cfg.Ready != nil {
			err = s.cfg.Ready(r.Context())
		}
	}
	writeProbe(w, err)
}

// writeProbe writes "ok", or status 503 and the error.
func writeProbe(w http.ResponseWriter, err error) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	if err != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = fmt.Fprintln(w, err)
		return
	}
	_, _ = fmt.Fprintln(w, "ok")
}
