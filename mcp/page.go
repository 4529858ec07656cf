package mcp

import (
	"context"
	"net/http"
	"strings"

	"mailtree/maildir"
	"mailtree/mcp/tool"
)

// Page is the web page for users. The page itself checks which users may read and write.
type Page interface {
	http.Handler
	// Patterns returns the patterns (see http.ServeMux) of the paths that only the page serves.
	Patterns() []string
	// Wants reports whether a request for the path / or for an unknown path is for the page. If it is not, the server
	// itself responds.
	Wants(r *http.Request) bool
	// Link returns a path that works only once. Opening it signs the user in and shows the project with the given slug,
	// or the home page if slug is "". The parameter auth says how the server identified the user.
	Link(person, auth, slug string) string
}

func (s *Server) forPage(r *http.Request) bool { return s.cfg.Page != nil && s.cfg.Page.Wants(r) }

// servePage passes a request to the page. The limit for streams applies to the page's streams. The limit for requests
// applies to all other requests.
func (s *Server) servePage(w http.ResponseWriter, r *http.Request) {
	switch {
	case s.cfg.Page == nil:
		notFound(w, r)
	case strings.HasSuffix(r.URL.Path, "/stream"): // regardless of the Accept header
		s.lasting(w, r, func(ctx context.Context, a *answer) { s.cfg.Page.ServeHTTP(a, r.WithContext(ctx)) })
	default:
		place := s.limits.admit(r.ContentLength > smallBody)
		if place == nil {
			busy(w, nil, "too many requests", aMoment)
			return
		}
		defer place.leave()
		s.cfg.Page.ServeHTTP(w, r)
	}
}

// LinkAsk is the body of POST /mailtree/link. It names the user who wants to open the page. If the request specifies a
// project, the page opens at that project.
type LinkAsk struct {
	Person string `json:"person"`
}

// PageLink is the response to POST /mailtree/link.
type PageLink struct {
	URL string `json:"url"`
}

func (s *Server) link(ctx context.Context, p *maildir.Project, ask *LinkAsk) (made PageLink, err error) {
	if s.cfg.Page == nil || s.cfg.URL == nil {
		return made, tool.Refused(maildir.ErrConflict, "this server does not serve the web page")
	}
	url, err := s.cfg.URL(ctx)
	if err != nil {
		return made, tool.Refused(maildir.ErrUnavailable, "cannot serve the page: %v", err)
	}
	slug := ""
	if p != nil {
		slug = p.Slug
	}
	made.URL = url + s.cfg.Page.Link(ask.Person, tool.PeerAuth(tool.CallerOf(ctx).UID), slug)
	return made, nil
}
