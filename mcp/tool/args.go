package tool

import (
	"bytes"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"mailtree/maildir/format"
	"mailtree/maildir/refusal"
)

// Args are the arguments of one call; the tool takes all of them. The first error stays in Err: a
// tool looks at it once, after it has read its last argument. Reading an argument that the tool
// does not declare is a mistake of the program and panics. Not safe for concurrent use.
//
// Models write a single string for a list, a list as a string of JSON, "true" for true and "20" for
// 20: Args accepts whatever can mean only one thing.
type Args struct {
	raw map[string]json.RawMessage
	in  []Prop
	err error
}

// DecodeArgs checks that the tool takes each argument, and that each is given once. Absent or null
// data has none.
func DecodeArgs(tool string, data json.RawMessage, in []Prop) *Args {
	a := &Args{raw: map[string]json.RawMessage{}, in: in}
	if data = bytes.TrimSpace(data); len(data) > 0 {
		if err := json.Unmarshal(data, &a.raw); err != nil {
			a.err = Invalid("Arguments must be a JSON object such as %s.", sample(in))
			return a
		}
		if name, ok := repeatedKey(data); ok { // encoding/json takes the last value: nobody knows which is meant
			a.err = Invalid("The argument %q of %s is given twice: give it once.", Clip(name), tool)
			return a
		}
	}
	names := make([]string, len(in))
	for i, p := range in {
		names[i] = p.Name
	}
	maps.DeleteFunc(a.raw, func(_ string, v json.RawMessage) bool { return string(v) == "null" }) // null is absent
	for _, given := range slices.Sorted(maps.Keys(a.raw)) {
		if !slices.Contains(names, given) {
			a.err = unknown(tool, given, names)
			return a
		}
	}
	var needed []string
	for _, p := range in {
		if p.Need && !p.late {
			needed = append(needed, p.Name)
		}
	}
	a.Require(needed...)
	return a
}

// repeatedKey returns the first key that a JSON object repeats, whatever its values hold. data is
// valid JSON. It looks at each byte once and copies keys only: arguments may be 8 MiB.
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
				panic(err) // it is valid
			}
			if seen[key] {
				return key, true
			}
			seen[key] = true
		}
	}
	return "", false
}

// Require fails where arguments are absent. It names all of them, so that one answer is enough to
// mend a call.
func (a *Args) Require(names ...string) {
	var missing, meant []string
	for _, name := range names {
		if p := a.prop(name); !a.Has(name) {
			missing, meant = append(missing, name), append(meant, p.schema.Description+", such as "+p.example)
		}
	}
	switch len(missing) {
	case 0:
	case 1:
		a.Fail(Invalid("The argument %s is missing: %s.", missing[0], meant[0]))
	default:
		for i, name := range missing {
			meant[i] = name + ": " + meant[i]
		}
		a.Fail(Invalid("Arguments are missing: %s.", strings.Join(meant, "; ")))
	}
}

// sample is an object with the first argument.
func sample(in []Prop) string {
	if len(in) == 0 {
		return "{}"
	}
	return "{" + strconv.Quote(in[0].Name) + ": " + in[0].example + "}"
}

// unknown refuses an argument that the tool does not take, and names the one that was probably
// meant.
func unknown(tool, given string, names []string) error {
	near, hint := format.Near(given, names), ""
	if len(near) > 0 {
		hint = "Did you mean " + strings.Join(near, " or ") + "? "
	}
	if len(names) == 0 {
		names = []string{"none"}
	}
	return &refusal.Own{Kind: refusal.ErrInvalid, Near: near,
		Text: "Unknown argument " + strconv.Quote(Clip(given)) + " of " + tool + ". " + hint + "It takes " + strings.Join(names, ", ") + "."}
}

// Err is the first error; nil when every argument that was read is right.
func (a *Args) Err() error { return a.err }

// Has reports whether the argument was given, and not as null.
func (a *Args) Has(name string) bool { return a.raw[name] != nil }

// Text is a string; "" when absent.
func (a *Args) Text(name string) string {
	var s string
	if v := a.raw[name]; v != nil && json.Unmarshal(v, &s) != nil {
		a.wrong(name, "a string")
	}
	return s
}

// Choice is one of the values that the schema lists; the default when absent.
func (a *Args) Choice(name string) string {
	if !a.Has(name) {
		return deflt[string](a.prop(name))
	}
	s, choices := strings.ToLower(strings.TrimSpace(a.Text(name))), a.prop(name).choices
	if a.err == nil && !slices.Contains(choices, s) {
		a.Fail(Invalid("%s is %q: use one of %s.", name, Clip(a.Text(name)), strings.Join(choices, ", ")))
	}
	return s
}

// deflt is the default of an argument; the zero value where it has none.
func deflt[T any](p Prop) (v T) {
	if p.schema.Default == nil {
		return v
	}
	if err := json.Unmarshal(p.schema.Default, &v); err != nil {
		panic(err) // the tool declares it with another type than it reads
	}
	return v
}

// Names is a list of strings; nil when absent. A single string is a list of one.
func (a *Args) Names(name string) []string {
	v := a.raw[name]
	if v == nil {
		return nil
	}
	if l, ok := stringList(v); ok {
		return l
	}
	var s string
	if json.Unmarshal(v, &s) == nil {
		if l, ok := stringList([]byte(s)); ok {
			return l
		}
		return []string{s}
	}
	a.wrong(name, "a list of strings")
	return nil
}

func stringList(data []byte) ([]string, bool) {
	var l []*string // a null in a []string would pass as ""
	if json.Unmarshal(data, &l) != nil || l == nil || slices.Contains(l, nil) {
		return nil, false
	}
	out := make([]string, len(l))
	for i, s := range l {
		out[i] = *s
	}
	return out, true
}

// Flag is true or false; the default when absent.
func (a *Args) Flag(name string) bool {
	v, ok := a.raw[name]
	if !ok {
		return deflt[bool](a.prop(name))
	}
	switch strings.ToLower(strings.Trim(string(v), `"`)) {
	case "true":
		return true
	case "false":
		return false
	}
	a.wrong(name, "true or false")
	return false
}

// Count is a whole number of at least least, at most most (more counts as most); the default when
// absent.
func (a *Args) Count(name string, least, most int) int {
	v, ok := a.raw[name]
	if !ok {
		return deflt[int](a.prop(name))
	}
	f, err := strconv.ParseFloat(strings.TrimSpace(strings.Trim(string(v), `"`)), 64)
	if err != nil || f != math.Trunc(f) {
		a.wrong(name, "a whole number")
		return 0
	}
	if f < float64(least) {
		a.Fail(Invalid("%s is %.0f: it must be at least %d.", name, f, least))
	}
	return int(min(f, float64(most)))
}

// When is a time: RFC 3339, or seconds since 1970 as a number or in a string; the zero time when
// absent. "" counts as absent: OpenAI's strict mode makes models fill in every argument.
func (a *Args) When(name string) time.Time {
	v, ok := a.raw[name]
	if !ok {
		return time.Time{}
	}
	var s string
	if json.Unmarshal(v, &s) != nil {
		s = string(v)
	}
	if s == "" {
		return time.Time{}
	}
	t, err := ParseWhen(s)
	if err != nil {
		a.Fail(Invalid("%s is %q: use a time such as 2025-10-23T15:22:14Z, or seconds since 1970.", name, Clip(s)))
	}
	return t
}

// Cursor is the position that an earlier answer gave as next_cursor; 0 when absent.
func (a *Args) Cursor(name string) int64 {
	v, ok := a.raw[name]
	if !ok || string(v) == `""` {
		return 0
	}
	n, err := strconv.ParseInt(strings.Trim(string(v), `"`), 10, 64)
	if err != nil || n < 0 {
		a.Fail(Invalid("%s is %s: pass next_cursor of the page before, or leave it out.", name, Clip(string(v))))
	}
	return n
}

// ParseWhen reads a time: RFC 3339, or seconds since 1970. 0 or less is the zero time.
func ParseWhen(s string) (time.Time, error) {
	s = strings.TrimSpace(s)
	f, err := strconv.ParseFloat(s, 64)
	switch {
	case err != nil:
		return format.ParseTime(s)
	case f <= 0: // 0, which old clients send by default, means all
		return time.Time{}, nil
	case !(f < 253402300800): // year 10000
		return time.Time{}, strconv.ErrRange
	}
	sec, frac := math.Modf(f)
	return time.Unix(int64(sec), int64(frac*1e9)).UTC(), nil
}

func (a *Args) wrong(name, what string) {
	a.Fail(Invalid("%s is %s, but must be %s, such as %s.", name, Clip(string(a.raw[name])), what, a.prop(name).example))
}

// Fail keeps err, unless there was an error before.
func (a *Args) Fail(err error) {
	if a.err == nil {
		a.err = err
	}
}

func (a *Args) prop(name string) Prop {
	return a.in[slices.IndexFunc(a.in, func(p Prop) bool { return p.Name == name })]
}

// Clip shortens what an answer repeats to the caller.
func Clip(s string) string {
	if len(s) <= 80 {
		return s
	}
	return strings.ToValidUTF8(s[:80], "") + "…"
}
