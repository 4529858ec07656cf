package mail

import (
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mailtree/skills"
)

// skillURI is where clients read the skill: skill://NAME/SKILL.md (SEP-2640, "Resource Mapping").
const skillURI = "skill://mailtree/SKILL.md"

const skillType = "text/markdown"

// addSkill lists the skill among the resources.
func (t *Toolset) addSkill() {
	t.Server().AddResource(&mcp.Resource{
		URI:         skillURI,
		Name:        skillHead()["name"],
		Title:       "How to work with mail and claims",
		Description: skillHead()["description"],
		MIMEType:    skillType,
		Size:        int64(len(skills.Mailtree)),
	}, t.read)
}

func readSkill() *mcp.ReadResourceResult {
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: skillURI, MIMEType: skillType, Text: skills.Mailtree}}}
}

// skillHead is the skill's frontmatter, in which each field is one line of plain text.
func skillHead() map[string]string {
	fields := map[string]string{}
	_, head, _ := strings.Cut(skills.Mailtree, "---\n")
	head, _, _ = strings.Cut(head, "\n---\n")
	for line := range strings.SplitSeq(head, "\n") {
		name, value, _ := strings.Cut(line, ": ")
		fields[name] = value
	}
	return fields
}
