package tool

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"

	"mailtree/maildir/format"
)

// OutputSchema returns the schema of a tool's answer, inferred from the struct. The json tags are the names of the
// fields. No field is required, so a Refusal fits the schema too. This is necessary, because clients such as the
// TypeScript SDK check the structured content of an error as well. An anyOf of answer and refusal would be more
// precise, but Codex and mcporter show the model no fields of such a schema.
func OutputSchema(answer any) json.RawMessage {
	return outputs{}.schema("", answer)
}

// outputs creates the output schemas of a toolset. It records what earlier schemas declare: whole answers, and
// fields by name and type. The schema of a whole answer declares all its fields, because some clients generate
// types from them, unless another tool has the same answer. The schema of a nested object declares only fields that
// are new. No field has a description. Clients check answers against these schemas, but the clients that were
// measured show them to no model. Therefore the room in a listing belongs to what models read.
type outputs map[string]bool

// stamps maps the type of a time to the schema of a string.
var stamps = map[reflect.Type]*jsonschema.Schema{reflect.TypeFor[format.Stamp](): {Type: "string"}}

func (o outputs) schema(tool string, answer any) json.RawMessage {
	s, err := jsonschema.ForType(reflect.TypeOf(answer), &jsonschema.ForOptions{TypeSchemas: stamps})
	if err != nil {
		panic(fmt.Errorf("the answer %T of %s has no schema: %w", answer, tool, err))
	}
	answers := string(Encode(s))
	if o[answers] {
		return Encode(&jsonschema.Schema{Type: "object"})
	}
	o[answers] = true
	const whole = true
	o.simplify(s, whole)
	return Encode(s)
}

// simplify makes the inferred schema of a field acceptable to strict clients, which want one type and never null.
// tooltest.Fits checks that lists are not null. Objects stay open, so answers may get new fields, and may have
// fields that are not declared.
func (o outputs) simplify(s *jsonschema.Schema, whole bool) {
	s.Required, s.AdditionalProperties, s.Description = nil, nil, ""
	if s.Types != nil {
		s.Types = slices.DeleteFunc(s.Types, func(typ string) bool { return typ == "null" })
		s.Type, s.Types = s.Types[0], nil
	}
	if s.Items != nil {
		o.simplify(s.Items, false)
	}
	s.PropertyOrder = slices.DeleteFunc(s.PropertyOrder, func(name string) bool {
		f := s.Properties[name]
		o.simplify(f, false)
		declared := name + string(Encode(f))
		repeated := o[declared] && !whole
		o[declared] = true
		if repeated {
			delete(s.Properties, name)
		}
		return repeated
	})
	if len(s.Properties) == 0 {
		s.Properties = nil
	}
}
