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

// OutputSchema is the schema of what a tool answers, inferred from the struct: json tags name the
// fields, jsonschema tags describe them. No field is required, so that a Refusal fits the schema
// too: clients check the structured content of an error as well (the TypeScript SDK does). An anyOf
// of answer and refusal would say more, but for such a schema Codex and mcporter show the model no
// fields at all.
func OutputSchema(answer any) json.RawMessage {
	return new(outputs).schema("", answer)
}

// outputs makes the output schemas of a toolset. Many clients put all of them into the prompt, so
// fields that an object shares with an earlier one are described there, and a sentence names the
// place: a reference in words, because not every client follows a $ref.
type outputs struct{ seen []described }

// stamps says that a time is a string.
var stamps = map[reflect.Type]*jsonschema.Schema{reflect.TypeFor[format.Stamp](): {Type: "string"}}

// described is an object that has been described, with the schemas of its fields as they were
// inferred.
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

// simplify makes the inferred schema of a field one that strict clients take, which want one type,
// never null (tooltest.Fits holds the lists to it), and that they still take when answers get new
// fields: objects stay open.
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

// refer takes from an object the fields that the most similar object before it has, where these are
// most of its own, and says so. A whole answer keeps its fields, because some clients make types of
// them, unless another tool answers with the very same ones.
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

// shared counts the fields that the object has alike.
func (d *described) shared(fields map[string]string) (n int) {
	for name, f := range fields {
		if d.fields[name] == f {
			n++
		}
	}
	return n
}
