package mail

import (
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mailtree/skills"
)

// skillURI is where clients read the skill: skill://NAME/SKILL.md, as the protocol's extension for
// skills has it (SEP-2640, "Resource Mapping").
const skillURI = "skill://mailtree/SKILL.md"

const skillType = "text/markdown"

// addSkill lists the skill among the resources.
func (t *Toolset) addSkill() {
	t.Server().AddResource(&mcp.Resource{
		URI:         skillURI,
		Name:        skillField("name"),
		Title:       "How to work with mail and claims",
		Description: skillField("description"),
		MIMEType:    skillType,
		Size:        int64(len(skills.Mailtree)),
	}, t.read)
}

func readSkill() *mcp.ReadResourceResult {
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: skillURI, MIMEType: skillType, Text: skills.Mailtree}}}
}

// skillField returns a field of the skill's frontmatter, each of which is one line of plain text;
// "" where there is none.
func skillField(name string) string {
	_, head, _ := strings.Cut(skills.Mailtree, "---\n")
	head, _, _ = strings.Cut(head, "\n---\n")
	for line := range strings.SplitSeq(head, "\n") {
		if value, ok := strings.CutPrefix(line, name+": "); ok {
			return value
		}
	}
	return ""
}
