package tool

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"

	"github.com/google/jsonschema-go/jsonschema"
)

// Node says what an argument is: its schema, which cannot allow null, and an example.
type Node struct {
	schema  jsonschema.Schema
	choices []string // of OneOf
	example string   // JSON; it stands in what is said about wrong arguments, and not in the schema
	commas  bool     // of CommaList
	as      string   // the tag

	least, most int // of Num
}

// Prop is one argument of a tool.
type Prop struct {
	Name string
	Need bool
	*Node
	late  bool
	other string // see Or
	field []int  // its index in the request
}

// Need is an argument that every call must give.
func Need(name string, n *Node) Prop { return Prop{Name: name, Need: true, Node: n} }

// May is an argument that a call may leave out.
func May(name string, n *Node) Prop { return Prop{Name: name, Node: n} }

// Late is a needed argument that the tool itself asks for, with Args.Require: it looks at something
// else first.
func Late(name string, n *Node) Prop {
	return Prop{
		Name: name,
		Need: true,
		Node: n,
		late: true,
	}
}

// Or is the argument under another name too, which neither the schema nor a sentence has: one that
// other programs gave it. The schema requires neither name, so that a call with either is valid there.
func (p Prop) Or(other string) Prop {
	p.other = other
	return p
}

// Str is a string.
func Str(about, example string) *Node {
	return &Node{
		schema:  jsonschema.Schema{Type: "string", Description: about},
		example: strconv.Quote(example),
	}
}

// OneOf is one of some strings; a deflt of "" is none.
func OneOf(about string, deflt string, values ...string) *Node {
	n := Str(about, values[0])
	n.choices = values
	for _, v := range values {
		n.schema.Enum = append(n.schema.Enum, v)
	}
	if deflt != "" {
		n.schema.Default = Encode(deflt)
	}
	return n
}

// List is a list of strings.
func List(about, example string) *Node {
	items := &jsonschema.Schema{Type: "string"}
	return &Node{
		schema:  jsonschema.Schema{Type: "array", Description: about, Items: items},
		example: "[" + strconv.Quote(example) + "]",
	}
}

// CommaList is a List of what holds no comma: one string may hold several, with commas between
// them.
func CommaList(about, example string) *Node {
	n := List(about, example)
	n.commas = true
	return n
}

// Flag is true or false; false where it is absent.
func Flag(about string) *Node {
	return &Node{
		schema:  jsonschema.Schema{Type: "boolean", Description: about},
		example: "true",
	}
}

// TrueFlag is a Flag that is true where it is absent.
func TrueFlag(about string) *Node {
	n := Flag(about)
	n.schema.Default = json.RawMessage("true")
	return n
}

// Num is a whole number. The schema has what does not go without saying: a least above 1, a most
// below math.MaxInt32, a default other than 0.
func Num(about string, least, most, deflt int) *Node {
	s := jsonschema.Schema{Type: "integer", Description: about}
	if least > 1 {
		s.Minimum = jsonschema.Ptr(float64(least))
	}
	if most != math.MaxInt32 {
		s.Maximum = jsonschema.Ptr(float64(most))
	}
	if deflt != 0 {
		s.Default = Encode(deflt)
	}
	return &Node{
		schema:  s,
		example: strconv.Itoa(deflt),
		least:   least,
		most:    most,
	}
}

// InputSchema is the schema of an object that takes these arguments, in this order. It does not say
// that it takes no others, because the Python google-genai library fails on additionalProperties;
// DecodeArgs refuses them.
func InputSchema(in []Prop) json.RawMessage {
	s := jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{}}
	for _, p := range in {
		s.Properties[p.Name] = &p.schema
		s.PropertyOrder = append(s.PropertyOrder, p.Name)
		if p.Need && p.other == "" {
			s.Required = append(s.Required, p.Name)
		}
	}
	return Encode(&s)
}

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

// described is an object that has been described, with the schemas of its fields as they were
// inferred.
type described struct {
	place
	fields map[string]string
}

type place struct{ tool, field string }

func (o *outputs) schema(tool string, answer any) json.RawMessage {
	s, err := jsonschema.ForType(reflect.TypeOf(answer), &jsonschema.ForOptions{})
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
