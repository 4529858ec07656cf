package tool

import (
	"context"
	"encoding/json"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
)

// Of completes a tool whose arguments are the fields of R, in order. A field's tags declare its argument:
//
//   - json is the argument's name, and omitempty makes the argument optional;
//   - jsonschema describes it, and example appears in refusals;
//   - default, min and max appear in the schema, and most is a maximum that does not;
//   - enum lists the values of a string, in lower case and separated by commas;
//   - alias is another name that other programs use for the argument. The alias is not in the schema, and the schema
//     does not require the argument, so a call with the alias is valid;
//   - as says how to read the argument if its type does not determine that (see the constants).
//
// If an argument is absent, its pointer stays nil. The fields of an embedded struct become arguments in place of the
// struct. The function run is called only with valid arguments.
func Of[R any](t Tool, run func(ctx context.Context, r *R) (any, error)) Tool {
	t.In = argsOf(reflect.TypeFor[R]())
	t.Run = func(ctx context.Context, data json.RawMessage) (any, error) {
		r := new(R)
		a := decode(t.Name, data, t.In)
		if a.err == nil {
			a.into(ctx, reflect.ValueOf(r).Elem())
		}
		if a.err != nil {
			return nil, a.err
		}
		return run(ctx, r)
	}
	return t
}

// The values of the as tag.
const (
	asCommas = "commas" // one string may contain several items of the list, separated by commas
	asJoined = "joined" // the strings of a list are joined with commas into one string
	asLimit  = "limit"  // page size: "all" and numbers above most are replaced with most; 0 means the default if the minimum is 1
	asCursor = "cursor" // the position given as next_cursor in an earlier response
	asLate   = "late"   // the tool itself refuses a call without this argument, after other checks, using Missing
	asGiven  = "given"  // the tool itself checks whether the value is in the enum
)

// Wait says how long a call waits. The call passes a number of seconds, which is limited to LongestWait. If the call
// asked for a longer wait, Note says that the wait was limited. Otherwise Note is "".
type Wait struct {
	For  time.Duration
	Note string
}

// Missing returns the refusal for a call that omits the named argument. R declares the tool's arguments.
func Missing[R any](name string) error {
	a := &args{in: argsOf(reflect.TypeFor[R]())}
	return Invalid("%s", a.absent([]string{name}))
}

// Arg is one argument of a tool.
type Arg struct {
	Name    string
	Need    bool              // whether every call must pass the argument
	schema  jsonschema.Schema // must not allow null
	choices []string          // values of the enum
	example string            // JSON that appears in refusals but not in the schema
	as      string

	least, most int    // limits of a number
	other       string // the argument's alias
	field       []int  // index of the argument's field in the struct
}

// argsOf returns the arguments declared by the fields of a struct, including its embedded structs.
func argsOf(request reflect.Type) (in []Arg) {
	for i := range request.NumField() {
		f := request.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous:
			for _, p := range argsOf(f.Type) {
				p.field = append([]int{i}, p.field...)
				in = append(in, p)
			}
		case name == "":
			panic("the field " + f.Name + " of a request has no name")
		default:
			in = append(in, argOf(f, name, options != "omitempty"))
		}
	}
	return in
}

// argOf returns the argument declared by a field's type and tags.
func argOf(f reflect.StructField, name string, need bool) Arg {
	n := Arg{
		Name:    name,
		Need:    need,
		schema:  jsonschema.Schema{Type: "string", Description: f.Tag.Get("jsonschema")},
		example: strconv.Quote(f.Tag.Get("example")),
		as:      f.Tag.Get("as"),
		most:    math.MaxInt32,
		other:   f.Tag.Get("alias"),
		field:   f.Index,
	}
	deflt := f.Tag.Get("default")
	typ := f.Type
	if typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	switch {
	case typ == reflect.TypeFor[Wait](), typ.Kind() == reflect.Int:
		n.schema.Type, n.example = "integer", "0"
		if deflt != "" {
			n.example = deflt
		}
		n.bounds(f.Tag)
	case typ.Kind() == reflect.Bool:
		n.schema.Type, n.example = "boolean", "true"
	case typ.Kind() == reflect.Slice:
		n.schema.Type, n.schema.Items, n.example = "array", &jsonschema.Schema{Type: "string"}, "["+n.example+"]"
	case f.Tag.Get("enum") != "":
		n.choices = strings.Split(f.Tag.Get("enum"), ",")
		n.example = strconv.Quote(n.choices[0])
		for _, v := range n.choices {
			n.schema.Enum = append(n.schema.Enum, v)
		}
	}
	if deflt != "" {
		if n.schema.Default = json.RawMessage(deflt); n.schema.Type == "string" {
			n.schema.Default = Encode(deflt)
		}
	}
	return n
}

// bounds reads the limits of a number from the tags.
func (n *Arg) bounds(tag reflect.StructTag) {
	number := func(key string, to *int) *float64 {
		text, ok := tag.Lookup(key)
		if !ok {
			return nil
		}
		v, err := strconv.Atoi(text)
		if err != nil {
			panic(err) // the declaration in the source code is wrong
		}
		*to = v
		return jsonschema.Ptr(float64(v))
	}
	if least := number("min", &n.least); n.least > 1 {
		n.schema.Minimum = least
	}
	number("most", &n.most)
	n.schema.Maximum = number("max", &n.most)
}

// InputSchema returns the schema of an object with these arguments, in the same order. The schema does not forbid other
// arguments, because Python's google-genai library fails on additionalProperties. Instead, decode refuses them.
func InputSchema(in []Arg) json.RawMessage {
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
