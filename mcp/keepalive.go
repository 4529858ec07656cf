package mcp

import (
	"context"
	"net/http"
	"time"
)

// keepAlive prevents the session of an open stream from timing out. The SDK counts only POSTs as activity (see the TODO
// above sessionInfo.startPOST in its streamable.go). A client that only waits for notifications would therefore lose
// its session. To prevent this, keepAlive POSTs pings on the client's behalf.
func (s *Server) keepAlive(ctx context.Context, d *route, header http.Header) {
	tick := time.NewTicker(s.cfg.SessionTimeout / 3)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		const ping = `{"jsonrpc":"2.0","id":"mailtree-keepalive","method":"ping"}`
		d.stateful.ServeHTTP(&discardResponse{header: http.Header{}}, forClient(ctx, header, ping))
	}
}
