package aimx_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mailtree/maildir/format"
	"mailtree/mcp/tool"
)

// callIn makes a call as the given user, from the given project and working tree.
func (d *desk) callIn(uid int, project, workTree, name, args string) *mcp.CallToolResult {
	d.t.Helper()
	d.caller.Store(&tool.Caller{
		Origin:   format.Origin{Auth: tool.PeerAuth(uid)},
		UID:      uid,
		Root:     uid == 0,
		Project:  project,
		WorkTree: workTree,
	})
	return d.ask("aimx", name, args)
}

// TestGuestMakesNoProject checks that guests can use only existing projects and the default project, and that only the
// store's user and root can create other projects.
func TestGuestMakesNoProject(t *testing.T) {
	t.Parallel()
	const guest = 1000
	d := newDesk(t)
	for _, tt := range []struct {
		uid               int
		project, workTree string
		box               string // name of the mailbox to create
		want              string // text that the response must contain
		projects          int    // expected number of projects in the store after the call
	}{
		{guest, "/srv/shop", "", "ann", `No project "/srv/shop"`, 0},
		{guest, "", "/srv/shop", "ann", "--project default", 0},
		{guest, "none", "", "ann", `No project "none"`, 0},
		{guest, "", "", "ann", "ann@", 1},
		{guest, "default", "/srv/shop", "ann", "ann@", 1},
		{storeUser, "/srv/shop", "", "ann", "EACCES", 2}, // the address already belongs to another user
		{storeUser, "/srv/shop", "", "eve", "eve@", 2},
		{guest, "/srv/shop", "", "eve", "EACCES", 2}, // the project exists, but another user owns the mailbox eve
		{guest, "/srv/shops", "", "ann", `No project "/srv/shops"`, 2},
		{0, "/srv/other", "", "zoe", "zoe@", 3},
	} {
		res := d.callIn(tt.uid, tt.project, tt.workTree, "mailbox_create", `{"name": "`+tt.box+`"}`)
		text := res.Content[0].(*mcp.TextContent).Text
		if !strings.Contains(text, tt.want) || res.IsError == strings.HasSuffix(tt.want, "@") || res.IsError && strings.Contains(text, "Did you mean") {
			t.Errorf("uid %d in %q, %q: %s", tt.uid, tt.project, tt.workTree, text)
		}
		folders, err := os.ReadDir(filepath.Join(d.Root(), "projects"))
		if err != nil || len(folders) != tt.projects || len(d.Projects()) != tt.projects {
			t.Errorf("uid %d in %q, %q: %d folders, %d projects, %v; want %d", tt.uid, tt.project, tt.workTree, len(folders), len(d.Projects()), err, tt.projects)
		}
	}
	if res := d.callIn(guest, "/srv/shop", "", "mailbox_create", `{"name": "bob"}`); res.IsError {
		t.Errorf("a guest in an existing project: %+v", res.Content[0])
	}
}
