package clients

import (
	"strings"
	"testing"
)

// TestApproval: what a client's files say of a person's approval of a code base, and what to do where
// they say nothing.
func TestApproval(t *testing.T) {
	t.Parallel()
	const (
		trusted = `{"projects": {"ROOT/code": {"hasTrustDialogAccepted": true}}}`
		server  = "\n-- code/.mcp.json --\n" + `{"mcpServers": {"mail": {"command": "mailtree", "args": ["stdio"]}}}`
		ours    = `{"enabledMcpjsonServers": ["mail"]}`
		begin   = "start claude there once and choose "
	)
	for _, of := range []struct {
		name, client string
		scope        Scope
		files        string
		want         string // what to do, or the error; "" nothing; "-": nobody is asked
	}{
		{"new", "claude", Project, "-- home/.claude.json --\n{}" + server,
			begin + `"Yes, I trust this folder", then "Use this MCP server"`},
		{"the user's", "claude", User, "-- home/.claude.json --\n{}" + server, "-"},
		{"trusted", "claude", Project, "-- home/.claude.json --\n" + trusted + server, begin + `"Use this MCP server"`},
		{"trusted, no entry", "claude", Project, "-- home/.claude.json --\n" + trusted, ""},
		{"another folder", "claude", Project, "-- home/.claude.json --\n" + strings.Replace(trusted, "code", "other", 1),
			begin + `"Yes, I trust this folder"`},
		{"used", "claude", Project, "-- home/.claude.json --\n" + trusted + server +
			"\n-- code/.claude/settings.local.json --\n" + ours, ""},
		{"used by choice of the main work tree", "claude", Project, "-- home/.claude.json --\n" +
			strings.Replace(trusted, "code", "main", 1) + server + "\n-- main/.claude/settings.local.json --\n" + ours, ""},
		{"others used", "claude", Project, "-- home/.claude.json --\n" + trusted + server +
			"\n-- code/.claude/settings.local.json --\n" + strings.Replace(ours, "mail", "docs", 1), begin + `"Use this MCP server"`},
		{"all used", "claude", Project, "-- home/.claude.json --\n" + trusted + server +
			"\n-- home/.claude/settings.json --\n" + `{"enableAllProjectMcpServers": true}`, ""},
		{"used but not trusted", "claude", Project, "-- home/.claude/settings.json --\n" + ours + server, begin + `"Yes, I trust this folder"`},
		{"refused", "claude", Project, "-- home/.claude.json --\n" + trusted + server +
			"\n-- code/.claude/settings.local.json --\n" + `{"disabledMcpjsonServers": ["mail"]}`, ""}, // EntryOff tells
		{"unknown form", "claude", Project, "-- home/.claude.json --\n" + strings.Replace(trusted, "true", `"yes"`, 1),
			"projects.code.hasTrustDialogAccepted in home/.claude.json has a form that is not known"},
		{"broken", "claude", Project, "-- home/.claude.json --\n{\n\"a\" 1}", "home/.claude.json:2: "},

		{"new", "gemini", Project, "", `start gemini there once and choose "Trust folder"`},
		{"new", "gemini", User, "", `start gemini there once and choose "Trust folder"`},
		{"trusted", "gemini", Project, "-- home/.gemini/trustedFolders.json --\n" + `{"ROOT/code": "TRUST_FOLDER"} // why`, ""},
		{"its parent", "gemini", Project, "-- home/.gemini/trustedFolders.json --\n" + `{"ROOT/other": "TRUST_PARENT"}`, ""},
		{"above", "gemini", Project, "-- home/.gemini/trustedFolders.json --\n" + `{"ROOT": "TRUST_FOLDER"}`, ""},
		{"beside", "gemini", Project, "-- home/.gemini/trustedFolders.json --\n" + `{"ROOT/co": "TRUST_FOLDER", "ROOT/code/a": "TRUST_FOLDER"}`,
			`start gemini there once and choose "Trust folder"`},
		{"refused", "gemini", Project, "-- home/.gemini/trustedFolders.json --\n" + `{"ROOT": "TRUST_FOLDER", "ROOT/code": "DO_NOT_TRUST"}`,
			"home/.gemini/trustedFolders.json says DO_NOT_TRUST of code: change that"},
		{"unknown", "gemini", Project, "-- home/.gemini/trustedFolders.json --\n" + `{"ROOT/code": "MAYBE"}`,
			"home/.gemini/trustedFolders.json says MAYBE of code, which is not known"},
		{"asks nobody", "gemini", Project, "-- home/.gemini/settings.json --\n" + `{"security": {"folderTrust": {"enabled": false}}}`, ""},
		{"the project says so", "gemini", Project, "-- code/.gemini/settings.json --\n" + `{"security": {"folderTrust": {"enabled": false}}}`,
			`start gemini there once and choose "Trust folder"`},

		{"asks nobody", "opencode", Project, "", "-"},
		{"not known", "copilot", Project, "", "where it keeps that is not known"},
		{"the user's", "copilot", User, "", "-"},
	} {
		t.Run(of.client+": "+of.name, func(t *testing.T) {
			t.Parallel()
			root, at := siteOf(t, of.files)
			at.Main = at.Dir
			if strings.Contains(of.files, "-- main/") {
				at.Main = root + "/main"
			}
			got := "-"
			a, err := Setup{Site: at, Client: named(of.client), Scope: of.scope}.Approval(t.Context())
			if err != nil {
				got = err.Error()
			} else if a != nil {
				got = a.Todo
			}
			got = strings.ReplaceAll(strings.ReplaceAll(got, root+"/", ""), root, "")
			if got != of.want && (of.want == "" || !strings.HasSuffix(of.want, ": ") || !strings.HasPrefix(got, of.want)) {
				t.Errorf("%q, want %q", got, of.want)
			}
		})
	}
}

// TestApprovalOutsideGit: Claude Code also trusts what lies in a trusted folder, but not across the top
// of a work tree.
func TestApprovalOutsideGit(t *testing.T) {
	t.Parallel()
	_, at := siteOf(t, "-- home/.claude.json --\n{}")
	if a, err := (Setup{Site: at, Client: named("claude"), Scope: Project}).Approval(t.Context()); err == nil {
		t.Errorf("%+v, want an error", a)
	}
}

// TestApprovalVariable: a variable decides for all folders of Gemini CLI.
func TestApprovalVariable(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{"true": "", "false": "unset GEMINI_CLI_TRUST_WORKSPACE, which says false"} {
		_, at := siteOf(t, "")
		at.Env = func(name string) string { return map[string]string{"GEMINI_CLI_TRUST_WORKSPACE": value}[name] }
		a, err := Setup{Site: at, Client: named("gemini"), Scope: Project}.Approval(t.Context())
		if err != nil || a == nil || a.Todo != want {
			t.Errorf("%s: %+v, %v, want %q", value, a, err, want)
		}
	}
}
