// Package tooltest checks that the tools of a toolset have the properties that package tool guarantees.
package tooltest

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"

	"mailtree/mcp/tool"
)

// Declared checks the tools as they appear on the wire: they must have all hints, a short description that first says
// when to use the tool, a description of each argument, and nothing that strict clients reject.
func Declared(t *testing.T, tools ...tool.Tool) {
	t.Helper()
	for _, tl := range tool.Declare(tools) {
		var wire struct {
			Description               string
			Annotations               map[string]any
			InputSchema, OutputSchema map[string]any
		}
		data, err := json.Marshal(tl)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(data, &wire); err != nil {
			t.Fatal(err)
		}
		hints := slices.Sorted(maps.Keys(wire.Annotations))
		if diff := cmp.Diff([]string{"destructiveHint", "idempotentHint", "openWorldHint", "readOnlyHint"}, hints); diff != "" {
			t.Errorf("%s: annotations: %s", tl.Name, diff)
		}
		if d := wire.Description; !strings.HasPrefix(d, "Use ") || !strings.HasSuffix(d, ".") || len(d) > 220 {
			t.Errorf("%s: the description must say first when to use the tool, in at most 220 bytes: %q", tl.Name, d)
		}
		arguments, _ := wire.InputSchema["properties"].(map[string]any)
		for name, arg := range arguments {
			if arg.(map[string]any)["description"] == nil {
				t.Errorf("%s: the argument %s has no description", tl.Name, name)
			}
		}
		checkSchema(t, tl.Name+" in", wire.InputSchema)
		checkSchema(t, tl.Name+" out", wire.OutputSchema)
		if bytes.Contains(tl.OutputSchema.(json.RawMessage), []byte(`"description"`)) {
			t.Errorf("%s: the output schema has a description, which no model sees: %s", tl.Name, tl.OutputSchema)
		}
	}
}

// Surface compares the tools with a table. Each line of the table contains the name of a tool and its arguments in
// order. A ? marks an optional argument.
func Surface(t *testing.T, want string, tools ...tool.Tool) {
	t.Helper()
	var b strings.Builder
	b.WriteString("\n")
	for _, tl := range tools {
		b.WriteString(tl.Name)
		for _, p := range tl.In {
			b.WriteString(" " + p.Name)
			if !p.Need {
				b.WriteString("?")
			}
		}
		b.WriteString("\n")
	}
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Error(diff)
	}
}

// checkSchema checks that a schema contains only what strict clients accept. Each value must have exactly one type,
// which is not null. Lists must have items, and all keys must be known. The schema must not contain a keyword that
// makes a client fail or hide the fields from its model.
func checkSchema(t *testing.T, where string, s map[string]any) {
	t.Helper()
	typ, ok := s["type"].(string)
	if !ok || !slices.Contains([]string{"string", "boolean", "integer", "array", "object"}, typ) {
		t.Errorf("%s: type is %v", where, s["type"])
	}
	for _, keyword := range []string{"additionalProperties", "anyOf"} {
		if s[keyword] != nil {
			t.Errorf("%s: has %s", where, keyword)
		}
	}
	props, _ := s["properties"].(map[string]any)
	if typ != "object" && props != nil || (typ == "array") != (s["items"] != nil) {
		t.Errorf("%s: %s with properties %v and items %v", where, typ, props, s["items"])
	}
	required, _ := s["required"].([]any)
	for _, r := range required {
		if props[r.(string)] == nil {
			t.Errorf("%s: requires %v, which it does not have", where, r)
		}
	}
	for name, p := range props {
		checkSchema(t, where+"."+name, p.(map[string]any))
	}
	if items, ok := s["items"].(map[string]any); ok {
		checkSchema(t, where+"[]", items)
	}
}

// Fits checks that the given responses of the tool's Run match the tool's output schema, as strict clients check it. It
// also checks that a refusal matches.
func Fits(t *testing.T, tl tool.Tool, answers ...any) {
	t.Helper()
	var schema jsonschema.Schema
	if err := json.Unmarshal(tool.OutputSchema(tl.Out), &schema); err != nil {
		t.Fatal(err)
	}
	strict, err := schema.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range append(answers, tool.Refusal{Near: []string{}}) {
		if r, ok := v.(tool.Result); ok {
			v = r.Value
		}
		_, refused := v.(tool.Refusal)
		if !refused && reflect.TypeOf(v) != reflect.TypeOf(tl.Out) {
			t.Errorf("%s answers with a %T, but declares %T", tl.Name, v, tl.Out)
		}
		var got any
		if err := json.Unmarshal(tool.Encode(v), &got); err != nil {
			t.Fatal(err)
		}
		if err := strict.Validate(got); err != nil {
			t.Errorf("%s: %v: %s", tl.Name, err, tool.Encode(v))
		}
	}
}

// Takes checks that the arguments of a call match the tool's input schema, as strict clients check it.
func Takes(t *testing.T, tl tool.Tool, arguments []byte) {
	t.Helper()
	var schema jsonschema.Schema
	if err := json.Unmarshal(tool.InputSchema(tl.In), &schema); err != nil {
		t.Fatal(err)
	}
	strict, err := schema.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	var given any
	if err := json.Unmarshal(arguments, &given); err != nil {
		t.Fatal(err)
	}
	if err := strict.Validate(given); err != nil {
		t.Errorf("%s: %v: %s", tl.Name, err, arguments)
	}
}
