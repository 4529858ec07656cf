package mail

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mailtree/mcp/protocol"
	"mailtree/mcp/tool"
	"mailtree/skills"
)

// skillsExtension is the protocol's extension for skills, SEP-2640: skills/list and skills/get tell
// what there is, and resources/read reads it.
const skillsExtension = "io.modelcontextprotocol/skills"

// skillURI is where clients read the skill: skill://NAME/SKILL.md (SEP-2640, "Resource Mapping").
const skillURI = "skill://mailtree/SKILL.md"

const skillType = "text/markdown"

// addSkill lists the skill among the resources, and serves the methods of the extension.
func (t *Toolset) addSkill() {
	t.Server().AddResource(&mcp.Resource{
		URI:         skillURI,
		Name:        skillHead()["name"],
		Title:       "How to work with mail and claims",
		Description: skillHead()["description"],
		MIMEType:    skillType,
		Size:        int64(len(skills.Mailtree)),
	}, t.read)
	addMethod(t, "skills/list", listSkills)
	addMethod(t, "skills/get", getSkill)
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

// skillEntry is a skill as the extension describes it.
type skillEntry struct {
	URI         string            `json:"uri"`
	Frontmatter map[string]string `json:"frontmatter"`
	Resources   []skillFile       `json:"resources"` // every file of the skill
}

type skillFile struct {
	URI    string `json:"uri"`
	Digest string `json:"digest"`
	Size   int    `json:"size"`
}

func theSkill() skillEntry {
	return skillEntry{
		URI:         skillURI,
		Frontmatter: skillHead(),
		Resources: []skillFile{{
			URI:    skillURI,
			Digest: fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(skills.Mailtree))),
			Size:   len(skills.Mailtree),
		}},
	}
}

// cacheable stands in each result of the extension: how long a client may keep it, and for whom.
// As everywhere in this toolset that is no time, because the next server may have another skill.
type cacheable struct {
	TTL   int    `json:"ttlMs"`
	Scope string `json:"cacheScope"`
}

type (
	skillList struct {
		completeResult
		cacheable
		Skills []skillEntry `json:"skills"`
	}
	skillWanted struct {
		mcp.ParamsBase
		URI string `json:"uri"`
	}
	skillFound struct {
		completeResult
		cacheable
		Skill skillEntry `json:"skill"`
	}
)

func listSkills(context.Context, *mcp.ServerSession, *anyParams) (*skillList, error) {
	return &skillList{
		completeResult: complete(),
		cacheable:      cacheable{Scope: "private"},
		Skills:         []skillEntry{theSkill()},
	}, nil
}

func getSkill(_ context.Context, _ *mcp.ServerSession, wanted *skillWanted) (*skillFound, error) {
	if wanted.URI != skillURI {
		return nil, &jsonrpc.Error{
			Code:    protocol.CodeParams,
			Message: fmt.Sprintf("There is no skill %q: use %s.", tool.Clip(wanted.URI), skillURI),
		}
	}
	return &skillFound{
		completeResult: complete(),
		cacheable:      cacheable{Scope: "private"},
		Skill:          theSkill(),
	}, nil
}
