package tool

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"

	"mailtree/maildir/format"
)

// OutputSchema returns the schema of a tool's response, inferred from a struct whose json tags name the fields. No
// field is required, so that a Refusal also matches the schema. This matters because clients such as the TypeScript SDK
// check the structured content of errors too. An anyOf of response and refusal would be more precise, but then Codex
// and mcporter would not show any fields to the model.
func OutputSchema(answer any) json.RawMessage { return Encode(inferred(answer)) }

// stamps contains the schema for times, which are strings.
var stamps = map[reflect.Type]*jsonschema.Schema{reflect.TypeFor[format.Stamp](): {Type: "string"}}

func inferred(answer any) *jsonschema.Schema {
	s, err := jsonschema.ForType(reflect.TypeOf(answer), &jsonschema.ForOptions{TypeSchemas: stamps})
	if err != nil {
		panic(fmt.Errorf("the answer %T has no schema: %w", answer, err))
	}
	simplify(s)
	return s
}

// simplify makes an inferred schema acceptable to strict clients. These clients accept only one type per value, and
// never null. (tooltest.Fits checks that lists are not null.) Objects may contain undeclared fields, so that new fields
// can be added to responses. Fields have no descriptions.
func simplify(s *jsonschema.Schema) {
	s.Required, s.AdditionalProperties, s.Description = nil, nil, ""
	if s.Types != nil {
		s.Types = slices.DeleteFunc(s.Types, func(typ string) bool { return typ == "null" })
		s.Type, s.Types = s.Types[0], nil
	}
	if s.Items != nil {
		simplify(s.Items)
	}
	for _, f := range s.Properties {
		simplify(f)
	}
}

// published returns the output schema of each tool in the form that clients get: the result of OutputSchema without the
// fields of nested objects. Clients check responses against these schemas, but no client that we tested shows the
// schemas to its model. Omitting these fields leaves more room in a listing for the text that models do read. If two
// tools have the same response, only the first one declares its fields.
func published(tools []Tool) []json.RawMessage {
	all, seen := make([]json.RawMessage, len(tools)), map[string]bool{}
	for i, t := range tools {
		s := inferred(t.Out)
		for _, f := range s.Properties {
			for ; f != nil; f = f.Items {
				f.Properties, f.PropertyOrder = nil, nil
			}
		}
		all[i] = Encode(s)
		if seen[string(all[i])] {
			all[i] = Encode(&jsonschema.Schema{Type: "object"})
		}
		seen[string(all[i])] = true
	}
	return all
}
