package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"mailtree/maildir/format"
)

// into reads each argument into its field. If an argument is absent, the field gets the default. All errors are joined
// in a.err, so that one refusal tells the caller about every problem.
func (a *args) into(ctx context.Context, request reflect.Value) {
	for i := range a.in {
		p := &a.in[i]
		to := request.FieldByIndex(p.field)
		switch {
		case a.has(p.Name):
			a.read(ctx, p, to)
		case p.schema.Default != nil:
			p.reset(to)
		}
	}
}

// reset sets a field to the argument's default.
func (p *Arg) reset(to reflect.Value) {
	if err := json.Unmarshal(p.schema.Default, to.Addr().Interface()); err != nil {
		panic(err) // the declared default has the wrong type
	}
}

// deflt returns the default of a number.
func (p *Arg) deflt() (f float64) {
	p.reset(reflect.ValueOf(&f).Elem())
	return f
}

// read reads an argument that the call passes.
func (a *args) read(ctx context.Context, p *Arg, to reflect.Value) {
	if to.Kind() == reflect.Pointer {
		to.Set(reflect.New(to.Type().Elem()))
		to = to.Elem()
	}
	switch v := to.Addr().Interface().(type) {
	case *Wait:
		*v = a.wait(p, min(p.most, LongestWait(ctx)))
	case *time.Time:
		*v = a.when(p)
	case *[]string:
		*v = a.names(p)
	case *bool:
		*v = a.flag(p)
	case *int:
		*v = a.wholeNumber(p)
	case *int64:
		*v = a.cursor(p)
	default:
		to.SetString(a.text(p))
	}
}

// text reads a string. If the argument has an enum, the string must be one of its values.
func (a *args) text(p *Arg) (s string) {
	if l, ok := stringList(a.raw[p.Name]); ok && p.as == asJoined {
		return strings.Join(l, ", ")
	}
	err := json.Unmarshal(a.raw[p.Name], &s)
	if p.choices == nil || p.as == asGiven {
		if err != nil {
			a.wrong(p, "a string")
		}
		return s
	}
	if err != nil {
		s = string(a.raw[p.Name])
	}
	choice := strings.ToLower(strings.TrimSpace(s))
	if !slices.Contains(p.choices, choice) {
		a.fail(Invalid("%s is %q: use one of %s.", p.Name, Clip(s), strings.Join(p.choices, ", ")))
	}
	return choice
}

// names reads a list of strings. A single string is treated as a list with one item or, with asCommas, as a
// comma-separated list. A string that contains a JSON list is treated as that list.
func (a *args) names(p *Arg) []string {
	l, ok := stringList(a.raw[p.Name])
	var s string
	if !ok && json.Unmarshal(a.raw[p.Name], &s) == nil {
		if l, ok = stringList([]byte(s)); !ok {
			l, ok = []string{s}, true
		}
	}
	if !ok {
		a.wrong(p, "a list of strings")
	}
	if p.as == asCommas {
		l = splitAll(l)
	}
	return l
}

// splitAll splits each string at commas, semicolons and line breaks, and drops blank parts.
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
	var l []*string // a []string would decode null as ""
	if json.Unmarshal(data, &l) != nil || l == nil || slices.Contains(l, nil) {
		return nil, false
	}
	out := make([]string, len(l))
	for i, s := range l {
		out[i] = *s
	}
	return out, true
}

// flag reads true or false, which may be inside a string.
func (a *args) flag(p *Arg) bool {
	switch strings.ToLower(strings.Trim(string(a.raw[p.Name]), `"`)) {
	case "true":
		return true
	case "false":
		return false
	}
	a.wrong(p, "true or false")
	return false
}

// wholeNumber reads a number within its limits. The comment on asLimit describes the exceptions.
func (a *args) wholeNumber(p *Arg) int {
	limit := p.as == asLimit
	var s string
	if limit && json.Unmarshal(a.raw[p.Name], &s) == nil && strings.EqualFold(strings.TrimSpace(s), "all") {
		return p.most
	}
	f, ok := a.number(p)
	switch {
	case !ok:
		return 0
	case limit && f == 0 && p.least == 1:
		f = p.deflt()
	case f < float64(p.least), f > float64(p.most) && !limit && p.most < math.MaxInt32:
		a.outOfRange(p, f, p.most)
		return 0
	}
	return int(min(f, float64(p.most)))
}

// wait reads a number of seconds, and limits it to most.
func (a *args) wait(p *Arg, most int) (w Wait) {
	f, ok := a.number(p)
	switch {
	case !ok:
		return w
	case f < 0:
		a.outOfRange(p, f, most)
		return w
	case f > float64(most):
		f, w.Note = float64(most), fmt.Sprintf("%s is at most %d for this call, so the call waited no longer than that.", p.Name, most)
	}
	w.For = time.Duration(f) * time.Second
	return w
}

// number reads a whole number, which may be inside a string. If ok is false, number has recorded an error.
func (a *args) number(p *Arg) (f float64, ok bool) {
	f, err := strconv.ParseFloat(strings.TrimSpace(strings.Trim(string(a.raw[p.Name]), `"`)), 64)
	if err != nil || f != math.Trunc(f) {
		a.wrong(p, "a whole number")
		return 0, false
	}
	return f, true
}

func (a *args) outOfRange(p *Arg, f float64, most int) {
	if most == math.MaxInt32 {
		a.fail(Invalid("%s is %.0f: it must be at least %d.", p.Name, f, p.least))
		return
	}
	a.fail(Invalid("%s is %.0f: it must be from %d to %d.", p.Name, f, p.least, most))
}

// when reads a time, which is a number or a string, using ParseWhen.
func (a *args) when(p *Arg) time.Time {
	var s string
	if json.Unmarshal(a.raw[p.Name], &s) != nil {
		s = string(a.raw[p.Name])
	}
	t, err := ParseWhen(s)
	if err != nil {
		a.fail(Invalid("%s is %q: use a time such as 2025-10-23T15:22:14Z, or seconds since 1970.", p.Name, Clip(s)))
	}
	return t
}

// cursor reads a position: a number, which may be inside a string.
func (a *args) cursor(p *Arg) int64 {
	v := string(a.raw[p.Name])
	n, err := strconv.ParseInt(strings.TrimSpace(strings.Trim(v, `"`)), 10, 64)
	if err != nil || n < 0 {
		a.fail(Invalid("%s is %s: pass the previous page's next_cursor, or omit it.", p.Name, Clip(v)))
	}
	return n
}

// dates contains the shortened forms of RFC 3339 that people use. A time without a zone is in UTC.
var dates = []string{"2006-01-02", "2006-01-02T15:04", "2006-01-02T15:04:05", "2006-01-02 15:04", "2006-01-02 15:04:05"}

// ParseWhen parses a time in RFC 3339 format, a date, or a number of seconds since 1970. A number of 0 or less means
// the zero time.
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
	case f <= 0: // the default in old clients is 0, which selects everything
		return time.Time{}, nil
	case !(f < 253402300800): // the year 10000 or later
		return time.Time{}, strconv.ErrRange
	}
	sec, frac := math.Modf(f)
	return time.Unix(int64(sec), int64(frac*1e9)).UTC(), nil
}

func (a *args) wrong(p *Arg, what string) {
	a.fail(Invalid("%s is %s, but must be %s, such as %s.", p.Name, Clip(string(a.raw[p.Name])), what, p.example))
}

// fail records an error.
func (a *args) fail(err error) {
	if a.err != nil {
		err = errors.Join(a.err, err)
	}
	a.err = err
}

// Clip shortens text from the caller so that a response can repeat it.
func Clip(s string) string {
	if len(s) <= 80 {
		return s
	}
	return strings.ToValidUTF8(s[:80], "") + "…"
}
