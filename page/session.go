package page

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/url"
	"time"
)

// A session associates a browser with a user. It begins with a one-time link, which only the OS user who owns the
// store can request, over the socket. A session is stored only in a cookie, not on the server, so it survives a
// restart of the server. Replacing the store's token ends all sessions.

const (
	linkLasts    = 10 * time.Minute
	sessionLasts = 30 * 24 * time.Hour
	maxLinks     = 100 // maximum number of unused links
)

// session identifies the user of a browser.
type session struct {
	Person string    `json:"person"`
	Auth   string    `json:"auth"` // how the server authenticated the user, such as uid:1000
	Ends   time.Time `json:"ends"`
}

// link is a one-time link that has not been used yet.
type link struct {
	session
	to   string // path of the view to open
	ends time.Time
}

// sessionKey returns the key that signs the sessions of a store with the given token.
func sessionKey(token string) []byte {
	sum := sha256.Sum256([]byte("mailtree page\n" + token))
	return sum[:]
}

// Link creates a link that signs in a user whom the server has authenticated by auth. The link opens the project with
// the given slug, or the home page if slug is "". Link returns the link's path on this server. The link works only once
// and expires after ten minutes.
func (h *Page) Link(person, auth, slug string) string {
	to := "/"
	if slug != "" {
		to = inProject(slug)
	}
	now := h.cfg.Now()
	h.mu.Lock()
	defer h.mu.Unlock()
	for code, l := range h.links {
		if now.After(l.ends) || len(h.links) >= maxLinks {
			delete(h.links, code)
		}
	}
	code := rand.Text()
	h.links[code] = link{session{person, auth, now.Add(sessionLasts)}, to, now.Add(linkLasts)}
	return "/open/" + code
}

// enter begins the session for a link.
func (h *Page) enter(w http.ResponseWriter, r *http.Request) {
	protect(w.Header())
	if r.Method == http.MethodHead { // a HEAD request does not use up the link
		return
	}
	h.mu.Lock()
	l, ok := h.links[r.PathValue("code")]
	delete(h.links, r.PathValue("code"))
	h.mu.Unlock()
	if !ok || h.cfg.Now().After(l.ends) {
		v := &view{Now: h.cfg.Now(), page: h, w: w, r: r}
		v.fail(http.StatusForbidden, "This link is no longer valid. A link works once, for ten minutes, and only until the server restarts. "+
			"For a new link, run `mailtree open`.")
		return
	}
	http.SetCookie(w, &http.Cookie{
		Name:     cookieName(r),
		Value:    h.signed(&l.session),
		Path:     "/",
		MaxAge:   int(sessionLasts / time.Second),
		HttpOnly: true,
		SameSite: http.SameSiteStrictMode,
	})
	http.Redirect(w, r, l.to, http.StatusSeeOther)
}

// cookieName returns the name of this server's cookie. The name contains the port, because cookies are shared by all
// ports of a host.
func cookieName(r *http.Request) string {
	_, port, err := net.SplitHostPort(r.Host)
	if err != nil {
		port = "80"
	}
	return "mailtree-" + port
}

// signed returns a session in the form that is stored in the cookie.
func (h *Page) signed(s *session) string {
	text, err := json.Marshal(s)
	if err != nil {
		panic(err) // cannot fail: s contains only strings and a time
	}
	value := base64.RawURLEncoding.EncodeToString(text)
	return value + "." + h.signature("session", value)
}

func (h *Page) signature(what, value string) string {
	m := hmac.New(sha256.New, h.key)
	m.Write([]byte(what + "\n" + value))
	return base64.RawURLEncoding.EncodeToString(m.Sum(nil))
}

// sessionOf returns the session that a request belongs to.
func (h *Page) sessionOf(r *http.Request) (s session, ok bool) {
	c, err := r.Cookie(cookieName(r))
	if err != nil || len(c.Value) < 44 {
		return s, false
	}
	value, given := c.Value[:len(c.Value)-44], c.Value[len(c.Value)-43:] // 43 is the length of a SHA-256 in base64
	text, err := base64.RawURLEncoding.DecodeString(value)
	if err != nil || !hmac.Equal([]byte(given), []byte(h.signature("session", value))) || json.Unmarshal(text, &s) != nil {
		return session{}, false
	}
	if h.cfg.Now().After(s.Ends) {
		return session{}, false
	}
	return s, true
}

// errNoWrite is the error for a form that was not sent from a view in a session.
var errNoWrite = errors.New("to write, run `mailtree open` once and open the link in this browser")

// ownOrigin reports whether a form comes from a page at exactly this host and port. Another port belongs to another
// program. If the browser does not report the form's origin, ownOrigin returns true.
func ownOrigin(r *http.Request) bool {
	for _, origin := range r.Header.Values("Origin") {
		if u, err := url.Parse(origin); err != nil || u.Host != r.Host {
			return false
		}
	}
	site := r.Header.Get("Sec-Fetch-Site")
	return site == "" || site == "same-origin"
}
