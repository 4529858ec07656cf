package tool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"mailtree/maildir/format"
	"mailtree/maildir/refusal"
)

// Args are the arguments of one call; the tool takes all of them. What is wrong with them stays in
// Err: a tool looks at it once, after it has read its last argument. Reading an argument that the tool
// does not declare is a mistake of the program and panics. Not safe for concurrent use.
//
// Models write a single string for a list, a list as a string of JSON, "true" for true, "20" for 20
// and "" for what they leave out: Args accepts whatever can mean only one thing.
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
	maps.DeleteFunc(a.raw, func(name string, v json.RawMessage) bool {
		return string(v) == "null" || string(v) == `""` && a.isOptional(name)
	})
	for _, p := range in {
		if given, ok := a.raw[p.other]; ok && p.other != "" && !a.Has(p.Name) {
			a.raw[p.Name] = given
			delete(a.raw, p.other)
		}
	}
	var strange, needed []string
	for _, given := range slices.Sorted(maps.Keys(a.raw)) {
		if !a.takes(given) {
			strange = append(strange, given)
		}
	}
	for _, p := range in {
		if p.Need && !p.late {
			needed = append(needed, p.Name)
		}
	}
	a.refuseNames(tool, strange, needed)
	return a
}

// isOptional reports whether the tool takes the argument, and a call may leave it out.
func (a *Args) isOptional(name string) bool {
	return slices.ContainsFunc(a.in, func(p Prop) bool { return p.Name == name && !p.Need })
}

func (a *Args) takes(name string) bool {
	return slices.ContainsFunc(a.in, func(p Prop) bool { return p.Name == name })
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
func (a *Args) Require(names ...string) { a.refuseNames("", nil, names) }

// refuseNames fails where the tool does not take arguments that were given, or needs some that are
// absent. It names all of both, and for each strange one the argument that was probably meant.
func (a *Args) refuseNames(tool string, strange, needed []string) {
	e := &refusal.Own{Kind: refusal.ErrInvalid}
	var missing []string
	for _, name := range needed {
		if !a.Has(name) {
			missing = append(missing, name)
		}
	}
	var said []string
	if len(strange) > 0 {
		text, near := a.unknown(tool, strange)
		said, e.Near = append(said, text), near
	}
	if len(missing) > 0 {
		said = append(said, a.absent(missing))
	}
	if len(said) > 0 {
		e.Text = strings.Join(said, " ")
		a.Fail(e)
	}
}

// absent says which arguments are missing, and what each means.
func (a *Args) absent(names []string) string {
	meant := make([]string, len(names))
	for i, name := range names {
		p := a.prop(name)
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

// unknown says which arguments the tool does not take, and which were probably meant: near.
func (a *Args) unknown(tool string, strange []string) (text string, near []string) {
	var quoted, hints []string
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
	text += strings.Join(quoted, ", ") + " of " + tool + ". "
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

// sample is an object with the first argument.
func sample(in []Prop) string {
	if len(in) == 0 {
		return "{}"
	}
	return "{" + strconv.Quote(in[0].Name) + ": " + in[0].example + "}"
}

// Err is all that is wrong, joined; nil when every argument that was read is right.
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

// Joined is a string; a list of strings is one, with commas between them. "" when absent.
func (a *Args) Joined(name string) string {
	if l, ok := stringList(a.raw[name]); ok {
		return strings.Join(l, ", ")
	}
	return a.Text(name)
}

// Choice is one of the values that the schema lists; the default when absent.
func (a *Args) Choice(name string) string {
	if !a.Has(name) {
		return deflt[string](a.prop(name))
	}
	var given string
	choices := a.prop(name).choices
	if json.Unmarshal(a.raw[name], &given) != nil {
		given = string(a.raw[name])
	}
	s := strings.ToLower(strings.TrimSpace(given))
	if !slices.Contains(choices, s) {
		a.Fail(Invalid("%s is %q: use one of %s.", name, Clip(given), strings.Join(choices, ", ")))
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

// Names is a list of strings; nil when absent. A single string is a list of one, or with the commas
// of a CommaList of several.
func (a *Args) Names(name string) []string {
	v := a.raw[name]
	if v == nil {
		return nil
	}
	l, ok := stringList(v)
	var s string
	if !ok && json.Unmarshal(v, &s) == nil {
		if l, ok = stringList([]byte(s)); !ok {
			l, ok = []string{s}, true
		}
	}
	if !ok {
		a.wrong(name, "a list of strings")
	}
	if p := a.prop(name); p.commas || p.as == asCommas {
		l = splitAll(l)
	}
	return l
}

// splitAll cuts each string at its commas, semicolons and line ends, and leaves out what is blank.
func splitAll(l []string) []string {
	out := []string{}
	for _, s := range l {
		for _, part := range strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ';' || r == '\n' }) {
			if part = strings.TrimSpace(part); part != "" {
				out = append(out, part)
			}
		}
	}
	return out
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
	if !a.Has(name) {
		return deflt[int](a.prop(name))
	}
	f, ok := a.number(name)
	if ok && f < float64(least) {
		a.outOfRange(name, f, least, most)
	}
	return int(min(f, float64(most)))
}

// Wait is how long a call waits, given in seconds, at most most; note says that more was asked for,
// "" else.
func (a *Args) Wait(name string, most int) (wait time.Duration, note string) {
	if f, ok := a.number(name); ok && f > float64(most) {
		note = fmt.Sprintf("%s is at most %d for this call, so it waited no longer than that.", name, most)
	}
	return time.Duration(a.Count(name, 0, most)) * time.Second, note
}

// Within is a whole number in the range that the schema tells, on both ends; the default when
// absent.
func (a *Args) Within(name string) int {
	p := a.prop(name)
	n := a.Count(name, p.least, p.most)
	if f, ok := a.number(name); ok && f > float64(p.most) && p.most < math.MaxInt32 {
		a.outOfRange(name, f, p.least, p.most)
	}
	return n
}

// Limit is the size of a page, as Count. "all" is the most; 0 is the default where the least is 1.
func (a *Args) Limit(name string, least, most int) int {
	var s string
	if json.Unmarshal(a.raw[name], &s) == nil && strings.EqualFold(strings.TrimSpace(s), "all") {
		return most
	}
	if f, ok := a.number(name); ok && f == 0 && least == 1 {
		return deflt[int](a.prop(name))
	}
	return a.Count(name, least, most)
}

// number is a whole number; not ok where the argument is absent, or none, which is wrong.
func (a *Args) number(name string) (f float64, ok bool) {
	if !a.Has(name) {
		return 0, false
	}
	f, err := strconv.ParseFloat(strings.TrimSpace(strings.Trim(string(a.raw[name]), `"`)), 64)
	if err != nil || f != math.Trunc(f) {
		a.wrong(name, "a whole number")
		return 0, false
	}
	return f, true
}

func (a *Args) outOfRange(name string, f float64, least, most int) {
	if most == math.MaxInt32 {
		a.Fail(Invalid("%s is %.0f: it must be at least %d.", name, f, least))
		return
	}
	a.Fail(Invalid("%s is %.0f: it must be from %d to %d.", name, f, least, most))
}

// When is a time as ParseWhen reads it, as a number or in a string; the zero time when absent.
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
	if !ok {
		return 0
	}
	n, err := strconv.ParseInt(strings.TrimSpace(strings.Trim(string(v), `"`)), 10, 64)
	if err != nil || n < 0 {
		a.Fail(Invalid("%s is %s: pass next_cursor of the page before, or leave it out.", name, Clip(string(v))))
	}
	return n
}

// dates are what people write of RFC 3339. Without a zone they are UTC.
var dates = []string{"2006-01-02", "2006-01-02T15:04", "2006-01-02T15:04:05", "2006-01-02 15:04", "2006-01-02 15:04:05"}

// ParseWhen reads a time: RFC 3339, a date, or seconds since 1970. 0 or less is the zero time.
func ParseWhen(s string) (time.Time, error) {
	s = strings.TrimSpace(s)
	for _, layout := range dates {
		if t, err := time.Parse(layout, s); err == nil {
			return t, nil
		}
	}
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

// Fail adds err to what is wrong: one answer is enough to mend a call. An argument that is read
// twice fails once.
func (a *Args) Fail(err error) {
	switch {
	case a.err == nil:
		a.err = err
	case err != nil && !strings.Contains(a.err.Error(), err.Error()):
		a.err = errors.Join(a.err, err)
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
