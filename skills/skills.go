// Package skills holds what an agent reads to work with the mail, one folder for each skill in the
// form of agentskills.io. The folder lies where a plugin has its skills, so that the repository can
// be one; the server hands out the same bytes as a resource.
package skills

import _ "embed"

// Mailtree is mailtree/SKILL.md: how to work with mail and claims.
//
//go:embed mailtree/SKILL.md
var Mailtree string
