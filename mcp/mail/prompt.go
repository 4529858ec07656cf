package mail

import (
	"context"
	"embed"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mailtree/mcp/protocol"
	"mailtree/mcp/tool"
)

// promptTexts contains the texts that the prompts send to the model. They contain placeholders of the form {argument}.
//
//go:embed prompts
var promptTexts embed.FS

// prompt is a prompt that the user selects in a client, such as /mail. Claude Code splits the user's line at spaces,
// assigns one word to each argument and drops the remaining words, but shows the whole line to the model. Therefore, a
// free-text argument is always the last one, and the prompt's text refers to the line.
type prompt struct {
	name, title, about string
	args               []promptArgument
}

// promptArgument is an argument that the user types after the name of the prompt. It may consist of several words.
type promptArgument struct {
	name, about string
	absent      string // replaces the argument in the text if the user omits it; "" if the argument is required
}

// prompts lists the prompts in the order of docs/reference/tools.md.
var prompts = []prompt{
	{
		name:  "mail",
		title: "Read new mail",
		about: "Read the unread mail, report what arrived and propose answers.",
		args: []promptArgument{
			{"agent", "agent whose mail to read", "the agent you are acting as"},
			{"project", "absolute path of the code base, or slug", "this code base's project"},
		},
	},
	{
		name:  "ask",
		title: "Ask an agent",
		about: "Ask another agent or a person by mail, and wait briefly for the answer.",
		args:  []promptArgument{toWhom, {"question", "what to ask", "what we need to know to continue"}},
	},
	{
		name:  "handoff",
		title: "Hand work over",
		about: "Hand work over to another agent by mail, and release the claims.",
		args:  []promptArgument{toWhom, {"task", "what to hand over", "what we are working on"}},
	},
}

var toWhom = promptArgument{"to", "agent name", ""}

// maxArgument is the maximum size of an argument in bytes. The limit is needed because the response repeats the
// argument.
const maxArgument = 4096

func (t *Toolset) addPrompts() {
	for _, p := range prompts {
		declared := &mcp.Prompt{Name: p.name, Title: p.title, Description: p.about}
		for _, a := range p.args {
			declared.Arguments = append(declared.Arguments, &mcp.PromptArgument{Name: a.name, Description: a.about, Required: a.absent == ""})
		}
		t.Server().AddPrompt(declared, p.get)
	}
}

// get answers prompts/get with a single message, as if the user had written it.
func (p *prompt) get(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
	text, err := p.textWith(req.Params.Arguments)
	if err != nil {
		return nil, &jsonrpc.Error{Code: protocol.CodeParams, Message: err.Error()}
	}
	return &mcp.GetPromptResult{
		Description: p.about,
		Messages:    []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: text}}},
	}, nil
}

// textWith inserts the arguments into the text. It treats an empty argument as omitted, because clients also send empty
// form fields.
func (p *prompt) textWith(given map[string]string) (string, error) {
	var pairs []string
	unknown := maps.Clone(given)
	for _, a := range p.args {
		value := strings.TrimSpace(given[a.name])
		delete(unknown, a.name)
		switch {
		case len(value) > maxArgument:
			return "", fmt.Errorf("%s is %d bytes long, over the limit of %d: shorten it", a.name, len(value), maxArgument)
		case value == "" && a.absent == "":
			return "", fmt.Errorf("the argument %s (%s) is missing", a.name, a.about)
		case value == "":
			value = a.absent
		}
		pairs = append(pairs, "{"+a.name+"}", value)
	}
	if names := slices.Sorted(maps.Keys(unknown)); len(names) > 0 {
		return "", fmt.Errorf("unknown argument %q: %s takes %s", tool.Clip(names[0]), p.name, p.argumentNames())
	}
	text, err := promptTexts.ReadFile("prompts/" + p.name + ".md")
	return strings.NewReplacer(pairs...).Replace(string(text)), err
}

func (p *prompt) argumentNames() string {
	names := make([]string, len(p.args))
	for i, a := range p.args {
		names[i] = a.name
	}
	return strings.Join(names, ", ")
}
