// Package skills contains the instructions that agents read to work with mailtree. Each skill has its own folder, in
// the format of agentskills.io. A skill must have the same name as its folder, because clients skip other skills.
// This folder is where clients look for a plugin's skills, so the repository can be used as a plugin. The server
// serves each skill unchanged as a resource.
package skills

import (
	_ "embed"
	"strings"
)

// Mailtree is the content of mailtree/SKILL.md: how to work with mail and claims.
//
//go:embed mailtree/SKILL.md
var Mailtree string

// Email is the content of mailtree-email/SKILL.md: how to work with the aimx toolset.
//
//go:embed mailtree-email/SKILL.md
var Email string

// Head returns the fields of a skill's front matter, in which each field is one line of plain text.
func Head(skill string) map[string]string {
	fields := map[string]string{}
	_, head, _ := strings.Cut(skill, "---\n")
	head, _, _ = strings.Cut(head, "\n---\n")
	for line := range strings.SplitSeq(head, "\n") {
		name, value, _ := strings.Cut(line, ": ")
		fields[name] = value
	}
	return fields
}
