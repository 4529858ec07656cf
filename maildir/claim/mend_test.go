package claim

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mailtree/maildir/refusal"
)

// TestMending: each text becomes the patterns behind =>, or is refused for the reason behind !.
func TestMending(t *testing.T) {
	t.Parallel()
	there := []string{"a.go", "b.go", "a, b.txt", "My Docs", "My Docs/a b.md", "app", "app/api", "app/[id]/page.tsx", "~old", `back\slash`,
		"app/x.py", "docs/x.md", "odd:1", "semi;colon", "or|b", "'quoted'", "@at", "$dir", "$dir/x.py"}
	m := Mending{Top: "/home/me/code", Home: "/home/me", Exists: func(p string) bool { return slices.Contains(there, p) }}
	for _, line := range []string{
		`a.go => a.go`,
		`./a.go => a.go`,
		`app/**/*.py => app/**/*.py`,
		`a.py, b.py => a.py | b.py`,
		`a.py,b.py, => a.py | b.py`,
		`a.py\nb.py\r\n => a.py | b.py`,
		`a.go, a.go => a.go`,
		`a, b.txt => a, b.txt`,
		`{a,b}.py,c[,;].py => {a,b}.py | c[,;].py`,
		`a.go b.go => a.go | b.go`,
		`a.go *.py => a.go | *.py`,
		`new.go a.go ! it holds blanks`,
		`My Docs/new.md => My Docs/new.md`,
		`My Docs/a b.md => My Docs/a b.md`,
		`My Docs/** => My Docs/**`,
		`My Docs/new one.md ! it holds blanks`,
		`new\ one.md => new\ one.md`,
		`app/[id]/page.tsx => app/\[id\]/page.tsx`,
		`app/[id]/new.tsx => app/[id]/new.tsx`,
		`app\api\x.py => app/api/x.py`,
		`app\\api\\x.py => app/api/x.py`,
		`app\*.py => app/*.py`,
		`.\app\ => app`,
		`back\slash => back\\slash`,
		`app/\[new\].tsx => app/\[new\].tsx`,
		`C:\code\x.py ! it begins with a drive`,
		`\\host\share ! it is absolute`,
		`~old => ~old`,
		`~/code/x.go => x.go`,
		`~/other/x.go ! it is absolute`,
		`~bob/x ! it begins with ~`,
		`/home/me/code => .`,
		`/home/me/code/ => .`,
		`/home/me/code/app/*.py => app/*.py`,
		`/home/me/code/../x ! it is absolute`,
		`/home/me/codes/x ! it is absolute`,
		`../x ! it leaves`,
		`a.go, ../x ! it leaves`,
		`app/../../x ! it leaves`,
		`app/api/../api/users.py => app/api/users.py`,
		`app/api/../x.py => app/x.py`,
		`app/../*.py => *.py`,
		`../code/app/new.py => app/new.py`,
		`*/../x.py ! it has a .. behind a wildcard`,
		`{a/b,c/../d} ! it has a .. behind a wildcard`,
		`file:///home/me/code/app/x.py => app/x.py`,
		`file://localhost/home/me/code/app/*.py => app/*.py`,
		`file:///home/me/code/My%20Docs/a%20b.md => My Docs/a b.md`,
		`file:///home/me/code/app/x.py#L3 => app/x.py`,
		`file:///etc/passwd ! it is absolute`,
		`file:///C:/code/x.py ! it begins with a drive`,
		`file://host/x.py ! it is a URL`,
		`https://example.org/x.py ! it is a URL`,
		`vscode://file/home/me/code/a.go ! it is a URL`,
		`app/x.py:12 => app/x.py`,
		`app/x.py:12:3 => app/x.py`,
		`/home/me/code/app/x.py:12 => app/x.py`,
		`app/new.py:12 => app/new.py:12`,
		`docs/x.md#L3 => docs/x.md`,
		`docs/x.md#L3-L9 => docs/x.md`,
		`odd:1 => odd:1`,
		`a.go:3 b.go:5 => a.go | b.go`,
		`"app/new.py" => app/new.py`,
		`'app/*.py' => app/*.py`,
		"`app/x.py` => app/x.py",
		`"a.py", "b.py" => a.py | b.py`,
		`'a.go' 'b.go' => a.go | b.go`,
		`"a, b.txt" => a, b.txt`,
		`'quoted' => 'quoted'`,
		`"" ! it is empty`,
		`@docs/x.md => docs/x.md`,
		`@docs/x.md#L3 => docs/x.md`,
		`@docs/new.md => @docs/new.md`,
		`@at => @at`,
		`a.py;b.py => a.py | b.py`,
		`semi;colon, b.py => semi;colon | b.py`,
		`new\;one.py => new\;one.py`,
		`$HOME/x.py ! it begins with a shell's variable`,
		`${ROOT}/x.py ! it begins with a shell's variable`,
		`$(pwd)/x.py ! it begins with a shell's variable`,
		`$dir/new.py => $dir/new.py`,
		`./$new/x.py => $new/x.py`,
		`app/$id.tsx => app/$id.tsx`,
		`{"path": "app/x.py"} ! it is an object in JSON`,
		`{} ! it is an object in JSON`,
		`a|b ! it holds a |`,
		`a.py | b.py ! it holds a |`,
		`app/{a|b}.py ! it holds a |`,
		`or|b => or|b`,
		`[|]x, new\|one => [|]x | new\|one`,
		` ! it is empty`,
		`, ! it names no path`,
	} {
		text, want, ok := strings.Cut(line, " => ")
		if !ok {
			text, want, _ = strings.Cut(line, " ! ")
			want = "! " + want
		}
		text = strings.NewReplacer(`\n`, "\n", `\r`, "\r").Replace(text)
		got, err := m.Patterns([]string{text})
		said := strings.Join(got, " | ")
		if err != nil {
			said = "! " + err.(*refusal.Error).Why
		}
		if said != want && !(err != nil && strings.HasPrefix(said, want)) {
			t.Errorf("%q: %s, want %s", text, said, want)
		}
	}
	m.Below = "app"
	if got, err := m.Patterns([]string{"x.py:3", "a.go", "api/new.py", "@x.py", "../docs/x.md"}); err != nil {
		t.Error(err)
	} else if d := cmp.Diff([]string{"app/x.py", "a.go", "api/new.py", "docs/x.md"}, got); d != "" {
		t.Error(d)
	}
	moved := []Moved{{"x.py:3", "app/x.py"}, {"@x.py", "app/x.py"}, {"../docs/x.md", "docs/x.md"}}
	if d := cmp.Diff(moved, m.Moved); d != "" {
		t.Error(d)
	}
	if _, err := m.Patterns([]string{strings.Repeat("x,", MaxPatterns+1)}); err == nil {
		t.Error("more paths than a request may have")
	}
}

// TestMatches: only what was counted in time is told, and a prefix leaves nothing out.
func TestMatches(t *testing.T) {
	t.Parallel()
	names := []string{"App.go", "app.go", "app/a.py", "app/b.py", "appendix", "lib/a.py"}
	later := time.Now().Add(time.Hour)
	got := Matches(names, []string{"app", "app/*.py", "**/*.py", "none", ".", "app.g?"}, false, later)
	want := map[string]int{"app": 2, "app/*.py": 2, "**/*.py": 3, "none": 0, ".": 6, "app.g?": 1}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if got := Matches(names, []string{"APP", "app.go"}, true, later); got["APP"] != 2 || got["app.go"] != 2 {
		t.Errorf("whatever their case: %v", got)
	}
	if got := Matches(names, []string{"app"}, false, time.Now().Add(-time.Hour)); len(got) != 0 {
		t.Errorf("after the deadline: %v", got)
	}
}
