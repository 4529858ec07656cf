package mail

import (
	"encoding/json"
	"strconv"
	"strings"
)

// node is a JSON schema, as far as the tools need one. There is no way to say "or null".
type node struct {
	typ     string // string, boolean, integer, array, object
	about   string
	enum    []string
	limits  string // "minimum" and the like, as JSON members
	deflt   string // JSON
	example string // JSON; for messages, not on the wire
	items   *node
	props   []prop // of an object, in the order they are shown
}

// prop is one property of an object.
type prop struct {
	name string
	need bool
	*node
}

func need(name string, n *node) prop { return prop{name, true, n} }
func may(name string, n *node) prop  { return prop{name, false, n} }

func str(about, example string) *node {
	return &node{typ: "string", about: about, example: strconv.Quote(example)}
}

func oneOf(about string, deflt string, values ...string) *node {
	n := &node{typ: "string", about: about, enum: values, example: strconv.Quote(values[0])}
	if deflt != "" {
		n.deflt = strconv.Quote(deflt)
	}
	return n
}

func list(about, example string) *node {
	return &node{typ: "array", about: about, items: &node{typ: "string"}, example: "[" + strconv.Quote(example) + "]"}
}

func flag(about string, deflt bool) *node {
	return &node{typ: "boolean", about: about, deflt: strconv.FormatBool(deflt), example: "true"}
}

func num(about string, least, most, deflt int) *node {
	return &node{typ: "integer", about: about, limits: `"minimum":` + strconv.Itoa(least) + `,"maximum":` + strconv.Itoa(most),
		deflt: strconv.Itoa(deflt), example: strconv.Itoa(deflt)}
}

// The nodes of results carry no examples.
func text(about string) *node                   { return &node{typ: "string", about: about} }
func whole(about string) *node                  { return &node{typ: "integer", about: about} }
func truth(about string) *node                  { return &node{typ: "boolean", about: about} }
func texts(about string) *node                  { return &node{typ: "array", about: about, items: &node{typ: "string"}} }
func object(about string, p ...prop) *node      { return &node{typ: "object", about: about, props: p} }
func arrayOf(about string, items *node) *node   { return &node{typ: "array", about: about, items: items} }
func inputSchema(p []prop) json.RawMessage      { return json.RawMessage(object("", p...).write(true)) }
func (n *node) MarshalJSON() ([]byte, error)    { return []byte(n.write(false)), nil }
func member(b *strings.Builder, k, json string) { b.WriteString(`,"` + k + `":` + json) }

// outputSchema is what a tool answers: its result, or the refusal that every tool may give. Clients check an
// error's structuredContent against the schema too (the TypeScript SDK does), so it allows for both.
func outputSchema(p []prop) json.RawMessage {
	refusal := []prop{need("error", text("what was wrong and what to do")), need("code", text("kind of error")), may("near", texts("names close to the one not found"))}
	all := object("", append(optional(p), optional(refusal)...)...).write(false)
	return json.RawMessage(strings.TrimSuffix(all, "}") + `,"anyOf":[` + required(p) + "," + required(refusal) + "]}")
}

func optional(p []prop) []prop {
	out := make([]prop, len(p))
	for i := range p {
		out[i] = may(p[i].name, p[i].node)
	}
	return out
}

func required(p []prop) string {
	names := []string{}
	for _, x := range p {
		if x.need {
			names = append(names, x.name)
		}
	}
	return `{"required":` + quoted(names) + "}"
}

// write gives the schema as JSON with its properties in order. closed objects take no other properties.
func (n *node) write(closed bool) string {
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

func (n *node) writeObject(b *strings.Builder, closed bool) {
	var props, names []string
	for _, p := range n.props {
		props = append(props, quoted(p.name)+":"+p.write(closed))
		if p.need {
			names = append(names, p.name)
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
func quoted(v any) string { return string(encode(v)) }
