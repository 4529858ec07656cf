package tool

import (
	"context"
	"path/filepath"
	"strconv"

	"mailtree/maildir"
	"mailtree/maildir/format"
)

// NoUID is the UID of a caller whose user the transport does not know. It owns nothing: it is not
// maildir.NoOwner.
const NoUID = -2

// Caller is who makes a call, as far as the server knows: from the address of the call, from the
// token or the peer credentials of the connection, and from what a bridge says of where it runs. A
// handler asks for it with CallerOf. The server finds out Auth, UID and Here itself, and Door but for
// format.DoorCLI on the socket; the rest is self-asserted.
type Caller struct {
	format.Origin
	UID  int    `json:"uid"`            // user of the peer process on the Unix socket; NoUID elsewhere
	Root bool   `json:"root"`           // the peer is uid 0
	Via  string `json:"via,omitempty"`  // "socket" on the Unix socket, "" over TCP
	Here bool   `json:"here,omitempty"` // it runs on the server's machine, as far as the connection tells

	Agent    string `json:"agent,omitempty"`     // who it says it is: in the path, or --as; "" when it does not
	Project  string `json:"project,omitempty"`   // key or slug that it named: ?project=, or --project; "" when none
	WorkTree string `json:"work_tree,omitempty"` // absolute top of the Git work tree that the bridge runs in; "" when none
	Dir      string `json:"dir,omitempty"`       // absolute folder that the bridge runs in; "" when it is no bridge
	Tmux     string `json:"tmux,omitempty"`      // the bridge's $TMUX (socket,pid,session); "" outside tmux
	Pane     string `json:"pane,omitempty"`      // the bridge's $TMUX_PANE
}

// ProjectKey is the project of a call that names none: the caller's Project, else its work tree,
// else maildir.DefaultProject.
func (c Caller) ProjectKey() string {
	for _, key := range []string{c.Project, c.WorkTree} {
		if key != "" {
			return key
		}
	}
	return maildir.DefaultProject
}

// WorkDir is the folder in which the caller works, as far as it says: project, which the call
// names, where that is a path, else Project where that is one, else WorkTree; "" where nothing
// says.
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

// Box is the mail of an agent of a project, for the caller of ctx.
func Box(ctx context.Context, p *maildir.Project, agent string) *maildir.Box {
	return p.Box(agent, CallerOf(ctx).Origin)
}

// Unknown is a caller of whom nothing is known.
func Unknown() Caller { return Caller{Origin: format.Origin{Auth: "none"}, UID: NoUID} }

type callerKey struct{}

// WithCaller puts the caller into ctx, and the caller's door for the history.
func WithCaller(ctx context.Context, c Caller) context.Context {
	return context.WithValue(format.Through(ctx, c.Door), callerKey{}, c)
}

// CallerOf is who makes the call; Unknown where nobody said.
func CallerOf(ctx context.Context) Caller {
	if c, ok := ctx.Value(callerKey{}).(Caller); ok {
		return c
	}
	return Unknown()
}
