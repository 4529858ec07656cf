package refusal

import (
	"cmp"
	"errors"
	"strconv"
	"strings"

	"mailtree/maildir/format"
)

// Words express refusals for one kind of reader. The zero value is for logs.
type Words struct {
	Args    map[Field]string  // the argument for each field that the reader can set
	Phrases map[string]string // the text for each key in the table phrases
	Says    map[What]string   // whole sentences that replace the text of a What
}

// Explain returns the sentence for a refusal, which may be wrapped. For joined errors, it returns one line for each
// error. For an error that is not a refusal, it returns the error's text.
func (w *Words) Explain(err error) string {
	switch of := err.(type) {
	case *Error:
		return w.Say(of)
	case *Own:
		return of.Text
	case interface{ Unwrap() []error }:
		var lines []string
		for _, err := range of.Unwrap() {
			lines = append(lines, w.Explain(err))
		}
		return strings.Join(lines, "\n")
	}
	var e *Error
	var o *Own
	switch {
	case errors.As(err, &e):
		return w.Explain(e)
	case errors.As(err, &o):
		return o.Text
	}
	return err.Error()
}

// Say returns the sentence for a refusal.
func (w *Words) Say(e *Error) string {
	text, ok := w.Says[e.What]
	if !ok {
		text = e.What.text
	}
	said := w.fill(text, e)
	noun := strings.HasPrefix(text, "{field}") && w.Args[e.Field] == ""
	if noun && said != "" || strings.HasPrefix(text, "{why}") && said != "" {
		said = strings.ToUpper(said[:1]) + said[1:]
	}
	return said
}

// fill replaces the keys in braces with facts and phrases. If a key's text is empty, fill also removes the space before
// the key, except for {=name}, which may be empty.
func (w *Words) fill(text string, e *Error) string {
	said := ""
	for text != "" {
		before, rest, _ := strings.Cut(text, "{")
		key, after, found := strings.Cut(rest, "}")
		said += before
		if text = after; !found {
			break
		}
		value, ok := w.fact(key, e)
		if !ok {
			value = w.phrase(key, e)
		}
		if value == "" && key != "=name" {
			said = strings.TrimSuffix(said, " ")
		}
		said += value
	}
	return said
}

func (w *Words) phrase(key string, e *Error) string {
	text, ok := w.Phrases[key]
	if !ok {
		if text, ok = phrases[key]; !ok {
			return "{" + key + "}" // an unknown phrase is a bug, which tests detect
		}
	}
	return w.fill(text, e)
}

// fact returns the text of a refusal's fact, given the fact's key. It quotes a value that comes from a caller or
// another party, unless the key begins with =.
func (w *Words) fact(key string, e *Error) (text string, ok bool) {
	switch key {
	case "field":
		return w.field(e), true
	case "arg":
		if w.Args[e.Field] == "" {
			return "", true
		}
		return "(" + w.Args[e.Field] + ")", true
	case "name":
		return format.Quote(e.Name), true
	case "=name":
		return clip(e.Name), true
	case "names":
		return list(append([]string{e.Name}, e.More...)), true
	case "other":
		return format.Quote(e.Other), true
	case "=other":
		return e.Other, true
	case "id":
		return format.Quote(e.ID), true
	case "why":
		return e.Why, true
	case "count", "count 2", "count 3":
		return count(e.Counts, key), true
	case "limit":
		return strconv.Itoa(e.Limit), true
	case "near":
		if len(e.Near) == 0 {
			return "", true
		}
		return "Did you mean " + strings.Join(e.Near, " or ") + "?", true
	case "all projects":
		return listed("Projects: ", e.All), true
	case "projects below":
		return listed("Projects below it: ", e.All), true
	case "all agents":
		return cmp.Or(listed("This project's agents: ", e.All), w.phrase("find agents", e)), true
	case "in":
		if len(e.In) > 1 {
			return listed("There is one in each of these projects: ", e.In), true
		}
		return listed("There is one in project ", e.In), true
	case "choices":
		return strings.Join(e.Near, ", "), true
	case "cause":
		return w.Explain(e.Err), true
	}
	return "", false
}

// listed returns the text in what, followed by the list of names. It returns "" for an empty list.
func listed(what string, names []string) string {
	if len(names) == 0 {
		return ""
	}
	return what + strings.Join(names, ", ") + "."
}

// field returns the argument for the field or, if there is none, the field's noun.
func (w *Words) field(e *Error) string {
	if arg := w.Args[e.Field]; arg != "" {
		return arg
	}
	return string(e.Field)
}

// count returns the number that a key selects. The key "count" selects the first number.
func count(all []int, key string) string {
	i := 0
	if _, nth, ok := strings.Cut(key, " "); ok {
		i = int(nth[0] - '1')
	}
	if i >= len(all) {
		return "0"
	}
	return strconv.Itoa(all[i])
}

// maxClipped is the maximum number of bytes of an unquoted value that a sentence repeats. The value itself may be of
// any size.
const maxClipped = 80

// clip returns up to maxClipped bytes of a value.
func clip(s string) string {
	if len(s) <= maxClipped {
		return s
	}
	return strings.ToValidUTF8(format.Cut(s, maxClipped), "") + "…"
}

func list(names []string) string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = format.Quote(n)
	}
	return strings.Join(out, ", ")
}

// Missing lists the phrases that w has no text for. For these phrases, w uses the text for logs.
func (w *Words) Missing() []string {
	var open []string
	for key := range phrases {
		if _, ok := w.Phrases[key]; !ok {
			open = append(open, "the phrase "+key)
		}
	}
	return open
}
