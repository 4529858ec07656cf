package tool

import (
	"context"
	"path/filepath"
	"strconv"

	"mailtree/maildir"
	"mailtree/maildir/format"
)

// NoUID is the UID of a caller whose OS user the transport does not know. Such a caller owns nothing. NoUID is not the
// same value as maildir.NoOwner.
const NoUID = -2

// Caller describes the caller of a tool. The server gets this information from the call's URL, from the token, from the
// connection's peer credentials, and from the bridge. The server itself determines Auth, UID and Here. It also
// determines Door, except for format.DoorCLI on the socket. The other fields are self-asserted.
type Caller struct {
	format.Origin
	UID  int    `json:"uid"`            // OS user of the peer process on the Unix socket; otherwise NoUID
	Root bool   `json:"root"`           // the peer is uid 0
	Via  string `json:"via,omitempty"`  // "socket" on the Unix socket, "" on TCP
	Here bool   `json:"here,omitempty"` // whether the caller runs on the server's machine, as far as the connection shows

	Agent    string `json:"agent,omitempty"`     // self-asserted name from the path or from --as; "" if there is none
	Project  string `json:"project,omitempty"`   // key or slug from ?project= or --project; "" if there is none
	WorkTree string `json:"work_tree,omitempty"` // absolute path of the bridge's Git working tree, or ""
	Dir      string `json:"dir,omitempty"`       // absolute path of the folder that the bridge runs in, or ""
	Tmux     string `json:"tmux,omitempty"`      // the bridge's $TMUX (socket,pid,session); "" outside tmux
	Pane     string `json:"pane,omitempty"`      // the bridge's $TMUX_PANE
	Step     string `json:"step,omitempty"`      // the step that a command line specifies (see format.InStep), or ""
}

// ProjectKey returns the project for a call that does not specify one. This is the caller's Project if it is set,
// otherwise its working tree, otherwise maildir.DefaultProject.
func (c Caller) ProjectKey() string {
	for _, key := range []string{c.Project, c.WorkTree} {
		if key != "" {
			return key
		}
	}
	return maildir.DefaultProject
}

// WorkDir returns the folder in which the caller works. This is the call's project if project is an absolute path,
// otherwise the caller's Project if that is an absolute path, otherwise its WorkTree, which may be "".
func (c Caller) WorkDir(project string) string {
	for _, dir := range []string{project, c.Project} {
		if filepath.IsAbs(dir) {
			return dir
		}
	}
	return c.WorkTree
}

// User returns the caller in the form used for mailbox owners.
func (c Caller) User() maildir.Caller { return maildir.Caller{UID: c.UID, Root: c.Root} }

// PeerAuth returns the Auth value for a caller whom the server has identified by peer credentials.
func PeerAuth(uid int) string { return "uid:" + strconv.Itoa(uid) }

// Box returns an agent's mail in a project, for use by the caller in ctx.
func Box(ctx context.Context, p *maildir.Project, agent string) *maildir.Box {
	return p.Box(agent, CallerOf(ctx).Origin)
}

// Unknown returns a caller about whom nothing is known.
func Unknown() Caller { return Caller{Origin: format.Origin{Auth: "none"}, UID: NoUID} }

type callerKey struct{}

// WithCaller returns a context that contains the caller, and also the caller's channel and step for the history.
func WithCaller(ctx context.Context, c Caller) context.Context {
	return context.WithValue(format.InStep(format.Through(ctx, c.Door), c.Step), callerKey{}, c)
}

// CallerOf returns the caller in ctx, or Unknown() if there is none.
func CallerOf(ctx context.Context) Caller {
	if c, ok := ctx.Value(callerKey{}).(Caller); ok {
		return c
	}
	return Unknown()
}
