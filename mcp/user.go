package mcp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"

	"mailtree/mcp/peeruid"
	"mailtree/mcp/protocol"
)

// userKey is the context key of a TCP connection's OS user.
type userKey struct{}

// tcpUser identifies the OS user at the other end of a TCP connection. If the user is unknown, err gives the reason.
type tcpUser struct {
	uid int
	err error
}

// findUser looks up the OS user of a new TCP connection for checkUser. It is called once per connection by http.Server,
// before the first request.
func findUser(ctx context.Context, c net.Conn) context.Context {
	uid, err := peeruid.Of(c)
	return context.WithValue(ctx, userKey{}, tcpUser{uid, err})
}

// checkUser refuses requests from this machine's other OS users (Config.UserOnly). It admits the server's own user,
// root, and anyone who sends the right token.
func (s *Server) checkUser(next http.Handler) http.Handler {
	if !s.cfg.UserOnly {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if given := r.Header.Values("Authorization"); len(given) == 1 && s.cfg.Token != "" && s.rightToken(given[0]) {
			next.ServeHTTP(w, r)
			return
		}
		u, ok := r.Context().Value(userKey{}).(tcpUser)
		if !ok {
			u.err = errors.New("the connection's user was not looked up")
		}
		if u.err == nil && (u.uid == 0 || u.uid == os.Geteuid()) {
			next.ServeHTTP(w, r)
			return
		}
		s.log.Debug("refused a request from another user", "uid", u.uid, "error", u.err)
		if strings.Contains(r.Header.Get("Accept"), "text/html") {
			http.Error(w, "403: "+u.refusal(), http.StatusForbidden)
			return
		}
		writeError(w, http.StatusForbidden, nil, protocol.CodeDenied, u.refusal())
	})
}

// refusal returns a message that explains why the user may not use the server and describes two ways to get access.
func (u tcpUser) refusal() string {
	who := fmt.Sprintf("you are user %d", u.uid)
	if u.err != nil {
		who = "it cannot tell which user you are"
	}
	return fmt.Sprintf("this server is for user %d, but %s. Send the header Authorization: Bearer TOKEN; user %[1]d can print the "+
		"token with `mailtree token`. Or start the server with AUTH=open, which opens all mail to every user of this machine", os.Geteuid(), who)
}
