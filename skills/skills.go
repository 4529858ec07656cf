// Package skills contains what an agent reads to work with mailtree, one folder for each skill in the form of
// agentskills.io. A skill has the same name as its folder, because clients skip other skills. The folder lies where
// a plugin has its skills, so the repository can be used as a plugin. The server returns the same bytes as a
// resource.
package skills

import (
	_ "embed"
	"strings"
)

// Mailtree is the content of mailtree/SKILL.md: how to work with mail and claims.
//
//go:embed mailtree/SKILL.md
var Mailtree string

// Email is the content of mailtree-email/SKILL.md: how to work with the toolset aimx.
//
//go:embed mailtree-email/SKILL.md
var Email string

// Head returns the frontmatter of a skill, in which each field is one line of plain text.
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
