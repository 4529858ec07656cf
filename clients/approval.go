package clients

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"mailtree/clients/edit"
)

// Approval is a client's question to a person whether it may use what stands in a code base.
type Approval struct {
	Todo string // what the person has to do; "": nothing
}

// Approval returns the client's question about the code base; nil where what the setup's scope holds
// does not depend on one. It reads the client's files, or asks the client. Errors: what keeps it from
// seeing the answer.
func (s Setup) Approval(ctx context.Context) (*Approval, error) {
	if s.Client.approval == nil {
		return nil, nil
	}
	return s.Client.approval(ctx, s)
}

// claudeApproval: a session in a terminal asks first whether the folder is trusted, then whether each
// server of .mcp.json may be used. `claude -p` asks nothing, and uses all.
func claudeApproval(_ context.Context, s Setup) (*Approval, error) {
	if s.Scope == User {
		return nil, nil
	}
	trusted, err := anySet(claudeTrust(s))
	if err != nil {
		return nil, err
	}
	var choices []string
	if !trusted && s.Main == "" {
		return nil, fmt.Errorf("%s lies in no Git work tree, so trust in a folder above it may count", s.Dir)
	}
	if !trusted {
		choices = append(choices, `"Yes, I trust this folder"`)
	}
	_, leads, err := s.Entry()
	if err == nil && leads != nil && len(s.EntryOff()) == 0 {
		used, err := anySet(claudeUsed(s))
		if err != nil {
			return nil, err
		}
		if !used {
			choices = append(choices, `"Use this MCP server"`)
		}
	}
	if len(choices) == 0 {
		return &Approval{}, nil
	}
	return &Approval{"start claude there once and choose " + strings.Join(choices, ", then ")}, nil
}

// claudeTrees are the folders by which Claude Code knows a code base.
func claudeTrees(s Setup) []string {
	if s.Main == "" {
		return []string{s.Dir}
	}
	return slices.Compact([]string{s.Dir, s.Main})
}

func claudeTrust(s Setup) (all []setting) {
	for _, dir := range claudeTrees(s) {
		path := []string{"projects", dir, "hasTrustDialogAccepted"}
		all = append(all, setting{s.Client.user.find(s.Site), edit.JSON{}, path, true})
	}
	return all
}

// claudeUsed are the settings by which Claude Code uses the entry of .mcp.json. In a linked work tree
// the person's own choices in the main one count too.
func claudeUsed(s Setup) (all []setting) {
	files := append(claudeSettings(s), claudeManaged(s)...)
	for _, dir := range claudeTrees(s) {
		files = append(files, filepath.Join(dir, claudeLocal))
		path := []string{"projects", dir, "enabledMcpjsonServers"} // older versions kept the choice here
		all = append(all, setting{s.Client.user.find(s.Site), edit.JSON{}, path, entryName})
	}
	for _, file := range files {
		all = append(all,
			setting{file, edit.JSON{}, []string{"enabledMcpjsonServers"}, entryName},
			setting{file, edit.JSON{}, []string{"enableAllProjectMcpServers"}, true})
	}
	return all
}

// anySet reports whether one of the settings is set. Errors: where none is, what kept it first from
// seeing one.
func anySet(all []setting) (bool, error) {
	var first error
	for _, s := range all {
		is, err := s.isSet()
		if is {
			return true, nil
		}
		first = cmp.Or(first, err)
	}
	return false, first
}

// codexApproval: Codex tells of each configuration whether it is in use. Which folder has to be
// trusted for it, it knows itself.
func codexApproval(ctx context.Context, s Setup) (*Approval, error) {
	if s.Scope == User {
		return nil, nil
	}
	var told struct {
		Layers []struct {
			Name struct {
				Folder string `json:"dotCodexFolder"`
			} `json:"name"`
			DisabledReason string `json:"disabledReason"`
		} `json:"layers"`
	}
	if err := askCodex(ctx, s.Dir, "config/read", map[string]any{"cwd": s.Dir, "includeLayers": true}, &told); err != nil {
		return nil, err
	}
	folder := filepath.Dir(filepath.Join(s.Dir, s.Client.project))
	for _, layer := range told.Layers {
		if layer.Name.Folder != folder {
			continue
		}
		if layer.DisabledReason == "" {
			return &Approval{}, nil
		}
		return &Approval{`start codex there once and choose "Trust and continue"`}, nil
	}
	return nil, fmt.Errorf("codex app-server does not tell of %s", folder)
}

// geminiApproval: in a folder that is not trusted Gemini CLI uses nothing of ours, not the user's
// entry and hooks either.
func geminiApproval(_ context.Context, s Setup) (*Approval, error) {
	const variable = "GEMINI_CLI_TRUST_WORKSPACE"
	switch s.Env(variable) {
	case "true":
		return &Approval{}, nil
	case "false":
		return &Approval{"unset " + variable + ", which says false"}, nil
	}
	settings := s.Client.user.find(s.Site)
	asksNobody, err := anySet([]setting{
		{settings, s.Client.format, []string{"security", "folderTrust", "enabled"}, false},
		{geminiSystem, s.Client.format, []string{"security", "folderTrust", "enabled"}, false},
	})
	if err != nil || asksNobody {
		return &Approval{}, err
	}
	file := filepath.Join(filepath.Dir(settings), "trustedFolders.json")
	rule, level, err := geminiRule(file, s.Dir)
	switch {
	case err != nil:
		return nil, err
	case rule == "":
		return &Approval{`start gemini there once and choose "Trust folder"`}, nil
	case level == "DO_NOT_TRUST":
		return &Approval{fmt.Sprintf("%s says %s of %s: change that", file, level, rule)}, nil
	case level == "TRUST_FOLDER", level == "TRUST_PARENT":
		return &Approval{}, nil
	}
	return nil, fmt.Errorf("%s says %s of %s, which is not known", file, level, rule)
}

// geminiRule returns the folder in Gemini CLI's file of rules that decides on dir, the one with the
// longest name, and what the file says of it; "" for both where none does.
func geminiRule(file, dir string) (rule, level string, err error) {
	f, err := open("", file)
	if err != nil || !f.is {
		return "", "", err
	}
	got, err := edit.JSON{Comments: true}.Get(f.data, nil)
	if err != nil {
		return "", "", fileError(file, err)
	}
	rules, _ := got.(map[string]any)
	for _, folder := range slices.Sorted(maps.Keys(rules)) {
		says := fmt.Sprint(rules[folder])
		covers := folder
		if says == "TRUST_PARENT" {
			covers = filepath.Dir(folder)
		}
		if real, err := filepath.EvalSymlinks(covers); err == nil {
			covers = real
		}
		if rel, err := filepath.Rel(covers, dir); err == nil && filepath.IsLocal(rel) && len(folder) > len(rule) {
			rule, level = folder, says
		}
	}
	return rule, level, nil
}

// unseenApproval is of clients that were not tried: what they ask, and where they keep the answer, is
// not known.
func unseenApproval(_ context.Context, s Setup) (*Approval, error) {
	if s.Scope == User {
		return nil, nil
	}
	return nil, errors.New("where it keeps that is not known")
}
