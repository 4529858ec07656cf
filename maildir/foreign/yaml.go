package foreign

import (
	"bytes"
	"errors"
	"io"
	"strconv"

	"go.yaml.in/yaml/v3"

	"mailtree/maildir/lazy"
)

const notYAML = "the header is not valid YAML: on each line, write a key, a colon and text, and put text with " +
	"special characters in quotation marks"

// readYAML reads a mapping. It rejects anchors, aliases and tags, because they allow a few bytes to represent a huge
// value, or a value that is not text. If a key appears twice, readYAML returns both.
func readYAML(header []byte, depth int) ([]Key, error) {
	var doc, rest yaml.Node
	d := yaml.NewDecoder(bytes.NewReader(header))
	if err := d.Decode(&doc); errors.Is(err, io.EOF) {
		return nil, nil
	} else if err != nil {
		return nil, badYAML(err)
	}
	if err := d.Decode(&rest); !errors.Is(err, io.EOF) {
		return nil, fault(1+max(1, rest.Line), `the header contains more than one YAML document: remove the line "..."`)
	}
	top := doc.Content[0]
	if top.Kind != yaml.MappingNode || top.Anchor != "" || top.Style&yaml.TaggedStyle != 0 {
		return nil, fault(1+top.Line, notYAML)
	}
	var keys []Key
	r := yamlReader{depth}
	for i := 0; i < len(top.Content); i += 2 {
		name, err := r.key(top.Content[i])
		if err != nil {
			return nil, err
		}
		value, err := r.value(top.Content[i+1], 2)
		if err != nil {
			return nil, err
		}
		keys = append(keys, Key{Name: name, Line: 1 + top.Content[i].Line, Value: value})
	}
	return keys, nil
}

// yamlReader converts nodes to Key values. depth is the deepest level at which a list or mapping may occur.
type yamlReader struct{ depth int }

// value returns the value of n, which is at the given level.
func (r yamlReader) value(n *yaml.Node, level int) (any, error) {
	line := 1 + n.Line
	switch {
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		return nil, fault(line, "anchors (&) and aliases (*) are not supported: write the text itself, in "+
			"quotation marks if it begins with one of these characters")
	case n.Style&yaml.TaggedStyle != 0:
		return nil, fault(line, "tags (!) are not supported, and every value is text: put text that begins with "+
			"! in quotation marks")
	case n.Kind == yaml.ScalarNode:
		return n.Value, nil
	case level > r.depth:
		return nil, tooDeep(line, r.depth)
	case n.Kind == yaml.MappingNode:
		return r.mapping(n, level)
	}
	list := make([]any, len(n.Content))
	for i, item := range n.Content {
		var err error
		if list[i], err = r.value(item, level+1); err != nil {
			return nil, err
		}
	}
	return list, nil
}

func (r yamlReader) mapping(n *yaml.Node, level int) (any, error) {
	m := map[string]any{}
	for i := 0; i < len(n.Content); i += 2 {
		name, err := r.key(n.Content[i])
		if err != nil {
			return nil, err
		}
		if _, twice := m[name]; twice {
			return nil, fault(1+n.Content[i].Line, "a key appears twice: keep one")
		}
		if m[name], err = r.value(n.Content[i+1], level+1); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// key returns the name of a key, which must be a scalar.
func (r yamlReader) key(n *yaml.Node) (string, error) {
	if n.Kind == yaml.SequenceNode || n.Kind == yaml.MappingNode {
		return "", fault(1+n.Line, "a key is a list or contains keys: use a word as the key")
	}
	v, err := r.value(n, r.depth)
	name, _ := v.(string)
	return name, err
}

var yamlLine = lazy.Regexp(`line ([0-9]+)`)

// badYAML returns the fault for an error from package yaml. It omits the error's text, which may quote the file.
func badYAML(err error) error {
	line := 1
	if m := yamlLine().FindStringSubmatch(err.Error()); m != nil {
		line, _ = strconv.Atoi(m[1])
	}
	return fault(1+line, notYAML)
}
