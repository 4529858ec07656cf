package mcp

import (
	"context"
	"net/http"
	"strings"
	"time"

	"mailtree/mcp/protocol"
)

// keepAlive keeps the session of an open stream from timing out. The SDK counts only POSTs as signs
// of life (a TODO above sessionInfo.startPOST in its streamable.go), so a client that only waits
// for notifications would lose its session. keepAlive therefore POSTs pings in the client's name.
func (s *Server) keepAlive(ctx context.Context, d *door, header http.Header) {
	tick := time.NewTicker(s.cfg.SessionTimeout / 3)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		const ping = `{"jsonrpc":"2.0","id":"mailtree-keepalive","method":"ping"}`
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, "/mcp", strings.NewReader(ping))
		if err != nil {
			return
		}
		for _, k := range []string{protocol.VersionHeader, protocol.SessionHeader, callerHeader} {
			if v := header.Get(k); v != "" {
				r.Header.Set(k, v)
			}
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", protocol.AcceptBoth)
		d.stateful.ServeHTTP(&nowhere{header: http.Header{}}, r)
	}
}

// nowhere is a ResponseWriter that drops what is written to it.
type nowhere struct{ header http.Header }

func (n *nowhere) Header() http.Header         { return n.header }
func (n *nowhere) Write(p []byte) (int, error) { return len(p), nil }
func (n *nowhere) WriteHeader(int)             {}
