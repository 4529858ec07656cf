package mcp

import (
	"context"
	"net/http"
	"strings"

	"mailtree/maildir"
	"mailtree/mcp/tool"
)

// Page is the page for people. It decides itself who may read and write there.
type Page interface {
	http.Handler
	// Link makes a path that begins a session of a person, whom the server knows by auth, once, and
	// opens the project of that slug, the first page where slug is "".
	Link(person, auth, slug string) string
}

// pagePaths are the addresses that are the page's alone.
var pagePaths = []string{"/p/", "GET /open/", "GET /static/"}

// servePage hands a request to the page. It counts among the requests, a stream among the streams.
func (s *Server) servePage(w http.ResponseWriter, r *http.Request) {
	switch {
	case s.cfg.Page == nil:
		notFound(w, r)
	case strings.HasSuffix(r.URL.Path, "/stream"): // whatever it accepts
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

// LinkAsk is the body of POST /mailtree/link: who wants to open the page, of the project or the first
// one.
type LinkAsk struct {
	Person string `json:"person"`
}

// PageLink opens the page, once.
type PageLink struct {
	URL string `json:"url"`
}

func (s *Server) link(ctx context.Context, p *maildir.Project, ask *LinkAsk) (made PageLink, err error) {
	if s.cfg.Page == nil || s.cfg.URL == "" {
		return made, tool.Refused(maildir.ErrConflict,
			"the server runs in the background, where it has no page: run `mailtree serve`, and this again")
	}
	slug := ""
	if p != nil {
		slug = p.Slug
	}
	made.URL = s.cfg.URL + s.cfg.Page.Link(ask.Person, tool.PeerAuth(tool.CallerOf(ctx).UID), slug)
	return made, nil
}
