package foreign

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mailtree/maildir/tree"
)

var limits = Limits{Bytes: 256 << 10, Depth: 32}

// TestParse checks that YAML scalars are read as text, that TOML values keep their types, and that each key has the
// right line.
func TestParse(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		fence, file string
		want        File
	}{
		"YAML": {YAML, "---\na: no\nb: [1, 0x1f, ~, 1e3]\n# c\nd:\n  e: 2026-11-28\n\"f g\": |\n  x\n  y\nh:\n---\n\nText.\n\n", File{[]Key{
			{"a", 2, "no"}, {"b", 3, []any{"1", "0x1f", "~", "1e3"}}, {"d", 5, map[string]any{"e": "2026-11-28"}}, {"f g", 7, "x\ny\n"}, {"h", 10, ""},
		}, "Text.\n"}},
		"empty": {YAML, "---\n# nothing\n---\nText.", File{nil, "Text."}},
		"TOML": {TOML, "+++\n# c\nid = 'a'\nn = 1\nyes = true\nat = 2025-01-15T10:30:00+01:00\nlocal = 2025-01-15T10:30:00\nnan = nan\nlist = [\n 'x', 2]\n[table.\"a b\"]\nid = 1\n[[more]]\nx = 1.5\n+++\n+++\n", File{[]Key{
			{"id", 3, "a"},
			{"n", 4, int64(1)},
			{"yes", 5, true},
			{"at", 6, "2025-01-15T10:30:00+01:00"},
			{"local", 7, "2025-01-15T10:30:00Z"},
			{"nan", 8, "NaN"},
			{"list", 9, []any{"x", int64(2)}},
			{"table", 11, map[string]any{"a b": map[string]any{"id": int64(1)}}},
			{"more", 13, []any{map[string]any{"x": 1.5}}},
		}, "+++"}},
		"CRLF": {TOML, "+++\r\na = 'x'\r\n+++\r\n\r\none\r\ntwo\r\n", File{[]Key{{"a", 2, "x"}}, "one\ntwo"}},
		"brackets in strings": {TOML, "+++\na = '" + strings.Repeat("[.", 50) + "'\nb = \"\"\"\n" + strings.Repeat("{\\\"", 50) + "\"\"\" # " + strings.Repeat("[", 50) + "\nc = [" + strings.Repeat("1.5, ", 50) + "]\n+++\n",
			File{[]Key{{"a", 2, strings.Repeat("[.", 50)}, {"b", 3, strings.Repeat("{\"", 50)}, {"c", 5, slicesOf(1.5, 50)}}, ""}},
	} {
		t.Run(name, func(t *testing.T) {
			if !Is([]byte(tt.file), tt.fence) {
				t.Error("the header is not recognized")
			}
			got, err := Parse([]byte(tt.file), tt.fence, limits)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(&tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func slicesOf(v any, n int) (list []any) {
	for range n {
		list = append(list, v)
	}
	return list
}

// bomb returns YAML with n lines, each of which refers to the previous line nine times.
func bomb(n int) string {
	var b strings.Builder
	b.WriteString("a0: &a0 [x,x,x,x,x,x,x,x,x]\n")
	for i := range n {
		fmt.Fprintf(&b, "a%d: &a%d [%s*a%d]\n", i+1, i+1, strings.Repeat(fmt.Sprintf("*a%d,", i), 8), i)
	}
	return b.String()
}

// TestRefuses checks that a header is rejected if it is invalid, exceeds the limits, or uses YAML's anchors, aliases or
// tags. It also checks that the error contains a line number and does not quote the header.
func TestRefuses(t *testing.T) {
	t.Parallel()
	const many = 100_000
	for name, tt := range map[string]struct{ fence, header, want string }{
		"anchor":              {YAML, "a: &Zoe x\n", "line 2: anchors"},
		"alias":               {YAML, "a: &Zoe x\nb: *Zoe\n", "line 2: anchors"},
		"unknown alias":       {YAML, "a: x\nb: *Zoe\n", "line"},
		"bomb":                {YAML, bomb(9), "line 2: anchors"},
		"merge":               {YAML, "a: &Zoe {b: c}\n<<: *Zoe\n", "line 2: anchors"},
		"tag":                 {YAML, "a: x\nb: !!binary Zoe\n", "line 3: tags"},
		"own tag":             {YAML, "a: !Zoe x\n", "line 2: tags"},
		"tagged key":          {YAML, "!!str Zoe: x\n", "line 2: tags"},
		"tagged header":       {YAML, "!!map\na: Zoe\n", "line"},
		"documents":           {YAML, "a: x\n...\nZoe: x\n", "line"},
		"list":                {YAML, "- Zoe\n", "line 2: the header is not valid YAML"},
		"list as a key":       {YAML, "a:\n  ? [Zoe]\n  : x\n", "line 3: a key is a list or contains keys"},
		"twice within":        {YAML, "a:\n  Zoe: 1\n  Zoe: 2\n", "line 4: a key appears twice"},
		"not YAML":            {YAML, "a: x\nb: [Zoe\n", "line"},
		"deep lists":          {YAML, "a: " + strings.Repeat("[", 32) + strings.Repeat("]", 32) + "\n", "line 2: the header is nested more than 32 levels deep"},
		"very deep lists":     {YAML, "a: " + strings.Repeat("[", many) + "\n", "line"},
		"deep keys":           {YAML, "a: " + strings.Repeat("{b: ", 32) + strings.Repeat("}", 32) + "\n", "line 2: the header is nested more than 32 levels deep"},
		"deep items":          {YAML, "a:\n" + strings.Repeat("- ", 33) + "Zoe\n", "line 3: the header is nested more than 32 levels deep"},
		"very deep items":     {YAML, "a:\n" + strings.Repeat("- ", many) + "Zoe\n", "line"},
		"large":               {YAML, "a: " + strings.Repeat("Zoe", many) + "\n", "line 1: the header is over"},
		"UTF-8":               {YAML, "a: x\nb: Zo\xff\n", "line 3: the text is not valid UTF-8"},
		"indented end":        {YAML, "a: x\n  ---\nZoe: x\n", "line 3: the header contains an indented ---"},
		"not TOML":            {TOML, "a = 'x'\nZoe\n", "line 3: the header is not valid TOML"},
		"TOML key twice":      {TOML, "Zoe = 'x'\nZoe = 'y'\n", "line 3: the header is not valid TOML"},
		"TOML lists":          {TOML, "a = 1\nb = " + strings.Repeat("[", 33) + strings.Repeat("]", 33) + "\n", "line 3: the header is nested more than 32 levels deep"},
		"very deep TOML":      {TOML, "a = " + strings.Repeat("[", many) + "\n", "line 2: the header is nested more than 32 levels deep"},
		"TOML tables":         {TOML, "a = " + strings.Repeat("{b=", many/2) + "\n", "line 2: the header is nested more than 32 levels deep"},
		"TOML dots":           {TOML, "a" + strings.Repeat(".a", many) + " = 1\n", "line 2: the header is nested more than 32 levels deep"},
		"TOML quoted dots":    {TOML, "a" + strings.Repeat(`."a"`, 40) + " = 1\n", "line 2: the header is nested more than 32 levels deep"},
		"TOML table name":     {TOML, "[a" + strings.Repeat(" . a", many/2) + "]\n", "line 2: the header is nested more than 32 levels deep"},
		"TOML mixed depth":    {TOML, "a" + strings.Repeat(".a", 20) + " = " + strings.Repeat("[", 20) + strings.Repeat("]", 20) + "\n", "line 2: the header is nested more than 32 levels deep"},
		"TOML after a string": {TOML, "x = \"\\\"\" \ny = '''\n'''\na = " + strings.Repeat("[", 40) + "\n", "line 5: the header is nested more than 32 levels deep"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse([]byte(tt.fence+"\n"+tt.header+tt.fence+"\ntext\n"), tt.fence, limits)
			var fault *tree.FormatError
			if !errors.As(err, &fault) || !strings.HasPrefix(err.Error(), tt.want) {
				t.Fatalf("refused: %v\nwant %s", err, tt.want)
			}
			if strings.Contains(err.Error(), "Zo") {
				t.Errorf("the error quotes the file: %v", err)
			}
		})
	}
	for _, fence := range []string{YAML, TOML} {
		if _, err := Parse([]byte(fence+"\n# open\n"), fence, limits); !Missing(err) {
			t.Errorf("an unclosed header is refused with %v", err)
		}
	}
}

// TestBounds checks that parsing finishes for headers of maximum size that are designed to be slow. A parser that takes
// more than linear time would exceed the test's time limit.
func TestBounds(t *testing.T) {
	t.Parallel()
	fill := func(one string) string { return strings.Repeat(one, (limits.Bytes-64)/len(one)) }
	numbered := func(format string) string {
		var b strings.Builder
		for i := 0; b.Len() < limits.Bytes-64; i++ {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	for _, header := range []string{
		fill("[{"), fill("- "), fill("? "), fill("a: "), fill("{a: "), fill("&a "), fill("!a "), fill("\"a\": "), fill("'"), fill("a:\n"), fill(" "), fill("# "),
		fill("[a,"), fill("? - "), fill("x: [\n"), fill("|\n"), fill("\t"), fill("%TAG ! x\n"), "a: [" + fill("x, ") + "]\n", "a: {" + numbered("k%d: 1, ") + "}\n",
		numbered("k%d: x\n"), "a: \"" + fill("\\x41") + "\"\n", "a: >\n" + fill("  x\n\n"),
	} {
		_, _ = Parse([]byte("---\n"+header+"\n---\n"), YAML, limits)
	}
	for _, header := range []string{
		fill("a."), fill("[a]\n"), fill("[[a]]\n"), numbered("k%d = 1\n"), numbered("[k%d]\nx = 1\n"), numbered("a.b.k%d = 1\n"), numbered("[[a.b]]\nk%d = 1\n"),
		"a = [" + fill("1,") + "]\n", "a = {" + numbered("k%d = 1,") + "z = 1}\n", "a = \"" + fill("\\u0041") + "\"\n", "a = '''" + fill("'\n") + "'''\n", fill("\""), fill("= "), fill("#"),
	} {
		_, _ = Parse([]byte("+++\n"+header+"\n+++\n"), TOML, limits)
	}
}

// FuzzParse checks that any file is either read within the limits or rejected with the number of an existing line.
func FuzzParse(f *testing.F) {
	f.Add("---\na: [b, {c: d}]\n---\ntext\n")
	f.Add("+++\na = [1, {b.c = 'd'}]\n[x.y]\nz = 2025-01-15\n+++\ntext\n")
	f.Add("---\na: &b *b !c\n---\n")
	f.Fuzz(func(t *testing.T, text string) {
		for _, fence := range []string{YAML, TOML} {
			if !Is([]byte(text), fence) {
				continue
			}
			file, err := Parse([]byte(text), fence, limits)
			var fault *tree.FormatError
			if err != nil && (!errors.As(err, &fault) || fault.Line < 1 || fault.Line > strings.Count(text, "\n")+2) {
				t.Fatalf("%q: %v", text, err)
			}
			if err != nil {
				continue
			}
			for _, k := range file.Keys {
				if deeper(k.Value, limits.Depth-1) || k.Line < 2 {
					t.Fatalf("%q: key %q in line %d", text, k.Name, k.Line)
				}
			}
		}
	})
}
