package tool

import (
	"context"
	"path/filepath"
	"strconv"

	"mailtree/maildir"
	"mailtree/maildir/format"
)

// NoUID is the UID of a caller whose OS user the transport does not know. Such a caller owns nothing. NoUID differs
// from maildir.NoOwner.
const NoUID = -2

// Caller describes who makes a call. The server derives it from the address of the call, the token or the connection's
// peer credentials, and what a bridge says about itself. A handler gets it with CallerOf. The server itself determines
// Auth, UID and Here. It also determines Door, except for format.DoorCLI on the socket. The other fields are
// self-asserted.
type Caller struct {
	format.Origin
	UID  int    `json:"uid"`            // OS user of the peer process on the Unix socket; otherwise NoUID
	Root bool   `json:"root"`           // the peer is uid 0
	Via  string `json:"via,omitempty"`  // "socket" on the Unix socket, "" over TCP
	Here bool   `json:"here,omitempty"` // the caller runs on the server's machine, as far as the connection shows

	Agent    string `json:"agent,omitempty"`     // self-asserted name: in the path, or --as; "" for none
	Project  string `json:"project,omitempty"`   // named key or slug: ?project=, or --project; "" for none
	WorkTree string `json:"work_tree,omitempty"` // absolute top of the Git working tree of the bridge; "" for none
	Dir      string `json:"dir,omitempty"`       // absolute folder that the bridge runs in; "" without a bridge
	Tmux     string `json:"tmux,omitempty"`      // the bridge's $TMUX (socket,pid,session); "" outside tmux
	Pane     string `json:"pane,omitempty"`      // the bridge's $TMUX_PANE
	Step     string `json:"step,omitempty"`      // from a command line: see format.InStep; "" for none
}

// ProjectKey returns the project of a call that names no project. It is the caller's Project, otherwise its working
// tree, otherwise maildir.DefaultProject.
func (c Caller) ProjectKey() string {
	for _, key := range []string{c.Project, c.WorkTree} {
		if key != "" {
			return key
		}
	}
	return maildir.DefaultProject
}

// WorkDir returns the folder in which the caller works. It is the project of the call if that is an absolute path,
// otherwise Project if that is an absolute path, otherwise WorkTree. It is "" if the folder is unknown.
func (c Caller) WorkDir(project string) string {
	for _, dir := range []string{project, c.Project} {
		if filepath.IsAbs(dir) {
			return dir
		}
	}
	return c.WorkTree
}

// User returns the caller as an owner of mailboxes.
func (c Caller) User() maildir.Caller { return maildir.Caller{UID: c.UID, Root: c.Root} }

// PeerAuth returns the Auth of a caller that the server identified by peer credentials.
func PeerAuth(uid int) string { return "uid:" + strconv.Itoa(uid) }

// Box returns the mail of a project's agent, for the caller of ctx.
func Box(ctx context.Context, p *maildir.Project, agent string) *maildir.Box {
	return p.Box(agent, CallerOf(ctx).Origin)
}

// Unknown returns a caller about whom nothing is known.
func Unknown() Caller { return Caller{Origin: format.Origin{Auth: "none"}, UID: NoUID} }

type callerKey struct{}

// WithCaller puts the caller into ctx, and also the caller's channel and step for the history.
func WithCaller(ctx context.Context, c Caller) context.Context {
	return context.WithValue(format.InStep(format.Through(ctx, c.Door), c.Step), callerKey{}, c)
}

// CallerOf returns the caller in ctx, or Unknown if there is none.
func CallerOf(ctx context.Context) Caller {
	if c, ok := ctx.Value(callerKey{}).(Caller); ok {
		return c
	}
	return Unknown()
}
