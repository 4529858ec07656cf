// Package foreign reads headers that users and other programs write above text: YAML between --- lines, as in
// note-taking programs, and TOML between +++ lines, as in other mail systems and site generators. It does not depend on
// mail. Package format defines what the keys mean.
package foreign

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/adrg/frontmatter"

	"mailtree/maildir/tree"
)

// The lines that enclose a header.
const (
	YAML = "---"
	TOML = "+++"
)

// Limits restricts the size and the nesting of a header.
type Limits struct {
	Bytes int // maximum size of the header
	Depth int // maximum nesting depth; the header itself is the first level
}

// File is a header and the text below it.
type File struct {
	Keys []Key // in file order
	Body string
}

// Key is a key of a header. Value is a string, bool, number, []any of values, or map[string]any of values. Every YAML
// scalar is a string, so that `no` and `12` keep their text. A TOML time is a string in RFC 3339 format. A time without
// an offset is treated as UTC.
type Key struct {
	Name  string
	Line  int // line number in the file, starting at 1
	Value any
}

// Is reports whether data begins with the opening line of a header of the given kind, YAML or TOML.
func Is(data []byte, fence string) bool {
	first, _, _ := bytes.Cut(data, []byte("\n"))
	return string(bytes.TrimRight(first, " \t\r")) == fence
}

// Parse reads a file for which Is returns true. Its error is a *tree.FormatError, which does not quote the file.
func Parse(data []byte, fence string, limits Limits) (*File, error) {
	if i := tree.InvalidUTF8(data); i < len(data) {
		return nil, fault(1+bytes.Count(data[:i], []byte("\n")), "the text is not valid UTF-8: save the file as UTF-8")
	}
	f := &File{}
	read := func(header []byte, _ any) error {
		if len(header) > limits.Bytes {
			return fault(1, fmt.Sprintf("the header is over %d bytes: shorten it", limits.Bytes))
		}
		if !closes(data, header, fence) {
			return fault(1+bytes.Count(header, []byte("\n"))+1,
				"the header contains an indented "+fence+": remove the spaces before it")
		}
		var err error
		if fence == TOML {
			f.Keys, err = readTOML(header, limits.Depth)
		} else {
			f.Keys, err = readYAML(header, limits.Depth)
		}
		return err
	}
	body, err := frontmatter.MustParse(bytes.NewReader(data), nil, frontmatter.NewFormat(fence, fence, read))
	if errors.Is(err, frontmatter.ErrNotFound) {
		return nil, fault(1, unclosed+fence+": add it before the text")
	}
	if err != nil {
		return nil, err
	}
	text := strings.ReplaceAll(string(body), "\r\n", "\n")
	f.Body = strings.TrimSuffix(strings.TrimPrefix(text, "\n"), "\n")
	return f, nil
}

const unclosed = "the header has no closing line "

// Missing reports whether err means that Parse rejected a file because the file has no header between fence lines, or
// because that header is not YAML.
func Missing(err error) bool {
	var f *tree.FormatError
	return errors.As(err, &f) && (f.Reason == notYAML || strings.HasPrefix(f.Reason, unclosed))
}

// closes reports whether the line below a header begins with the fence, with no spaces before it.
func closes(data, header []byte, fence string) bool {
	first := bytes.IndexByte(data, '\n') + 1
	return bytes.HasPrefix(data[first+len(header):], []byte(fence))
}

func fault(line int, reason string) *tree.FormatError {
	return &tree.FormatError{Line: line, Reason: reason}
}

func tooDeep(line, depth int) *tree.FormatError {
	return fault(line, fmt.Sprintf("the header is nested more than %d levels deep: flatten it", depth))
}
