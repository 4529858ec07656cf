package tool

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"mailtree/maildir/refusal"
)

// args contains the arguments of one call.
//
// Models may write a string instead of a list, a list as a JSON string, "true" instead of true, "20" instead of 20, or
// "" for an argument that they want to omit. The into method accepts such a value if its meaning is unambiguous.
type args struct {
	raw map[string]json.RawMessage // the arguments that the call passes
	in  []Arg                      // the arguments that the tool declares
	err error                      // all errors found so far, joined
}

// decode checks that the tool declares all passed arguments, that no argument is passed twice, and that no required
// argument is missing. If data is empty or null, there are no arguments.
func decode(tool string, data json.RawMessage, in []Arg) *args {
	a := &args{raw: map[string]json.RawMessage{}, in: in}
	if data = bytes.TrimSpace(data); len(data) > 0 {
		if err := json.Unmarshal(data, &a.raw); err != nil {
			a.err = Invalid("Arguments must be a JSON object such as %s.", sample(in))
			return a
		}
		if name, ok := repeatedKey(data); ok { // encoding/json would use the last value, which may be the wrong one
			a.err = Invalid("The argument %q of %s appears twice: pass it once.", Clip(name), tool)
			return a
		}
	}
	maps.DeleteFunc(a.raw, func(name string, v json.RawMessage) bool {
		optional := slices.ContainsFunc(in, func(p Arg) bool { return p.Name == name && !p.Need })
		return string(v) == "null" || string(v) == `""` && optional
	})
	for _, p := range in {
		if given, ok := a.raw[p.other]; ok && p.other != "" && !a.has(p.Name) {
			a.raw[p.Name] = given
			delete(a.raw, p.other)
		}
	}
	a.err = a.checkNames(tool)
	return a
}

// has reports whether the argument was passed with a value other than null.
func (a *args) has(name string) bool { return a.raw[name] != nil }

// repeatedKey returns the first key that appears twice in a JSON object, not counting nested objects. The data must be
// valid JSON. Arguments can be up to 8 MiB long, so repeatedKey reads each byte once and copies only the keys.
func repeatedKey(data []byte) (key string, ok bool) {
	seen, depth, atKey := map[string]bool{}, 0, false
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '{', '[':
			depth++
			atKey = depth == 1
		case '}', ']':
			depth--
		case ',':
			atKey = depth == 1
		case '"':
			start := i
			for i++; data[i] != '"'; i++ {
				if data[i] == '\\' {
					i++
				}
			}
			if !atKey {
				continue
			}
			atKey = false
			if err := json.Unmarshal(data[start:i+1], &key); err != nil {
				panic(err) // cannot happen: data is valid JSON
			}
			if seen[key] {
				return key, true
			}
			seen[key] = true
		}
	}
	return "", false
}

// checkNames returns an error if the call passes an unknown argument or omits a required one. The error lists all such
// arguments. For each unknown argument, it suggests the argument that the caller probably meant.
func (a *args) checkNames(tool string) error {
	var strange, missing, said, near []string
	for _, given := range slices.Sorted(maps.Keys(a.raw)) {
		if !slices.ContainsFunc(a.in, func(p Arg) bool { return p.Name == given }) {
			strange = append(strange, given)
		}
	}
	for _, p := range a.in {
		if p.Need && p.as != asLate && !a.has(p.Name) {
			missing = append(missing, p.Name)
		}
	}
	if len(strange) > 0 {
		var text string
		text, near = a.unknown(tool, strange)
		said = append(said, text)
	}
	if len(missing) > 0 {
		said = append(said, a.absent(missing))
	}
	if len(said) == 0 {
		return nil
	}
	return &refusal.Own{Kind: refusal.ErrInvalid, Text: strings.Join(said, " "), Near: near}
}

// absent returns a sentence that lists and describes the missing arguments.
func (a *args) absent(names []string) string {
	meant := make([]string, len(names))
	for i, name := range names {
		p := a.in[slices.IndexFunc(a.in, func(p Arg) bool { return p.Name == name })]
		if p.schema.Description != "" {
			meant[i] = ": " + p.schema.Description
		}
		meant[i] += ", such as " + p.example
		if len(names) > 1 {
			meant[i] = name + meant[i]
		}
	}
	if len(names) == 1 {
		return "The argument " + names[0] + " is missing" + meant[0] + "."
	}
	return "Arguments are missing: " + strings.Join(meant, "; ") + "."
}

// mostStrange is the maximum number of unknown arguments that a refusal lists, because a call may contain a million of
// them.
const mostStrange = 20

// unknown returns a sentence that lists up to mostStrange unknown arguments, and the arguments that the caller probably
// meant.
func (a *args) unknown(tool string, strange []string) (text string, near []string) {
	var quoted, hints []string
	more := len(strange) - mostStrange
	strange = strange[:min(len(strange), mostStrange)]
	for _, given := range strange {
		shown := strconv.Quote(Clip(given))
		quoted = append(quoted, shown)
		meant := a.meant(given)
		if len(meant) == 0 {
			continue
		}
		near = append(near, meant...)
		hint := strings.Join(meant, " or ")
		if len(strange) > 1 {
			hint += " for " + shown
		}
		hints = append(hints, hint)
	}
	text = "Unknown argument "
	if len(strange) > 1 {
		text = "Unknown arguments "
	}
	text += strings.Join(quoted, ", ")
	if more > 0 {
		text += ", and " + strconv.Itoa(more) + " more"
	}
	text += " of " + tool + ". "
	if len(hints) > 0 {
		text += "Did you mean " + strings.Join(hints, ", ") + "? "
	}
	names := make([]string, len(a.in))
	for i, p := range a.in {
		names[i] = p.Name
	}
	if len(names) == 0 {
		names = []string{"none"}
	}
	return text + "It takes " + strings.Join(names, ", ") + ".", near
}

// sample returns a JSON object with an example of the first argument.
func sample(in []Arg) string {
	if len(in) == 0 {
		return "{}"
	}
	return "{" + strconv.Quote(in[0].Name) + ": " + in[0].example + "}"
}
