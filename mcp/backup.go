package mcp

import (
	"context"
	"net/http"

	"mailtree/mcp/protocol"
)

// backup answers POST /mailtree/backup with a backup of the store. If the backup fails, the trailer
// protocol.FailureTrailer contains the reason.
func (s *Server) backup(w http.ResponseWriter, r *http.Request) {
	s.lasting(w, r, func(ctx context.Context, a *answer) {
		a.Header().Set("Content-Type", "application/gzip")
		a.Header().Set("Trailer", protocol.FailureTrailer)
		if err := s.cfg.Store.Backup(ctx, a, s.cfg.Version); err != nil {
			s.log.Warn("backup failed", "error", err)
			a.Header().Set(protocol.FailureTrailer, s.cfg.Explain(err))
		}
	})
}
