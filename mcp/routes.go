package mcp

import (
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"

	"mailtree/mcp/protocol"
	"mailtree/mcp/tool"
)

// Handler returns the handler for every route on TCP.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	for _, d := range s.routes {
		for _, path := range d.paths {
			mux.Handle(path, s.checkUser(s.checkToken(address(s.endpoint(d)))))
		}
	}
	mux.Handle("GET /health", s.checkUser(s.checkToken(http.HandlerFunc(s.health))))
	mux.Handle("GET /metrics", s.checkUser(s.checkToken(http.HandlerFunc(s.metrics))))
	mux.HandleFunc("GET /livez", s.livez)
	mux.HandleFunc("GET /readyz", s.readyz)
	for _, path := range cardPaths {
		mux.HandleFunc(path, s.card)
	}
	mux.HandleFunc("POST /register", s.register)
	mux.Handle("GET /{$}", s.checkUser(http.HandlerFunc(s.home)))
	page := s.checkUser(http.HandlerFunc(s.servePage))
	if s.cfg.Page != nil {
		for _, path := range s.cfg.Page.Patterns() {
			mux.Handle(path, page)
		}
	}
	mux.Handle("/", s.nothing(page))
	return s.recover(s.logged(s.checkHost(s.checkOrigin(mux))))
}

// recover recovers from a panic in this package's handlers and responds with status 500. The method receive recovers
// from panics in the SDK.
func (s *Server) recover(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			p := recover()
			if p == nil {
				return
			}
			if p == http.ErrAbortHandler { //nolint:errorlint // net/http compares it in the same way
				panic(p)
			}
			s.log.Error("mcp: panic", "method", r.Method, "path", r.URL.Path, "panic", p, "stack", string(debug.Stack()))
			writeError(w, http.StatusInternalServerError, nil, protocol.CodeInternal, tool.InternalText)
		}()
		// Clear the deadline that the previous request set (see answer.deadline).
		_ = http.NewResponseController(w).SetWriteDeadline(time.Time{})
		next.ServeHTTP(w, r)
	})
}

// logged writes a log line for each request at debug level.
func (s *Server) logged(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.log.Enabled(r.Context(), slog.LevelDebug) {
			next.ServeHTTP(w, r)
			return
		}
		start, seen := time.Now(), &statusWriter{ResponseWriter: w}
		next.ServeHTTP(seen, r)
		s.log.Debug("request", "method", r.Method, "path", r.URL.Path, "status", seen.status, "took", time.Since(start),
			"version", r.Header.Get(protocol.VersionHeader), "agent", r.UserAgent())
	})
}

// statusWriter records the response's status.
type statusWriter struct {
	http.ResponseWriter
	status int
}

func (w *statusWriter) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (s *Server) health(w http.ResponseWriter, r *http.Request) {
	var report any = map[string]string{"status": "ok"}
	able := true
	if s.cfg.Health != nil {
		report, able = s.cfg.Health(r.Context())
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	if !able && !onSocket(r) { // commands on the socket need the report, and would treat an error status as a refusal
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_, _ = w.Write(append(tool.Encode(report), '\n'))
}

func (s *Server) metrics(w http.ResponseWriter, r *http.Request) {
	if s.cfg.Metrics == nil {
		notFound(w, r)
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	s.cfg.Metrics.ServeHTTP(w, r)
}

// register responds to clients that react to a 401 by trying to register through OAuth. Two of these clients print the
// error_description.
func (s *Server) register(w http.ResponseWriter, _ *http.Request) {
	text := "this server does not support OAuth: " + howToToken
	if !s.cfg.RequireToken && !s.cfg.UserOnly {
		text += "; at this address, the token is optional"
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusNotFound)
	_, _ = w.Write(tool.Encode(map[string]string{"error": "invalid_request", "error_description": text}))
}

const homePage = `mailtree %[1]s: mail, search and file claims for coding agents.

MCP endpoint (Streamable HTTP): http://%[2]s/mcp
Postal, for the agent NAME: http://%[2]s/agents/NAME/mcp
Health: http://%[2]s/health
`

// home shows the page to browsers and a list of addresses to other clients.
func (s *Server) home(w http.ResponseWriter, r *http.Request) {
	if s.forPage(r) {
		s.servePage(w, r)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = fmt.Fprintf(w, homePage, s.cfg.Version, r.Host)
}

// nothing is the handler for unknown paths. Browsers get a response from the web page.
func (s *Server) nothing(page http.Handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if s.forPage(r) {
			page.ServeHTTP(w, r)
			return
		}
		notFound(w, r)
	}
}

// notFound responds with a real 404. Clients probe /.well-known/ for OAuth metadata and would mistake any page for it.
// The server serves only its card there.
func notFound(w http.ResponseWriter, _ *http.Request) {
	http.Error(w, "404: there is nothing here. The MCP endpoint is /mcp, and the server's state is at /health.", http.StatusNotFound)
}
