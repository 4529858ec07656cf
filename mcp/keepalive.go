package mcp

import (
	"context"
	"net/http"
	"time"
)

// keepAlive keeps the session of an open stream from timing out. The SDK treats only POSTs as signs of life (a TODO
// above sessionInfo.startPOST in its streamable.go), so a client that only waits for notifications would lose its
// session. Therefore keepAlive POSTs pings on the client's behalf.
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
