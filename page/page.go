// Package page shows users their mail in a browser: waiting items, mailboxes, threads, agents, and claims. It makes no
// decisions of its own. It calls maildir and shows the results.
//
//   - Every view has a URL, works without scripts, and is rendered from one template in templates/.
//   - On loopback, reading requires no session unless Config.Closed is set. Writing always
//     requires a session (session.go).
//   - Text from agents is data. Names and subjects are escaped, and their writing direction cannot affect the
//     surrounding text. Bodies go through maildir/markdown, which renders and cleans them (body.go). No view loads
//     anything from other sites, and Content-Security-Policy enforces that.
//   - The page's own script replaces the part of a view that has changed (static/script.js, stream.go).
//
// A user is an agent like any other. Messages that a user sends are sealed with format.DoorPage.
package page

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"mailtree/maildir"
	"mailtree/maildir/format"
	"mailtree/maildir/media"
)

// Config specifies which mail the page shows, and to which users. Store is required.
type Config struct {
	Store   *maildir.Store
	Person  string             // the user whose mail is shown without a session; if "", no inbox is shown without one
	Closed  bool               // whether reading also requires a session
	Explain func(error) string // returns the text for a refusal; if nil, refusals keep their own text
	Nudge   NudgeFunc          // if nil, agents cannot be woken from the page
	Now     func() time.Time   // if nil, time.Now is used
	Log     *slog.Logger       // if nil, log lines are discarded

	// Looked is called each time the page shows a thread. It may be nil.
	Looked func(project, thread string)
}

// NudgeFunc wakes an agent to read its mail. It calls told once for each of the agent's sessions that it has tried to
// wake. If the session was notified, why is "".
type NudgeFunc func(ctx context.Context, project, agent string, told func(how, why string)) error

// Page serves the views. Use New to create one. A Page is safe for concurrent use.
type Page struct {
	cfg Config
	key []byte // signs the sessions
	mux *http.ServeMux
	// patterns are the patterns registered with mux, except those for the home page and for unknown paths.
	patterns []string

	forms forms

	mu     sync.Mutex
	links  map[string]link // keyed by code
	waits  map[mailbox]*kept[maildir.Waits]
	crowds map[*maildir.Project]*kept[crowd]
	states map[*maildir.Project]*state
	kept   []keptFile    // files of refused forms, oldest first
	undone []undoneDraft // content of recently undone messages, oldest first

	memory *semaphore.Weighted // mostHeld bytes of memory for responses
}

// New returns a page. It does not start any goroutines.
func New(cfg Config) *Page {
	if cfg.Explain == nil {
		cfg.Explain = error.Error
	}
	if cfg.Looked == nil {
		cfg.Looked = func(string, string) {}
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	h := &Page{
		cfg:    cfg,
		key:    sessionKey(cfg.Store.Token()),
		mux:    http.NewServeMux(),
		forms:  forms{by: map[formSum]*handling{}},
		links:  map[string]link{},
		waits:  map[mailbox]*kept[maildir.Waits]{},
		crowds: map[*maildir.Project]*kept[crowd]{},
		states: map[*maildir.Project]*state{},
		memory: semaphore.NewWeighted(mostHeld),
	}
	h.mount()
	return h
}

// Patterns returns the patterns (see http.ServeMux) of the paths that only the page serves. If Wants returns true for a
// request, the page also serves "GET /{$}" and unknown paths.
func (h *Page) Patterns() []string { return slices.Sorted(slices.Values(h.patterns)) }

// Wants reports whether the page must handle a request for a path that is not among Patterns. It returns true if a
// browser opens a view, or if the script asks for part of a view.
func (h *Page) Wants(r *http.Request) bool {
	asksPart := r.Header.Get(fragmentHeader) != ""
	return r.Method == http.MethodGet && (asksPart || strings.Contains(r.Header.Get("Accept"), "text/html"))
}

func (h *Page) handle(pattern string, handler http.Handler) {
	h.mux.Handle(pattern, handler)
	h.patterns = append(h.patterns, pattern)
}

// mount registers the handlers.
func (h *Page) mount() {
	h.handle("GET /static/{name}", http.HandlerFunc(serveAsset))
	h.handle("GET /favicon.ico", http.RedirectHandler("/static/icon.svg", http.StatusMovedPermanently))
	h.handle("GET /open/{code}", http.HandlerFunc(h.enter))
	for path, show := range map[string]func(*view) error{
		"GET /p/{project}/{$}":                      h.waiting,
		"GET /p/{project}/inbox":                    h.inbox,
		"GET /p/{project}/threads":                  h.threads,
		"GET /p/{project}/search":                   h.search,
		"GET /p/{project}/thread/{id}":              h.thread,
		"GET /p/{project}/thread/{id}/atom":         h.atom,
		"GET /p/{project}/message/{id}":             h.message,
		"GET /p/{project}/message/{id}/history":     h.history,
		"GET /p/{project}/message/{id}/image/{sum}": h.image,
		"GET /p/{project}/decisions":                h.decisions,
		"GET /p/{project}/compose":                  h.compose,
		"GET /p/{project}/agents":                   h.agents,
		"GET /p/{project}/claims":                   h.claimList,
		"GET /p/{project}/activity":                 h.activity,
		"GET /p/{project}/problems":                 h.problemsView,
		"GET /p/{project}/more":                     h.more,
		"POST /p/{project}/send":                    h.sending(h.send),
		"POST /p/{project}/message/{id}/decide":     h.sending(h.decide),
		"POST /p/{project}/done":                    h.finishing(h.done),
		"POST /done":                                h.finishing(h.done),
		"POST /p/{project}/dismiss":                 h.write(h.dismiss),
		"POST /dismiss":                             h.write(h.dismiss),
		"POST /p/{project}/message/{id}/mark":       h.finishing(h.mark),
		"POST /p/{project}/message/{id}/undo":       h.write(h.undo),
		"POST /message/{id}/undo":                   h.write(h.undo),
		"POST /p/{project}/agents/{agent}/nudge":    h.write(h.nudge),
		"POST /p/{project}/agents/{agent}/hold":     h.write(h.holdAgent),
		"POST /p/{project}/agents/{agent}/go":       h.write(h.endHold),
		"POST /p/{project}/claims/release":          h.write(h.release),
		"POST /p/{project}/claims/undo":             h.write(h.unrelease),
	} {
		h.handle(path, h.view(whileMade, show))
	}
	for path, show := range map[string]func(*view) error{
		"GET /p/{project}/message/{id}/raw": h.raw,
		"GET /p/{project}/stream":           h.stream,
		"GET /stream":                       h.stream,
	} {
		h.handle(path, h.view(pieceBytes, show))
	}
	h.handle("GET /p/{project}/file/{sum}", h.view(pieceBytes+media.HeadBytes, h.file))
	unknown := h.view(pieceBytes, func(*view) error { return errNoView })
	h.handle("/p/", unknown)
	h.mux.Handle("GET /{$}", h.view(whileMade, h.all))
	h.mux.Handle("/", unknown)
}

// errNoProject means that the store has no project with the name in the URL.
var errNoProject = errors.New("no such project")

// errNoView means that the page has no view at the requested URL.
var errNoView = errors.New("page not found")

// ServeHTTP handles one request.
func (h *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.mux.ServeHTTP(w, r) }

// policy restricts the page to its own content and forms.
const policy = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

func protect(header http.Header) {
	header.Set("Content-Security-Policy", policy)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "same-origin") // with no-referrer, browsers would send forms with the origin "null"
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
}

// view converts a function that shows a view into a handler. While the view is being built, it may use up to takes
// bytes of memory.
func (h *Page) view(takes int64, show func(*view) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		protect(w.Header())
		w.Header().Set("Cache-Control", "no-store")
		v := &view{
			Now:  h.cfg.Now(),
			Path: r.URL.Path,
			page: h,
			w:    w,
			r:    r,
		}
		v.session, v.Signed = h.sessionOf(r)
		v.Me = maildir.PersonName(v.session.Person)
		if !v.Signed {
			v.Me = maildir.PersonName(h.cfg.Person)
		}
		if h.cfg.Closed && !v.Signed {
			v.fail(http.StatusForbidden, needSession)
			return
		}
		if !v.reserve(takes) {
			return
		}
		defer v.giveBack(0)
		err := v.findProject()
		if err == nil {
			err = show(v)
		}
		if err != nil {
			v.refuse(err)
		}
	})
}

const needSession = "Open this page from a terminal on this machine: run `mailtree open`."

// findProject finds the project named in the request's path, if any.
func (v *view) findProject() error {
	slug := v.r.PathValue("project")
	if slug == "" {
		return nil
	}
	p, err := v.page.cfg.Store.Project(v.ctx(), slug)
	if errors.Is(err, maildir.ErrNotFound) {
		return errNoProject
	}
	if err != nil {
		return err
	}
	v.p, v.Project, v.State = p, shownProject(p), v.page.stateOf(p)
	return nil
}

// refuse responds with an error.
func (v *view) refuse(err error) {
	if v.ctx().Err() == nil {
		v.fail(v.reason(err))
	}
}

// reason returns the status and the text for an error. It logs errors that are not refusals.
func (v *view) reason(err error) (status int, text string) {
	switch {
	case errors.Is(err, errNoView):
		return http.StatusNotFound, "Page not found."
	case errors.Is(err, errNoProject):
		return http.StatusNotFound, "No project " + strconv.Quote(v.r.PathValue("project")) + ". The home page lists the projects."
	case errors.Is(err, errNoWrite):
		return http.StatusForbidden, "You can read this page; " + err.Error() + "."
	case errors.Is(err, errAsks):
		return http.StatusConflict, "Nothing was changed: this thread is waiting for your answer. Reply to it, acknowledge it or archive it."
	case errors.Is(err, errAsksThere):
		return http.StatusConflict, "Nothing was changed in one of the projects, because a thread there is waiting for your answer."
	case errors.Is(err, errFiles):
		return http.StatusBadRequest, "Nothing was sent: a Yes or No answer cannot include files. Use Send, or remove the files."
	case errors.Is(err, errAs):
		return http.StatusBadRequest, "Nothing was sent: the answer is neither Yes nor No."
	case errors.Is(err, errLater):
		return http.StatusBadRequest, "Nothing was hidden: the message is not a question from a verified agent of this store."
	case errors.Is(err, errNotPerson):
		return http.StatusForbidden, "Nothing was changed: you are signed in as an agent, and only users may hold agents."
	case errors.Is(err, errNoText):
		return http.StatusBadRequest, "Nothing was sent: the message has no text."
	case errors.Is(err, errNobody):
		return http.StatusBadRequest, "Nothing was sent: no recipient is selected."
	case errors.Is(err, maildir.ErrNotFound):
		status = http.StatusNotFound
	case errors.Is(err, maildir.ErrInvalid):
		status = http.StatusBadRequest
	case errors.Is(err, maildir.ErrDenied):
		status = http.StatusForbidden
	case errors.Is(err, maildir.ErrConflict), errors.Is(err, maildir.ErrExist):
		status = http.StatusConflict
	case errors.Is(err, maildir.ErrTooLarge):
		status = http.StatusRequestEntityTooLarge
	case errors.Is(err, maildir.ErrUnavailable):
		status = http.StatusServiceUnavailable
	default:
		v.page.cfg.Log.Error("page: internal error", "path", v.Path, "error", err)
		return http.StatusInternalServerError, "Something went wrong. See the server's log."
	}
	return status, v.page.cfg.Explain(err)
}

// fail responds with a view that consists of one sentence.
func (v *view) fail(status int, text string) {
	v.Title = http.StatusText(status)
	if err := v.showAs(status, "refused", text); err != nil {
		v.page.cfg.Log.Error("page: failed to render a template", "error", err)
	}
}

// show responds with a view, rendered from a template and its data.
func (v *view) show(name string, data any) error { return v.showAs(http.StatusOK, name, data) }

func (v *view) showAs(status int, name string, data any) error {
	v.Data = data
	t, part := templates()[name], "base"
	if v.r.Header.Get(fragmentHeader) != "" {
		part = "main"
	}
	var b bytes.Buffer
	if err := t.ExecuteTemplate(&b, part, v); err != nil {
		return err
	}
	v.w.Header().Set("Content-Type", "text/html; charset=utf-8")
	v.w.Header().Set("Vary", "Accept-Encoding")
	text := b.Bytes()
	if takesGzip(v.r) {
		v.w.Header().Set("Content-Encoding", "gzip")
		text = zip(text)
	}
	v.writeWhole(status, text)
	return nil
}

// fragmentHeader is the request header that asks for only the part of a view that the script replaces. Its value is
// the tick at which the view changed, or 1 to request the current state.
const fragmentHeader = "Mailtree-Fragment"

// goTo responds with a redirect to a view.
func (v *view) goTo(path string) error {
	http.Redirect(v.w, v.r, path, http.StatusSeeOther)
	return nil
}

func (v *view) ctx() context.Context { return v.r.Context() }

// box returns the user's mailbox in the view's project.
func (v *view) box() *maildir.Box { return v.p.Box(v.Me, v.origin()) }

// origin describes how the user's messages reached the server.
func (v *view) origin() format.Origin {
	return format.Origin{Auth: v.session.Auth, Door: format.DoorPage}
}

// asked returns the value of a URL parameter.
func (v *view) asked(name string) string { return v.r.URL.Query().Get(name) }

// at returns the URL of a view of the current project, or of all projects.
func (v *view) at(elements ...string) string { return inProject(v.Slug(), elements...) }

// inProject returns the URL of a view of a project, or of a view of all projects if slug is "".
func inProject(slug string, elements ...string) string {
	path := "/"
	if slug != "" {
		path = "/p/" + url.PathEscape(slug) + "/"
	}
	for i, e := range elements {
		if i > 0 {
			path += "/"
		}
		path += segment(e)
	}
	return path
}

// segment returns a name as a path segment. The names "." and ".." are valid thread ids, but URL escaping leaves them
// unchanged. Therefore segment escapes them itself, and fromSegment undoes this.
func segment(name string) string {
	if name == "." || name == ".." {
		name = strings.ReplaceAll(name, ".", "%2E")
	}
	return url.PathEscape(name)
}

// fromSegment returns the name that segment encoded as part.
func fromSegment(part string) string {
	if part == "%2E" || part == "%2E%2E" {
		return strings.ReplaceAll(part, "%2E", ".")
	}
	return part
}
