package mcp

import (
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"

	"mailtree/mcp/tool"
)

// cardRules combines the requirements of SEP-2127 and of the registry for the fields that the card uses.
const cardRules = `{
	"type": "object",
	"required": ["$schema", "name", "version", "title", "description"],
	"additionalProperties": false,
	"properties": {
		"$schema": {"type": "string"},
		"name": {"type": "string", "minLength": 3, "maxLength": 200, "pattern": "^[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+$"},
		"version": {"type": "string", "minLength": 1, "maxLength": 255},
		"title": {"type": "string", "minLength": 1, "maxLength": 100},
		"description": {"type": "string", "minLength": 1, "maxLength": 100},
		"remotes": {"type": "array", "items": {
			"type": "object",
			"required": ["type", "url"],
			"additionalProperties": false,
			"properties": {
				"type": {"enum": ["streamable-http"]},
				"url": {"type": "string", "pattern": "^https?://[^\\s]+$"},
				"headers": {"type": "array", "items": {
					"type": "object",
					"required": ["name"],
					"additionalProperties": false,
					"properties": {
						"name": {"type": "string"},
						"description": {"type": "string"},
						"isRequired": {"type": "boolean"},
						"isSecret": {"type": "boolean"}
					}
				}}
			}
		}}
	}
}`

// keepsRules checks that a document satisfies cardRules, and returns the parsed card.
func keepsRules(t *testing.T, data []byte) (c card) {
	t.Helper()
	var rules jsonschema.Schema
	if err := json.Unmarshal([]byte(cardRules), &rules); err != nil {
		t.Fatal(err)
	}
	resolved, err := rules.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	var doc any
	if err := json.Unmarshal(data, &doc); err != nil {
		t.Fatal(err)
	}
	if err := resolved.Validate(doc); err != nil {
		t.Errorf("%s: %v", data, err)
	}
	if err := json.Unmarshal(data, &c); err != nil {
		t.Fatal(err)
	}
	return c
}

// TestCard checks that the server at the card's URL describes itself the same way as the card.
func TestCard(t *testing.T) {
	t.Parallel()
	for _, required := range []bool{false, true} {
		_, url := serve(t, Config{Version: "1.2.3", Token: "tok", RequireToken: required})
		_, body := request(t, url, "GET /.well-known/mcp/server-card.json", "")
		if _, same := request(t, url, "GET /mcp/server-card", ""); same != body {
			t.Errorf("two cards:\n%s\n%s", body, same)
		}
		c := keepsRules(t, []byte(body))
		if len(c.Remotes) != 1 || len(c.Remotes[0].Headers) == 1 != required {
			t.Fatalf("the card says %s", body)
		}
		head := "POST " + strings.TrimPrefix(c.Remotes[0].URL, url) + "\nContent-Type: application/json"
		for _, h := range c.Remotes[0].Headers {
			head += "\n" + h.Name + ": Bearer tok"
		}
		res, answer := request(t, url, head, initialize)
		about := `"serverInfo":` + strings.TrimSuffix(string(tool.Encode(map[string]string{"name": "mailtree", "title": c.Title})), "}")
		if res.StatusCode != http.StatusOK || !strings.Contains(answer, about) || !strings.Contains(answer, `"version":"1.2.3"`) {
			t.Errorf("%s returns %d %s", body, res.StatusCode, answer)
		}
	}
}

// TestServerJSON checks that server.json, the registry's file, describes the server the same way as its card.
func TestServerJSON(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../server.json")
	if err != nil {
		t.Fatal(err)
	}
	file := keepsRules(t, data)
	_, url := serve(t, Config{Version: file.Version})
	_, body := request(t, url, "GET /mcp/server-card", "")
	served := keepsRules(t, []byte(body))
	served.Schema, served.Remotes = file.Schema, file.Remotes
	if diff := cmp.Diff(served, file); diff != "" {
		t.Errorf("the card (-) and server.json (+) differ:\n%s", diff)
	}
}
