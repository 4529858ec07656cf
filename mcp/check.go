package mcp

import (
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"mailtree/maildir/format"
	"mailtree/mcp/protocol"
	"mailtree/mcp/tool"
)

// checkHost refuses requests for another host. This stops DNS rebinding, an attack in which a web page makes its own
// host name resolve to this machine. A server bound to loopback accepts only loopback names and addresses. A server
// bound to an address also accepts that address. A server bound to all addresses accepts any name, because the token
// protects it. Config.Hosts lists more names to accept.
func (s *Server) checkHost(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.rightHost(hostname(r.Host)) {
			http.Error(w, "403: this server does not serve the host "+r.Host+"; use the address that it listens on", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (s *Server) rightHost(host string) bool {
	if loopback(host) {
		return true
	}
	if ip, err := netip.ParseAddr(s.cfg.Host); err == nil && ip.IsUnspecified() {
		return host != ""
	}
	same := func(name string) bool { return strings.EqualFold(name, host) }
	return !loopback(s.cfg.Host) && same(s.cfg.Host) || slices.ContainsFunc(s.cfg.Hosts, same)
}

// checkOrigin refuses requests from web pages of other origins, regardless of the method. Programs other than browsers
// send no Origin header. Pages of this server are allowed. If the server is on loopback, pages from another port of the
// same host are allowed too. Browsers omit Origin from some requests, such as requests for images and links, and send
// Sec-Fetch-Site instead.
func (s *Server) checkOrigin(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !rightOrigin(r) {
			http.Error(w, "403: requests from web pages on other origins are refused", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func rightOrigin(r *http.Request) bool {
	switch origins := r.Header.Values("Origin"); len(origins) {
	case 0:
		return !slices.ContainsFunc(r.Header.Values("Sec-Fetch-Site"), foreignSite)
	case 1:
		return sameOrigin(origins[0], r.Host)
	}
	return false
}

// foreignSite reports whether a Sec-Fetch-Site header says that the request comes from a page of another origin. If
// foreignSite returns false, the request comes from a page of this server or directly from the user.
func foreignSite(site string) bool { return site != "same-origin" && site != "none" }

func sameOrigin(origin, host string) bool {
	u, err := url.Parse(origin)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.Path != "" || u.RawQuery != "" {
		return false
	}
	if name := hostname(u.Host); loopback(name) {
		return strings.EqualFold(name, hostname(host))
	}
	return strings.EqualFold(u.Host, host)
}

// hostname returns the host part of host:port without brackets.
func hostname(hostport string) string {
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		return h
	}
	return strings.TrimSuffix(strings.TrimPrefix(hostport, "["), "]")
}

func loopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

// checkToken uses the token to identify the caller. It refuses a wrong token even if no token is required, because a
// client that sends a token expects to be identified by it.
func (s *Server) checkToken(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		given, c := r.Header.Values("Authorization"), tool.Unknown()
		c.Door, c.Here = format.DoorHTTP, here(r)
		switch {
		case len(given) > 0 && s.cfg.Token != "":
			if len(given) > 1 || !s.rightToken(given[0]) {
				unauthorized(w, `, error="invalid_token"`, "invalid token: "+howToToken)
				return
			}
			c.Auth = "token"
		case s.cfg.RequireToken: // refuse the request even if the server has no token
			unauthorized(w, "", "this server requires a token: "+howToToken)
			return
		}
		next.ServeHTTP(w, r.WithContext(tool.WithCaller(r.Context(), c)))
	})
}

// here reports whether a request comes from this machine. It returns false if a forwarding header shows that the
// request came through a proxy or tunnel.
func here(r *http.Request) bool {
	forwarded := r.Header.Get("Forwarded") != "" || r.Header.Get("X-Forwarded-For") != ""
	return loopback(hostname(r.RemoteAddr)) && !forwarded
}

// rightToken compares the token in constant time, regardless of the token's length.
func (s *Server) rightToken(header string) bool {
	scheme, token, _ := strings.Cut(header, " ")
	sum := sha256.Sum256([]byte(strings.TrimSpace(token)))
	return subtle.ConstantTimeCompare(sum[:], s.token[:]) == 1 && strings.EqualFold(scheme, "Bearer")
}

const howToToken = "send the header Authorization: Bearer TOKEN, where TOKEN is the content of the file named token in the mail store"

func unauthorized(w http.ResponseWriter, detail, text string) {
	w.Header().Set("WWW-Authenticate", `Bearer realm="mailtree"`+detail)
	writeError(w, http.StatusUnauthorized, nil, protocol.CodeDenied, text)
}
