// Package tooltest holds the tools of a toolset against what all of them promise.
package tooltest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mailtree/mcp/tool"
)

// Declared looks at the tools as they stand on the wire: all hints, a title, one short sentence, a closed input
// schema, and nothing that strict clients do not take.
func Declared(t *testing.T, tools ...tool.Tool) {
	t.Helper()
	for _, tl := range tools {
		var wire struct {
			Title, Description        string
			Annotations               map[string]any
			InputSchema, OutputSchema map[string]any
		}
		data, err := json.Marshal(tl.Declare())
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(data, &wire); err != nil {
			t.Fatal(err)
		}
		hints := slices.Sorted(maps.Keys(wire.Annotations))
		if diff := cmp.Diff([]string{"destructiveHint", "idempotentHint", "openWorldHint", "readOnlyHint", "title"}, hints); diff != "" {
			t.Errorf("%s: annotations: %s", tl.Name, diff)
		}
		if wire.Title == "" || strings.Count(wire.Description, ". ") > 0 || !strings.HasSuffix(wire.Description, ".") || len(wire.Description) > 170 {
			t.Errorf("%s: title %q, description %q: one short sentence, please", tl.Name, wire.Title, wire.Description)
		}
		if wire.InputSchema["additionalProperties"] != false {
			t.Errorf("%s: the input schema is open", tl.Name)
		}
		checkSchema(t, tl.Name+" in", wire.InputSchema)
		checkSchema(t, tl.Name+" out", wire.OutputSchema)
	}
}

// Surface holds the tools against a table, a line each: the name, and its arguments in their order, those that may be absent
// with a ?.
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

// checkSchema holds a schema against what strict clients take: one type each, never null; items; known keys.
func checkSchema(t *testing.T, where string, s map[string]any) {
	t.Helper()
	typ, ok := s["type"].(string)
	if !ok || !slices.Contains([]string{"string", "boolean", "integer", "array", "object"}, typ) {
		t.Errorf("%s: type is %v", where, s["type"])
	}
	props, _ := s["properties"].(map[string]any)
	if (typ == "object") != (props != nil) || (typ == "array") != (s["items"] != nil) {
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

// Fits holds answers of a tool, as its Run returns them, and a refusal against its output schema.
func Fits(t *testing.T, tl tool.Tool, answers ...any) {
	t.Helper()
	var schema map[string]any
	if err := json.Unmarshal(tool.OutputSchema(tl.Out), &schema); err != nil {
		t.Fatal(err)
	}
	for _, v := range append(answers, tool.Refusal{Near: []string{}}) {
		if r, ok := v.(tool.Result); ok {
			v = r.Value
		}
		var got any
		if err := json.Unmarshal(tool.Encode(v), &got); err != nil {
			t.Fatal(err)
		}
		for _, problem := range unfit(tl.Name, schema, got) {
			t.Errorf("%s: %s", problem, tool.Encode(v))
		}
	}
}

// unfit lists where a value is not as the schema says; what the schema does not name is unfit too.
func unfit(where string, s map[string]any, v any) (out []string) {
	types := map[string]string{"string": "string", "boolean": "bool", "integer": "float64", "array": "[]interface {}", "object": "map[string]interface {}"}
	if got := fmt.Sprintf("%T", v); types[s["type"].(string)] != got {
		return []string{fmt.Sprintf("%s is %s, not %s", where, got, s["type"])}
	}
	switch v := v.(type) {
	case []any:
		for _, x := range v {
			out = append(out, unfit(where+"[]", s["items"].(map[string]any), x)...)
		}
	case map[string]any:
		props := s["properties"].(map[string]any)
		for k, x := range v {
			p, ok := props[k].(map[string]any)
			if !ok {
				out = append(out, where+"."+k+" is not in the schema")
				continue
			}
			out = append(out, unfit(where+"."+k, p, x)...)
		}
		if !anyRequired(s, v) {
			out = append(out, where+" lacks what is required")
		}
	}
	return out
}

func anyRequired(s, v map[string]any) bool {
	choices, _ := s["anyOf"].([]any)
	for _, c := range append(choices, s) {
		if choices != nil && c.(map[string]any)["type"] != nil {
			continue // s itself, which has choices
		}
		required, _ := c.(map[string]any)["required"].([]any)
		if !slices.ContainsFunc(required, func(k any) bool { _, ok := v[k.(string)]; return !ok }) {
			return true
		}
	}
	return false
}
