package foreign

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/BurntSushi/toml"
)

const notTOML = "the header is not valid TOML: on each line, write a key, = and text in quotation marks"

func readTOML(header []byte, depth int) ([]Key, error) {
	text := string(header)
	if line := deepTOML(text, depth); line > 0 {
		return nil, tooDeep(1+line, depth)
	}
	var values map[string]any
	meta, err := toml.Decode(text, &values)
	var bad toml.ParseError
	switch {
	case errors.As(err, &bad):
		return nil, fault(1+max(1, bad.Position.Line), notTOML)
	case err != nil:
		return nil, fault(2, notTOML)
	}
	var keys []Key
	at := lineFinder{lines: strings.Split(text, "\n")}
	seen := map[string]bool{}
	for _, key := range meta.Keys() {
		name := key[0]
		if seen[name] {
			continue
		}
		seen[name] = true
		value := tomlValue(values[name])
		if deeper(value, depth-1) {
			return nil, tooDeep(1+at.find(name), depth)
		}
		keys = append(keys, Key{Name: name, Line: 1 + at.find(name), Value: value})
	}
	return keys, nil
}

// tomlValue converts a value from package toml to one of the types that Key.Value may have.
func tomlValue(v any) any {
	switch v := v.(type) {
	case time.Time:
		if strings.HasSuffix(v.Location().String(), "-local") { // the zone of a time without an offset
			v = time.Date(v.Year(), v.Month(), v.Day(), v.Hour(), v.Minute(), v.Second(), v.Nanosecond(), time.UTC)
		}
		return v.Format(time.RFC3339Nano)
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) { // other formats cannot represent such numbers
			return strconv.FormatFloat(v, 'g', -1, 64)
		}
	case []map[string]any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = tomlValue(v[i])
		}
		return list
	case []any:
		for i := range v {
			v[i] = tomlValue(v[i])
		}
	case map[string]any:
		for name := range v {
			v[name] = tomlValue(v[name])
		}
	}
	return v
}

// deeper reports whether a value is nested deeper than depth.
func deeper(v any, depth int) bool {
	switch v := v.(type) {
	case []any:
		for i := range v {
			if depth < 1 || deeper(v[i], depth-1) {
				return true
			}
		}
		return depth < 1
	case map[string]any:
		for name := range v {
			if depth < 1 || deeper(v[name], depth-1) {
				return true
			}
		}
		return depth < 1
	}
	return false
}

// lineFinder finds the lines of keys, because package toml does not report lines. The keys must be requested in file
// order.
type lineFinder struct {
	lines []string
	last  int // number of the line found last; the first line is 1
}

// find returns the number of the line that begins with the key. If there is no such line, it returns the line found
// last.
func (f *lineFinder) find(name string) int {
	for i := max(0, f.last-1); i < len(f.lines); i++ {
		line := strings.TrimLeft(f.lines[i], "[ \t\"'")
		if rest, ok := strings.CutPrefix(line, name); ok && strings.Trim(rest[:min(1, len(rest))], "=.] \t\"'") == "" {
			f.last = i + 1
			break
		}
	}
	return max(1, f.last)
}

// deepTOML returns the line at which TOML text nests brackets or dotted keys deeper than depth, or 0 if there is no
// such line. Package toml recurses without a depth limit, so readTOML calls deepTOML first. Brackets in strings are not
// counted.
func deepTOML(text string, depth int) int {
	line, open, dots := 1, 0, 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '\n':
			line++
			dots = 0
		case '[', '{':
			open++
			dots = 0
		case ']', '}':
			open = max(0, open-1)
		case '=', ',':
			dots = 0
		case '.':
			dots++
		case '#':
			for i+1 < len(text) && text[i+1] != '\n' {
				i++
			}
		case '"', '\'':
			end := endOfText(text, i)
			line += strings.Count(text[i:end], "\n")
			i = end - 1
		}
		if open > depth || dots >= depth {
			return line
		}
	}
	return 0
}

// endOfText returns the offset after the quoted string that begins at offset i. If a single-line string is not
// closed, it ends at the end of its line.
func endOfText(text string, i int) int {
	mark := text[i : i+1]
	if long := strings.Repeat(mark, 3); strings.HasPrefix(text[i:], long) {
		mark = long
	}
	for i += len(mark); i < len(text); i++ {
		switch {
		case text[i] == '\\' && mark[0] == '"':
			i++
		case text[i] == '\n' && len(mark) == 1:
			return i
		case strings.HasPrefix(text[i:], mark):
			i += len(mark)
			for len(mark) == 3 && i < len(text) && text[i] == mark[0] { // in """", the first " belongs to the string
				i++
			}
			return i
		}
	}
	return len(text)
}
