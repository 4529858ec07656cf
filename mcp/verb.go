package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strconv"

	"mailtree/maildir"
	"mailtree/mcp/protocol"
	"mailtree/mcp/tool"
)

// maxVerb is the maximum size in bytes of the body of a POST /mailtree/…. A message of the default maximum size fits,
// even if every byte is escaped.
const maxVerb = 64 << 20

// verb returns the handler for a POST /mailtree/…?project=… by the OS user who runs the server. The function do gets
// the project and the decoded body, and returns the response. If the request does not specify a project, the project is
// nil.
func verb[Ask, Answer any](s *Server, do func(context.Context, *maildir.Project, *Ask) (Answer, error)) http.Handler {
	return s.requireOwner(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p, ask, err := readVerb[Ask](s, w, r)
		var answer Answer
		if err == nil {
			answer, err = do(r.Context(), p, ask)
		}
		s.answerVerb(w, r, answer, err)
	}))
}

// streamVerb is like verb, but its response is a stream of lines. Each value that do passes to say is sent immediately
// as a line of JSON. If do returns an error before the first line, streamVerb reports the error in the same way as
// verb. After the first line, it sends the error as the last line, {"error": …}. It drops the error if the client has
// disconnected or the server is stopping.
func streamVerb[Ask any](s *Server, do func(ctx context.Context, p *maildir.Project, ask *Ask, say func(any) error) error) http.Handler {
	return s.requireOwner(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p, ask, err := readVerb[Ask](s, w, r)
		if err != nil {
			s.answerVerb(w, r, nil, err)
			return
		}
		s.lasting(w, r, func(ctx context.Context, a *answer) {
			said := false
			say := func(v any) error {
				said = true
				a.Header().Set("Content-Type", "application/x-ndjson")
				if _, err := a.Write(append(tool.Encode(v), '\n')); err != nil {
					return err
				}
				return a.FlushError()
			}
			switch err := do(ctx, p, ask, say); {
			case err == nil || ctx.Err() != nil:
			case said:
				s.log.Warn("refused", "path", r.URL.Path, "error", err)
				_ = say(failure{s.cfg.Explain(err)})
			default:
				s.answerVerb(a, r, nil, err)
			}
		})
	}))
}

// inProject wraps a verb that needs a project. It refuses requests that do not specify one.
func (s *Server) inProject(verb http.Handler) http.Handler {
	return s.requireOwner(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("project") == "" {
			s.answerVerb(w, r, nil, tool.Invalid("the request does not specify a project: add ?project=NAME"))
			return
		}
		verb.ServeHTTP(w, r)
	}))
}

// failure is the last line of a stream that ended early.
type failure struct {
	Error string `json:"error"`
}

// readVerb decodes the body of a POST /mailtree/… and finds the request's project.
func readVerb[Ask any](s *Server, w http.ResponseWriter, r *http.Request) (p *maildir.Project, ask *Ask, err error) {
	ask = new(Ask)
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxVerb)).Decode(ask); err != nil && !errors.Is(err, io.EOF) {
		return nil, nil, tool.Invalid("the request body does not match this version of mailtree: use the same version for the " +
			"command and the server")
	}
	if name := r.URL.Query().Get("project"); name != "" {
		p, err = s.cfg.Store.ProjectNamed(r.Context(), name)
	}
	return p, ask, err
}

// answerVerb answers a POST /mailtree/… with v, or with a refusal if err is not nil.
func (s *Server) answerVerb(w http.ResponseWriter, r *http.Request, v any, err error) {
	switch {
	case err == nil:
		text := tool.Encode(v)
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", strconv.Itoa(len(text))) // lets the client detect the end of a flushed response
		_, _ = w.Write(text)
	case r.Context().Err() == nil:
		status, level := http.StatusConflict, slog.LevelWarn
		if errors.Is(err, maildir.ErrNotFound) { // this error is common: every command outside a project causes it
			status, level = http.StatusNotFound, slog.LevelDebug
		}
		s.log.Log(r.Context(), level, "refused", "path", r.URL.Path, "error", err)
		writeError(w, status, nil, protocol.CodeRequest, s.cfg.Explain(err))
	}
}
