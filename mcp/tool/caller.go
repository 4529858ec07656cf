package tool

import (
	"context"
	"path/filepath"
	"strconv"

	"mailtree/maildir"
)

// NoUID is the UID of a caller whom the transport does not tell. It owns nothing: it is not
// maildir.NoOwner.
const NoUID = -2

// Caller is who makes a call, as far as the server knows: from the address that was called, from
// the token or the peer credentials of the connection, and, for a bridge, from what it says of
// where it runs. A handler asks for it with CallerOf. Auth and UID are found out by the server; the
// rest is self-asserted.
type Caller struct {
	Auth string `json:"auth"`          // "none", "token", or "uid:N": what the seal of mail sent by it says
	UID  int    `json:"uid"`           // user of the peer process on the Unix socket; NoUID elsewhere
	Root bool   `json:"root"`          // the peer is uid 0
	Via  string `json:"via,omitempty"` // "socket" on the Unix socket, "" over TCP

	Agent    string `json:"agent,omitempty"`     // who it says it is: in the path, or --as; "" when it does not
	Project  string `json:"project,omitempty"`   // key or slug that it named: ?project=, or --project; "" when none
	WorkTree string `json:"work_tree,omitempty"` // absolute top of the Git work tree that the bridge runs in; "" when none
	Dir      string `json:"dir,omitempty"`       // absolute folder that the bridge runs in; "" when it is no bridge
	Tmux     string `json:"tmux,omitempty"`      // the bridge's $TMUX (socket,pid,session); "" outside tmux
	Pane     string `json:"pane,omitempty"`      // the bridge's $TMUX_PANE
}

// ProjectKey is the project to work in where the call itself names none: the one named, else the
// work tree, else maildir.DefaultProject.
func (c Caller) ProjectKey() string {
	for _, key := range []string{c.Project, c.WorkTree} {
		if key != "" {
			return key
		}
	}
	return maildir.DefaultProject
}

// WorkDir is the folder that the caller works in, as far as it says: project where that is a path,
// which a call named, else Project where that is, else WorkTree; "" where nothing says.
func (c Caller) WorkDir(project string) string {
	for _, dir := range []string{project, c.Project} {
		if filepath.IsAbs(dir) {
			return dir
		}
	}
	return c.WorkTree
}

// User is the caller as the owner of mailboxes.
func (c Caller) User() maildir.Caller { return maildir.Caller{UID: c.UID, Root: c.Root} }

// PeerAuth is the Auth of a caller known by peer credentials.
func PeerAuth(uid int) string { return "uid:" + strconv.Itoa(uid) }

// Unknown is a caller of whom nothing is known.
func Unknown() Caller { return Caller{Auth: "none", UID: NoUID} }

type callerKey struct{}

// WithCaller puts the caller into ctx.
func WithCaller(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// CallerOf is who makes the call; Unknown where nobody said.
func CallerOf(ctx context.Context) Caller {
	if c, ok := ctx.Value(callerKey{}).(Caller); ok {
		return c
	}
	return Unknown()
}
