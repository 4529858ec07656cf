package mail

import (
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mailtree/skills"
)

// skillURI is the URI of the skill: skill://NAME/SKILL.md (SEP-2640, "Resource Mapping").
const skillURI = "skill://mailtree/SKILL.md"

const skillType = "text/markdown"

// addSkill adds the skill as a resource.
func (t *Toolset) addSkill() {
	head := skills.Head(skills.Mailtree)
	t.Server().AddResource(&mcp.Resource{
		URI:         skillURI,
		Name:        head["name"],
		Title:       "How to work with mail and claims",
		Description: head["description"],
		MIMEType:    skillType,
		Size:        int64(len(skills.Mailtree)),
	}, t.read)
}

func readSkill() *mcp.ReadResourceResult {
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: skillURI, MIMEType: skillType, Text: skills.Mailtree}}}
}
