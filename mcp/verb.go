package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"

	"mailtree/maildir"
	"mailtree/mcp/protocol"
	"mailtree/mcp/tool"
)

// maxVerb bounds the body of a POST /mailtree/…: a message of the default size with every byte
// escaped.
const maxVerb = 64 << 20

// verb is the handler of a POST /mailtree/… of the user who runs the server: do answers what its
// body asks.
func verb[Ask, Answer any](s *Server, do func(context.Context, *Ask) (Answer, error)) http.Handler {
	return s.ownOnly(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var ask Ask
		if !s.readVerb(w, r, &ask) {
			return
		}
		answer, err := do(r.Context(), &ask)
		s.answerVerb(w, r, answer, err)
	}))
}

// readVerb reads the body of a POST /mailtree/…; false where it has answered already.
func (s *Server) readVerb(w http.ResponseWriter, r *http.Request, v any) bool {
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxVerb)).Decode(v); err != nil && !errors.Is(err, io.EOF) {
		writeError(w, http.StatusBadRequest, nil, protocol.CodeRequest, "the body is not what a command of this version sends")
		return false
	}
	return true
}

// answerVerb answers a POST /mailtree/… with v, or refuses it.
func (s *Server) answerVerb(w http.ResponseWriter, r *http.Request, v any, err error) {
	switch {
	case err == nil:
		text := tool.Encode(v)
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", strconv.Itoa(len(text))) // so that a flushed answer is whole
		_, _ = w.Write(text)
	case r.Context().Err() == nil:
		s.log.Warn("refused", "path", r.URL.Path, "error", err)
		status := http.StatusConflict
		if errors.Is(err, maildir.ErrNotFound) {
			status = http.StatusNotFound
		}
		writeError(w, status, nil, protocol.CodeRequest, s.cfg.Explain(err))
	}
}
