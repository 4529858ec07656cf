package mcp

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mailtree/maildir/refusal"
	"mailtree/maildir/refusal/refusaltest"
	"mailtree/mcp/agentmail"
	"mailtree/mcp/aimx"
	"mailtree/mcp/mail"
	"mailtree/mcp/postal"
	"mailtree/mcp/tool"
	"mailtree/mcp/tool/tooltest"
)

// speaker is a toolset, together with the names of its tools and their arguments. Its clients can use only these names.
type speaker struct {
	*tool.Set
	names map[string]bool
}

func speakers(t *testing.T) map[string]speaker {
	t.Helper()
	all := map[string]speaker{
		"mail":      {Set: mail.New(tool.Config{}).Set},
		"postal":    {Set: postal.New(tool.Config{}).Set},
		"aimx":      {Set: aimx.New(tool.Config{})},
		"agentmail": {Set: agentmail.New(tool.Config{})},
	}
	for name, set := range all {
		set.names = namesOf(t, set.Server())
		all[name] = set
	}
	return all
}

// namesOf asks a server for the names of its tools and their arguments.
func namesOf(t *testing.T, server *mcp.Server) map[string]bool {
	t.Helper()
	here, there := mcp.NewInMemoryTransports()
	if _, err := server.Connect(t.Context(), there, nil); err != nil {
		t.Fatal(err)
	}
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test"}, nil).Connect(t.Context(), here, nil)
	if err != nil {
		t.Fatal(err)
	}
	list, err := session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, tl := range list.Tools {
		names[tl.Name] = true
		var in struct{ Properties map[string]any }
		data, err := json.Marshal(tl.InputSchema)
		if err == nil {
			err = json.Unmarshal(data, &in)
		}
		if err != nil {
			t.Fatal(err)
		}
		for arg := range in.Properties {
			names[arg] = true
		}
	}
	return names
}

// compound matches a name that cannot be an English word, like most names of tools and arguments.
var compound = regexp.MustCompile(`[A-Za-z]+(?:[_-][A-Za-z]+)+`)

// TestRefusalsNameOwnTools checks that no toolset's refusals mention a tool or an argument that only other toolsets
// have.
func TestRefusalsNameOwnTools(t *testing.T) {
	all, whats, known := speakers(t), refusaltest.All(t), map[string]bool{}
	for _, set := range all {
		maps.Copy(known, set.names)
	}
	for name, set := range all {
		for _, what := range whats {
			for _, field := range refusal.Fields() {
				said := set.Explain("test", tooltest.Refusal(what, field)).Error
				for _, word := range compound.FindAllString(said, -1) {
					if known[word] && !set.names[word] {
						t.Errorf("%s has no %s, but says: %s", name, word, said)
					}
				}
			}
		}
	}
}

var setting = regexp.MustCompile(`\{Name: "([A-Z_]+)"`)

// TestDomainNamesNoTool checks that no string in the domain packages mentions a tool, an argument, a setting or a
// mailtree command.
func TestDomainNamesNoTool(t *testing.T) {
	config, err := os.ReadFile("../cmd/mailtree/config.go")
	if err != nil {
		t.Fatal(err)
	}
	banned := map[string]bool{}
	for _, m := range setting.FindAllStringSubmatch(string(config), -1) {
		banned[m[1]] = strings.Contains(m[1], "_")
	}
	for _, set := range speakers(t) {
		maps.Copy(banned, set.names)
	}
	if len(banned) < 80 {
		t.Errorf("only %d names", len(banned))
	}
	for _, text := range texts(t, "../maildir") {
		if strings.Contains(text, "`mailtree ") {
			t.Errorf("the domain mentions a command: %s", text)
		}
		for _, word := range compound.FindAllString(text, -1) {
			if banned[word] {
				t.Errorf("the domain mentions %s: %s", word, text)
			}
		}
	}
}

// texts returns the strings in a package and in the packages below it that contain a space.
func texts(t *testing.T, dir string) (all []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				if text, err := strconv.Unquote(lit.Value); err == nil && strings.Contains(text, " ") {
					all = append(all, text)
				}
			}
			return true
		})
		return nil
	})
	if err != nil || !slices.ContainsFunc(all, func(s string) bool { return strings.HasPrefix(s, "No agent") }) {
		t.Fatalf("%d texts, %v", len(all), err)
	}
	return all
}
