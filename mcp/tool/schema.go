package tool

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"

	"mailtree/maildir/format"
)

// OutputSchema returns the schema of a tool's answer, inferred from the struct: json tags name the
// fields, jsonschema tags describe them. No field is required, so a Refusal fits the schema too: clients
// such as the TypeScript SDK check the structured content of an error as well. An anyOf of answer and
// refusal would be more precise, but Codex and mcporter show the model no fields of such a schema.
func OutputSchema(answer any) json.RawMessage {
	return new(outputs).schema("", answer)
}

// outputs makes the output schemas of a toolset. Many clients put all schemas into the prompt. So fields
// that an object shares with an earlier object are described only once, and a sentence refers to the
// earlier object: in words, because not every client follows a $ref.
type outputs struct{ seen []described }

// stamps maps the type of a time to the schema of a string.
var stamps = map[reflect.Type]*jsonschema.Schema{reflect.TypeFor[format.Stamp](): {Type: "string"}}

// described is an object that an earlier schema describes, with the inferred schemas of its fields.
type described struct {
	place
	fields map[string]string
}

type place struct{ tool, field string }

func (o *outputs) schema(tool string, answer any) json.RawMessage {
	s, err := jsonschema.ForType(reflect.TypeOf(answer), &jsonschema.ForOptions{TypeSchemas: stamps})
	if err != nil {
		panic(fmt.Errorf("the answer %T of %s has no schema: %w", answer, tool, err))
	}
	o.simplify(s, place{tool: tool})
	return Encode(s)
}

// simplify makes the inferred schema of a field acceptable to strict clients, which want one type and
// never null (tooltest.Fits checks that lists are not null). Objects stay open, so answers may get new
// fields.
func (o *outputs) simplify(s *jsonschema.Schema, at place) {
	s.Required, s.AdditionalProperties = nil, nil
	if s.Types != nil {
		s.Types = slices.DeleteFunc(s.Types, func(typ string) bool { return typ == "null" })
		s.Type, s.Types = s.Types[0], nil
	}
	if s.Items != nil {
		o.simplify(s.Items, at)
	}
	if s.Properties == nil {
		return
	}
	o.refer(s, at)
	for _, name := range s.PropertyOrder {
		o.simplify(s.Properties[name], place{tool: at.tool, field: name})
	}
}

// refer removes from an object the fields that the most similar earlier object has, if these are most of
// its fields, and adds a sentence that refers to the earlier object. A whole answer keeps its fields,
// because some clients make types of them, unless another tool's answer has exactly the same fields.
func (o *outputs) refer(s *jsonschema.Schema, at place) {
	fields := map[string]string{}
	for name, f := range s.Properties {
		fields[name] = string(Encode(f))
	}
	var like *described
	most := 0
	for i := range o.seen {
		if n := o.seen[i].shared(fields); n > most {
			like, most = &o.seen[i], n
		}
	}
	same := like != nil && most == len(fields) && most == len(like.fields)
	if like == nil || !same && (at.field == "" || 4*most < 3*len(fields)) {
		o.seen = append(o.seen, described{at, fields})
		return
	}
	s.Description = "as in " + like.tool
	if like.tool == at.tool {
		s.Description = "as in " + like.field
	}
	s.PropertyOrder = slices.DeleteFunc(s.PropertyOrder, func(name string) bool { return fields[name] == like.fields[name] })
	maps.DeleteFunc(s.Properties, func(name string, _ *jsonschema.Schema) bool { return fields[name] == like.fields[name] })
	if len(s.PropertyOrder) == 0 {
		s.Properties = nil
	} else {
		s.Description = "also " + s.Description
	}
	o.seen = append(o.seen, described{at, fields})
}

// shared counts the fields that the two objects have in common.
func (d *described) shared(fields map[string]string) (n int) {
	for name, f := range fields {
		if d.fields[name] == f {
			n++
		}
	}
	return n
}
