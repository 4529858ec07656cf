package tooltest

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"mailtree/maildir/refusal"
	"mailtree/mcp/tool"
)

// Words checks the wording of a toolset: no phrase may be missing, no placeholder in braces may remain in a refusal,
// and every argument in the wording must be an argument of one of the tools.
func Words(t *testing.T, w *refusal.Words, tools ...tool.Tool) {
	t.Helper()
	for _, open := range w.Missing() {
		t.Errorf("no words for %s", open)
	}
	for what := range w.Says {
		say(t, w, what)
	}
	for phrase := range w.Phrases {
		say(t, w, refusal.Note("{"+phrase+"}"))
	}
	for field, args := range w.Args {
		for _, arg := range strings.FieldsFunc(strings.ReplaceAll(args, " or ", ","), func(r rune) bool { return r == ',' || r == ' ' }) {
			if !slices.ContainsFunc(tools, func(tl tool.Tool) bool { return takes(tl, arg) }) {
				t.Errorf("%s is called %q, which is not an argument", field, arg)
			}
		}
	}
}

func say(t *testing.T, w *refusal.Words, what refusal.What) {
	t.Helper()
	if text := w.Say(Refusal(what, refusal.Subject)); strings.ContainsAny(text, "{}") {
		t.Errorf("%+v is worded as %q", what, text)
	}
}

func takes(tl tool.Tool, arg string) bool {
	return slices.ContainsFunc(tl.In, func(p tool.Arg) bool { return p.Name == arg })
}

// Refusal returns a refusal with all fields set except Kind.
func Refusal(what refusal.What, field refusal.Field) *refusal.Error {
	return &refusal.Error{
		What:   what,
		Field:  field,
		Name:   "Name",
		More:   []string{"More"},
		Other:  "Other",
		ID:     "ID",
		Why:    "why",
		Counts: []int{1, 2, 3},
		Limit:  4,
		Near:   []string{"Near"},
		All:    []string{"All"},
		In:     []string{"In"},
		Err:    errors.New("cause"),
	}
}
