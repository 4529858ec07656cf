package tool

import (
	"encoding/json"
	"strconv"
	"strings"
)

// Node is a JSON schema, as far as the tools need one. There is no way to say "or null".
type Node struct {
	typ     string // string, boolean, integer, array, object
	about   string
	enum    []string
	limits  string // "minimum" and the like, as JSON members
	deflt   string // JSON
	example string // JSON; for messages, not on the wire
	items   *Node
	props   []Prop // of an object, in the order they are shown
}

// Prop is one property of an object: an argument of a tool, or a part of an answer.
type Prop struct {
	Name string
	Need bool
	*Node
	late bool
}

// Need is a property that is always there.
func Need(name string, n *Node) Prop { return Prop{Name: name, Need: true, Node: n} }

// May is a property that may be absent.
func May(name string, n *Node) Prop { return Prop{Name: name, Node: n} }

// Late is a needed argument that the tool itself asks for, with Args.Require: it looks at something else first.
func Late(name string, n *Node) Prop { return Prop{Name: name, Need: true, Node: n, late: true} }

// The nodes of arguments. The example stands in what is said about wrong arguments.

// Str is a string.
func Str(about, example string) *Node {
	return &Node{typ: "string", about: about, example: strconv.Quote(example)}
}

// OneOf is one of some strings; a deflt of "" is none.
func OneOf(about string, deflt string, values ...string) *Node {
	n := &Node{typ: "string", about: about, enum: values, example: strconv.Quote(values[0])}
	if deflt != "" {
		n.deflt = strconv.Quote(deflt)
	}
	return n
}

// List is a list of strings.
func List(about, example string) *Node {
	return &Node{typ: "array", about: about, items: &Node{typ: "string"}, example: "[" + strconv.Quote(example) + "]"}
}

// Flag is true or false.
func Flag(about string, deflt bool) *Node {
	return &Node{typ: "boolean", about: about, deflt: strconv.FormatBool(deflt), example: "true"}
}

// Num is a whole number.
func Num(about string, least, most, deflt int) *Node {
	return &Node{typ: "integer", about: about, limits: `"minimum":` + strconv.Itoa(least) + `,"maximum":` + strconv.Itoa(most),
		deflt: strconv.Itoa(deflt), example: strconv.Itoa(deflt)}
}

// The nodes of answers carry no examples.

// Text is a string.
func Text(about string) *Node { return &Node{typ: "string", about: about} }

// Whole is a whole number.
func Whole(about string) *Node { return &Node{typ: "integer", about: about} }

// Truth is true or false.
func Truth(about string) *Node { return &Node{typ: "boolean", about: about} }

// Texts is a list of strings.
func Texts(about string) *Node {
	return &Node{typ: "array", about: about, items: &Node{typ: "string"}}
}

// Object is an object with those properties.
func Object(about string, p ...Prop) *Node { return &Node{typ: "object", about: about, props: p} }

// ArrayOf is a list.
func ArrayOf(about string, items *Node) *Node {
	return &Node{typ: "array", about: about, items: items}
}

// MarshalJSON is the schema.
func (n *Node) MarshalJSON() ([]byte, error) { return []byte(n.write(false)), nil }

func member(b *strings.Builder, k, json string) { b.WriteString(`,"` + k + `":` + json) }

// InputSchema is an object that takes these properties and no others.
func InputSchema(p []Prop) json.RawMessage { return json.RawMessage(Object("", p...).write(true)) }

// OutputSchema is what a tool answers: its result, or the refusal that every tool may give. Clients check an
// error's structuredContent against the schema too (the TypeScript SDK does), so it allows for both.
func OutputSchema(p []Prop) json.RawMessage {
	refusal := []Prop{Need("error", Text("what was wrong and what to do")), Need("code", Text("kind of error")), May("near", Texts("names close to the one not found"))}
	all := Object("", append(optional(p), optional(refusal)...)...).write(false)
	return json.RawMessage(strings.TrimSuffix(all, "}") + `,"anyOf":[` + required(p) + "," + required(refusal) + "]}")
}

func optional(p []Prop) []Prop {
	out := make([]Prop, len(p))
	for i := range p {
		out[i] = May(p[i].Name, p[i].Node)
	}
	return out
}

func required(p []Prop) string {
	names := []string{}
	for _, x := range p {
		if x.Need {
			names = append(names, x.Name)
		}
	}
	return `{"required":` + quoted(names) + "}"
}

// write gives the schema as JSON with its properties in order. closed objects take no other properties.
func (n *Node) write(closed bool) string {
	var b strings.Builder
	b.WriteString(`{"type":"` + n.typ + `"`)
	if n.about != "" {
		member(&b, "description", quoted(n.about))
	}
	if n.enum != nil {
		member(&b, "enum", quoted(n.enum))
	}
	if n.limits != "" {
		b.WriteString("," + n.limits)
	}
	if n.deflt != "" {
		member(&b, "default", n.deflt)
	}
	if n.items != nil {
		member(&b, "items", n.items.write(closed))
	}
	if n.typ == "object" {
		n.writeObject(&b, closed)
	}
	return b.String() + "}"
}

func (n *Node) writeObject(b *strings.Builder, closed bool) {
	var props, names []string
	for _, p := range n.props {
		props = append(props, quoted(p.Name)+":"+p.write(closed))
		if p.Need {
			names = append(names, p.Name)
		}
	}
	member(b, "properties", "{"+strings.Join(props, ",")+"}")
	if names != nil {
		member(b, "required", quoted(names))
	}
	if closed {
		member(b, "additionalProperties", "false")
	}
}

// quoted is v as JSON without HTML escapes.
func quoted(v any) string { return string(Encode(v)) }
