package edit

import (
	"errors"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"
	"github.com/tailscale/hujson"

	"mailtree/maildir/lazy"
)

// TOML is a file in which the entry is a separate table, [a.b]. If the entry has another form (inline, or with dotted
// keys), editing it returns ErrByHand.
type TOML struct{}

// Get implements Format.
func (TOML) Get(data []byte, path []string) (any, error) {
	root := map[string]any{}
	err := toml.Unmarshal([]byte(strings.TrimPrefix(string(data), bom)), &root)
	var syntax toml.ParseError
	if errors.As(err, &syntax) {
		return nil, &SyntaxError{Line: line(data, syntax.Position.Start-1), Why: syntax.Message}
	}
	if err != nil {
		return nil, &SyntaxError{Line: 1, Why: err.Error()}
	}
	return descend(root, path), nil
}

// Put implements Format.
func (f TOML) Put(data []byte, e Entry) ([]byte, error) {
	got, err := f.Get(data, e.Path)
	if err != nil {
		return nil, err
	}
	old, isTable := got.(map[string]any)
	if got != nil && !isTable {
		return nil, ErrByHand
	}
	want := wanted(old, e)
	if old != nil && reflect.DeepEqual(old, want) {
		return data, nil
	}
	nl, text := newline(data), string(data)
	var keys strings.Builder
	for _, k := range e.all(old == nil) {
		keys.WriteString(k.Name + " = " + value(k.Value) + nl)
	}
	if old == nil {
		if inline(e.Path).MatchString(text) {
			return nil, ErrByHand
		}
		if text != "" && !strings.HasSuffix(text, "\n") {
			text += nl
		}
		if strings.Trim(text, bom) != "" {
			text += nl
		}
		text += "[" + strings.Join(e.Path, ".") + "]" + nl + keys.String()
		return checked(f, data, []byte(text), e.Path, want)
	}
	lines := strings.SplitAfter(text, "\n")
	for i := range lines {
		if !header(e.Path).MatchString(lines[i]) {
			continue
		}
		out := slices.Clone(lines[:i+1])
		out = append(out, keys.String())
		for _, l := range lines[i+1 : section(lines, i)] {
			if !sets(l, e) {
				out = append(out, l)
			}
		}
		out = append(out, lines[section(lines, i):]...)
		if after, err := checked(f, data, []byte(strings.Join(out, "")), e.Path, want); err == nil {
			return after, nil
		}
	}
	return nil, ErrByHand
}

// Cut implements Format.
func (f TOML) Cut(data []byte, path []string) ([]byte, error) {
	got, err := f.Get(data, path)
	if err != nil || got == nil {
		return data, err
	}
	lines := strings.SplitAfter(string(data), "\n")
	for i := len(lines) - 1; i >= 0; i-- {
		if !headerBelow(path).MatchString(lines[i]) {
			continue
		}
		from, to := i, section(lines, i)
		if from > 0 && strings.TrimSpace(lines[from-1]) == "" {
			from--
		}
		rest := slices.Concat(lines[:from], lines[to:])
		if sameElse(f, data, []byte(strings.Join(rest, "")), path) { // otherwise the line is part of a string
			lines = rest
		}
	}
	return checked(f, data, []byte(strings.Join(lines, "")), path, nil)
}

// Empty implements Format.
func (TOML) Empty(data []byte) bool { return blank([]byte(strings.TrimPrefix(string(data), bom))) }

// anyHeader matches a line that looks like the header of a table. A line inside a multi-line string may match too. If
// an edit cuts the text at such a line, the check of the result fails.
var anyHeader = lazy.Regexp(`^\s*\[`)

// header matches the header of the table at path.
func header(path []string) *regexp.Regexp { return regexp.MustCompile(headerBegins(path) + headerEnds) }

// headerBelow matches the header of the table at path and the headers of the tables below it.
func headerBelow(path []string) *regexp.Regexp {
	return regexp.MustCompile(headerBegins(path) + `(?:\..*)?` + headerEnds)
}

func headerBegins(path []string) string { return `^(?:` + bom + `)?\s*\[` + dotted(path) }

const headerEnds = `\]\s*(?:#.*)?\s*$`

// inline matches a line that sets the parent of the entry at path to an inline table. TOML forbids a [table] below an
// inline table, but this parser accepts it.
func inline(path []string) *regexp.Regexp {
	return regexp.MustCompile(`(?m)^(?:` + bom + `)?` + dotted(path[:len(path)-1]) + `=`)
}

// dotted returns a regular expression that matches a dotted key.
func dotted(path []string) string {
	all := make([]string, len(path))
	for i, name := range path {
		name = regexp.QuoteMeta(name)
		all[i] = `\s*(?:` + name + `|"` + name + `"|'` + name + `')\s*`
	}
	return strings.Join(all, `\.`)
}

// section returns the index after the last line of the table that starts at line at. Trailing blank lines and comments
// are not included, because comments before the next table belong to that table.
func section(lines []string, at int) int {
	end := at + 1
	for i := at + 1; i < len(lines) && !anyHeader().MatchString(lines[i]); i++ {
		if l := strings.TrimSpace(lines[i]); l != "" && !strings.HasPrefix(l, "#") {
			end = i + 1
		}
	}
	return end
}

// sets reports whether a line sets one of e's keys, or a key that e drops.
func sets(l string, e Entry) bool {
	name, _, ok := strings.Cut(l, "=")
	name = strings.Trim(name, " \t\"'")
	return ok && (slices.Contains(e.Drop, name) || slices.ContainsFunc(e.Keys, func(k Key) bool { return k.Name == name }))
}

// value formats the value of a Key.
func value(v any) string {
	switch v := v.(type) {
	case bool:
		return strconv.FormatBool(v)
	case []string:
		all := make([]string, len(v))
		for i, s := range v {
			all[i] = value(s)
		}
		return "[" + strings.Join(all, ", ") + "]"
	default:
		return string(hujson.String(v.(string))) // a JSON string is also a valid TOML string
	}
}
