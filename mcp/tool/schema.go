package tool

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"

	"mailtree/maildir/format"
)

// OutputSchema returns the schema of a tool's answer, inferred from the struct: json tags name the
// fields. No field is required, so a Refusal fits the schema too: clients such as the TypeScript SDK
// check the structured content of an error as well. An anyOf of answer and refusal would be more
// precise, but Codex and mcporter show the model no fields of such a schema.
func OutputSchema(answer any) json.RawMessage { return Encode(inferred(answer)) }

// stamps maps the type of a time to the schema of a string.
var stamps = map[reflect.Type]*jsonschema.Schema{reflect.TypeFor[format.Stamp](): {Type: "string"}}

func inferred(answer any) *jsonschema.Schema {
	s, err := jsonschema.ForType(reflect.TypeOf(answer), &jsonschema.ForOptions{TypeSchemas: stamps})
	if err != nil {
		panic(fmt.Errorf("the answer %T has no schema: %w", answer, err))
	}
	simplify(s)
	return s
}

// simplify makes an inferred schema acceptable to strict clients, which accept only one type per value, and never null
// (tooltest.Fits checks that lists are not null). Objects stay open, so answers may gain new fields and may contain
// fields that are not declared. No field has a description.
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

// published returns the output schema of each tool as a client gets it: the result of OutputSchema without the fields
// of nested objects. Clients check answers against these schemas, but none of the clients that were tested shows them
// to its model. Therefore the room in a listing is kept for what models read. If two tools have the same answer, only
// the first declares its fields.
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
