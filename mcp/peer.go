package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"

	"mailtree/maildir/format"
	"mailtree/mcp/protocol"
	"mailtree/mcp/socket"
	"mailtree/mcp/tool"
)

// The Unix socket serves HTTP like the TCP port, but with different paths:
//
//	/toolset/<name>/mcp    the toolset in both protocol eras, as on TCP
//	/toolset/<name>/hold   GET: a response that stays open until the client or the server ends.
//	                       A bridge uses it to keep the server running and to notice when the server stops
//	/health, /metrics      as on TCP, but the status of /health is always 200
//	/mailtree/<verb>       POST, JSON: a request from a command of the same version, optionally with ?project=<a key,
//	                       a slug, or the last element of a path> (each verb is in a file with its name)
//	/yield                 POST: stops a background server so that another server can start
//
// For every connection, the server looks up the OS user at the other end. That user is the caller. The server's own
// user and root may use everything. If SOCKET admits other users, they may use the multi-user toolsets (aimx). No
// token is needed. A bridge sends its agent, project and folder in protocol.HelloHeader. The server ignores this
// header on TCP. The socket has the same limits as TCP, and other users have separate, lower limits.

type uidKey struct{}

// SocketServer returns an http.Server for a socket.Listener. It has the same limits as the server that HTTPServer
// returns.
func (s *Server) SocketServer() *http.Server {
	srv := s.HTTPServer("")
	srv.Handler = s.socketHandler()
	srv.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		if p, ok := c.(*socket.Conn); ok {
			ctx = context.WithValue(ctx, uidKey{}, p.UID)
		}
		return ctx
	}
	return srv
}

func (s *Server) socketHandler() http.Handler {
	mux := http.NewServeMux()
	for _, d := range s.routes {
		path := "/toolset/" + d.name
		mux.Handle(path+"/mcp", s.allowToolset(d, s.endpoint(d)))
		mux.Handle("GET "+path+"/hold", s.allowToolset(d, http.HandlerFunc(s.hold)))
	}
	mux.Handle("/toolset/{name}/", http.HandlerFunc(s.noToolset))
	mux.Handle("GET /health", s.requireOwner(http.HandlerFunc(s.health)))
	mux.Handle("GET /metrics", s.requireOwner(http.HandlerFunc(s.metrics)))
	for name, h := range s.verbs() {
		mux.Handle("POST /mailtree/"+name, h)
	}
	mux.Handle("POST /yield", s.requireOwner(http.HandlerFunc(s.yield)))
	mux.HandleFunc("/", notFound)
	return s.recover(s.logged(s.peer(s.checkOrigin(mux))))
}

// verbs returns the handlers of /mailtree/<verb>. The keys are the verbs.
func (s *Server) verbs() map[string]http.Handler {
	all := map[string]http.Handler{
		"agent":          s.inProject(verb(s, s.newAgent)),
		"amend":          s.inProject(verb(s, s.amend)),
		"amendable":      s.inProject(verb(s, s.amendable)),
		"archive":        s.inProject(verb(s, s.archiveMessage)),
		"backup":         s.requireOwner(http.HandlerFunc(s.backup)),
		"catchup":        verb(s, s.catchUp),
		"complete":       verb(s, s.complete),
		"decide":         s.inProject(verb(s, s.decide)),
		"decisions":      verb(s, s.decisions),
		"delete":         s.inProject(verb(s, s.deleteMessage)),
		"desk":           s.inProject(verb(s, s.desk)),
		"dismiss":        s.inProject(verb(s, s.dismiss)),
		"draft":          s.inProject(verb(s, s.newDraft)),
		"finish":         s.inProject(verb(s, s.finishMessages)),
		"folder":         verb(s, s.linkFolder),
		"forward":        s.inProject(verb(s, s.forward)),
		"free":           s.inProject(verb(s, s.free)),
		"go":             s.inProject(verb(s, s.endHold)),
		"hold":           s.inProject(verb(s, s.holdAgent)),
		"hook":           verb(s, s.hookEvent),
		"join":           verb(s, s.join),
		"later":          s.inProject(verb(s, s.later)),
		"link":           verb(s, s.link),
		"log":            s.inProject(streamVerb(s, s.logHistory)),
		"looking":        s.inProject(verb(s, s.looking)),
		"mailbox-create": verb(s, s.mailboxCreate),
		"mailbox-delete": verb(s, s.mailboxDelete),
		"mailbox-hook":   verb(s, s.mailboxHook),
		"mailbox-hooks":  verb(s, s.mailboxHooks),
		"mailbox-trust":  verb(s, s.mailboxTrust),
		"mailbox-unhook": verb(s, s.mailboxUnhook),
		"mailboxes":      verb(s, s.mailboxList),
		"prepare":        s.inProject(verb(s, s.envelope)),
		"problems":       verb(s, s.problems),
		"project":        verb(s, s.newProject),
		"projects":       verb(s, s.listProjects),
		"raise-format":   s.inProject(verb(s, s.raiseFormat)),
		"redo":           s.inProject(verb(s, s.redo)),
		"stop":           s.requireOwner(http.HandlerFunc(s.stopServer)),
		"queue":          verb(s, s.queue),
		"check-address":  verb(s, s.checkAddress),
		"sync":           s.inProject(verb(s, s.sync)),
		"turn":           verb(s, s.turn),
		"undo":           s.inProject(verb(s, s.undo)),
		"undoable":       s.inProject(verb(s, s.undoable)),
		"wait":           streamVerb(s, s.wait),
		"waiting":        s.inProject(verb(s, s.waiting)),
		"waiting-all":    verb(s, s.waitingEverywhere),
		"watch":          streamVerb(s, s.watch),
	}
	if s.cfg.Nudge != nil {
		all["nudge"] = streamVerb(s, s.nudge)
	}
	return all
}

// peer records in the request which OS user is calling.
func (s *Server) peer(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		uid, ok := r.Context().Value(uidKey{}).(int)
		if !ok {
			writeError(w, http.StatusForbidden, nil, protocol.CodeDenied, "the server cannot tell which user opened this connection")
			return
		}
		var c tool.Caller
		if h := r.Header.Get(protocol.HelloHeader); h != "" && json.Unmarshal([]byte(h), &c) != nil {
			writeError(w, http.StatusBadRequest, nil, protocol.CodeRequest, "the header "+protocol.HelloHeader+" is not JSON")
			return
		}
		if c.Door != format.DoorCLI {
			c.Door, c.Terminal = format.DoorStdio, false
		}
		c.Auth = tool.PeerAuth(uid)
		c.UID, c.Root, c.Via, c.Here = uid, uid == 0, "socket", true
		next.ServeHTTP(w, r.WithContext(tool.WithCaller(r.Context(), c)))
	})
}

// own reports whether the caller may use everything.
func own(c tool.Caller) bool { return c.Root || c.UID == os.Geteuid() }

// guest reports whether the caller is another OS user on the socket.
func guest(c tool.Caller) bool { return c.Via != "" && !own(c) }

// allowToolset admits callers who may use the toolset.
func (s *Server) allowToolset(d *route, next http.Handler) http.Handler {
	if !d.guests {
		return s.requireOwner(next)
	}
	return next
}

func (s *Server) requireOwner(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c := tool.CallerOf(r.Context()); !own(c) {
			writeError(w, http.StatusForbidden, nil, protocol.CodeDenied, fmt.Sprintf("only root and the user who "+
				"runs the server may make this request, and you are user %d. Use --toolset aimx, or run your own server", c.UID))
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (s *Server) noToolset(w http.ResponseWriter, r *http.Request) {
	var names []string
	for _, d := range s.routes {
		names = append(names, d.name)
	}
	writeError(w, http.StatusNotFound, nil, protocol.CodeRequest,
		fmt.Sprintf("unknown toolset %q: use %s", r.PathValue("name"), strings.Join(names, ", ")))
}

// hold keeps its response open until the client disconnects or the server stops.
func (s *Server) hold(w http.ResponseWriter, r *http.Request) {
	s.lasting(w, r, func(ctx context.Context, a *answer) {
		a.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_ = a.FlushError() // if the client has disconnected, ctx is canceled
		<-ctx.Done()
	})
}

// lasting calls do, which writes a response that may take a long time. The context passed to do is canceled when the
// client disconnects or the server stops. The request is counted as a stream.
func (s *Server) lasting(w http.ResponseWriter, r *http.Request, do func(ctx context.Context, a *answer)) {
	most := s.limitsOf(r)
	if !most.streams.tryTake(1) {
		busy(w, nil, "too many streams", aMoment)
		return
	}
	defer most.streams.give(1)
	a := newAnswer(w, r, nil)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer a.finish()
	wg.Go(func() { s.endWithServer(a.request.Context(), a.cancel) })
	do(a.request.Context(), a)
}

// stopServer stops the server. The response identifies the process that is about to end.
func (s *Server) stopServer(w http.ResponseWriter, r *http.Request) {
	s.answerVerb(w, r, Stopping{os.Getpid()}, nil)
	if s.cfg.Stop != nil {
		s.cfg.Stop()
	}
}

// Stopping is the response to POST /mailtree/stop.
type Stopping struct {
	Process int `json:"process"`
}

func (s *Server) yield(w http.ResponseWriter, r *http.Request) {
	if s.cfg.Yield == nil {
		writeError(w, http.StatusConflict, nil, protocol.CodeRequest, "this server is not running in the background: stop "+
			"it where it was started")
		return
	}
	w.WriteHeader(http.StatusAccepted)
	s.cfg.Yield()
}
