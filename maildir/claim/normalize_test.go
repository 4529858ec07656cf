package claim

import (
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mailtree/maildir/refusal"
)

// codeBase lists the files of a code base at /home/me/code. It has two linked worktrees: /home/me/foo, and .wt/bar
// inside the code base.
type codeBase []string

// Exists also returns true for the folders of the listed paths.
func (c codeBase) Exists(p string) bool {
	at := path.Clean(p)
	return p == "." || p != "" && slices.ContainsFunc(c, func(f string) bool { return f == p || f == at || strings.HasPrefix(f, at+"/") })
}

func (c codeBase) Relative(p string) (string, bool) {
	for _, top := range []string{"/home/me/code/.wt/bar", "/home/me/code", "/home/me/foo"} {
		if rel, ok := strings.CutPrefix(path.Clean(p)+"/", top+"/"); ok {
			return path.Clean(rel), true
		}
	}
	return "", false
}

// TestNormalize checks that each text is either normalized to the patterns after =>, or rejected for the reason after
// the exclamation mark.
func TestNormalize(t *testing.T) {
	t.Parallel()
	there := []string{"a.go", "b.go", "a, b.txt", "My Docs", "My Docs/a b.md", "app", "app/api", "app/[id]/page.tsx", "~old", `back\slash`,
		"app/x.py", "docs/x.md", "odd:1", "semi;colon", "or|b", "'quoted'", "@at", "$dir", "$dir/x.py",
		".wt/bar/docs/d.md", "{x}/a", "[[:digit:]]/a", "~home/a", "win\\dir/a", "+(a)/b", "!not/a", "a b/c"}
	m := Normalizer{Top: "/home/me/code", Home: "/home/me", CodeBase: codeBase(there)}
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
		`new.go a.go ! it contains spaces`,
		`My Docs/new.md => My Docs/new.md`,
		`My Docs/a b.md => My Docs/a b.md`,
		`My Docs/** => My Docs/**`,
		`My Docs/new one.md ! it contains spaces`,
		`new\ one.md => new\ one.md`,
		`app/[id]/page.tsx => app/\[id\]/page.tsx`,
		`app/[id]/new.tsx => app/\[id\]/new.tsx`,
		`app/[id]/** => app/\[id\]/**`,
		`app/[id]/ => app/\[id\]`,
		`app/[id]/[slug]/*.tsx => app/\[id\]/[slug]/*.tsx`,
		`app/[new]/** => app/[new]/**`,
		`app/[id]/../x.ts => app/x.ts`,
		`app/[id]/../[ab].ts => app/[ab].ts`,
		`{x}/*.go => \{x\}/*.go`,
		`{x,y}/*.go => {x,y}/*.go`,
		`[[:digit:]]/* => \[\[:digit:\]\]/*`,
		`~home/*.md => ~home/*.md`,
		`win\dir/*.md => win\\dir/*.md`,
		`+(a)/* => +(a)/*`,
		`!not/* => !not/*`,
		`a b/*.md => a b/*.md`,
		`src/*/ => src/*/**`,
		`src\*\ => src/*/**`,
		`/home/me/code/src/*/ => src/*/**`,
		`app/../src/*/ => src/*/**`,
		`**/ => **`,
		`a/*/b/ => a/*/b/**`,
		`.wt/bar/docs/d.md => docs/d.md`,
		`.wt/bar/docs/new.md => docs/new.md`,
		`.wt/bar/docs/** => docs/**`,
		`.wt/bar/*/ => */**`,
		`.wt/bar => .`,
		`.wt/** => .wt/**`,
		`/home/me/code/.wt/bar/docs/new.md => docs/new.md`,
		`/home/me/foo/docs/d.md => docs/d.md`,
		`/home/me/foo/app/[id]/** => app/\[id\]/**`,
		`/home/me/foo => .`,
		`../foo/docs/new.md => docs/new.md`,
		`../foo/docs/*/ => docs/*/**`,
		`~/foo/docs/*.md => docs/*.md`,
		`/home/me/fool/x ! it is outside`,
		`x[[:digit:]].go ! it contains [[:digit:]], a POSIX character class`,
		`x[a[:alpha:]_]y ! it contains [a[:alpha:]_], a POSIX character class`,
		`x{1..2}.go ! it contains {1..2}, a brace range`,
		`x{a..z..2}.go ! it contains {a..z..2}, a brace range`,
		`+(a).go ! it contains +(a), an extended glob`,
		`x/?(a|b).go ! it contains ?(a|b), an extended glob`,
		`*(a).go ! it contains *(a), an extended glob`,
		`@(1|2) ! it contains @(1|2), an extended glob`,
		`x/!(a).go ! it contains !(a), an extended glob`,
		`app/(group)/*.ts => app/(group)/*.ts`,
		`x/*[(]1).pdf => x/*[(]1).pdf`,
		`[+(]x => [+(]x`,
		`!src/** ! it begins with !`,
		`a.go, !src/** ! it begins with !`,
		`a.go !b.go ! it contains spaces`,
		`\!src/** => \!src/**`,
		`:(glob)src/** ! it begins like a Git pathspec`,
		`:!src ! it begins like a Git pathspec`,
		`:/src ! it begins like a Git pathspec`,
		`./... ! it contains "...", which`,
		`app/... ! it contains "...", which`,
		`app\api\x.py => app/api/x.py`,
		`app\\api\\x.py => app/api/x.py`,
		`app\*.py => app/*.py`,
		`.\app\ => app`,
		`back\slash => back\\slash`,
		`app/\[new\].tsx => app/\[new\].tsx`,
		`C:\code\x.py ! it begins with a drive`,
		`\\host\share ! it is outside`,
		`~old => ~old`,
		`~/code/x.go => x.go`,
		`~/other/x.go ! it is outside`,
		`~bob/x ! it begins with ~`,
		`/home/me/code => .`,
		`/home/me/code/ => .`,
		`/home/me/code/app/*.py => app/*.py`,
		`/home/me/code/../x ! it is outside`,
		`/home/me/codes/x ! it is outside`,
		`../x ! it points outside`,
		`a.go, ../x ! it points outside`,
		`app/../../x ! it points outside`,
		`app/api/../api/users.py => app/api/users.py`,
		`app/api/../x.py => app/x.py`,
		`app/../*.py => *.py`,
		`../code/app/new.py => app/new.py`,
		`*/../x.py ! it has .. after a wildcard`,
		`{a/b,c/../d} ! it has .. after a wildcard`,
		`file:///home/me/code/app/x.py => app/x.py`,
		`file://localhost/home/me/code/app/*.py => app/*.py`,
		`file:///home/me/code/My%20Docs/a%20b.md => My Docs/a b.md`,
		`file:///home/me/code/app/x.py#L3 => app/x.py`,
		`file:///etc/passwd ! it is outside`,
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
		`$HOME/x.py ! it begins with a shell variable`,
		`${ROOT}/x.py ! it begins with a shell variable`,
		`$(pwd)/x.py ! it begins with a shell variable`,
		`$dir/new.py => $dir/new.py`,
		`./$new/x.py => $new/x.py`,
		`app/$id.tsx => app/$id.tsx`,
		`{"path": "app/x.py"} ! it is a JSON object`,
		`{} ! it is a JSON object`,
		`a|b ! it contains a |`,
		`a.py | b.py ! it contains a |`,
		`app/{a|b}.py ! it contains a |`,
		`or|b => or|b`,
		`[|]x, new\|one => [|]x | new\|one`,
		` ! it is empty`,
		`, ! it does not contain a path`,
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
	if got, err := m.Patterns([]string{"x.py:3", "a.go", "api/new.py", "@x.py", "../docs/x.md", "*.py", "docs/**"}); err != nil {
		t.Error(err)
	} else if d := cmp.Diff([]string{"app/x.py", "a.go", "app/api/new.py", "docs/x.md", "app/*.py", "docs/**"}, got); d != "" {
		t.Error(d)
	}
	moved := []Moved{{"a.go", "a.go"}, {"docs/**", "docs/**"}}
	if d := cmp.Diff(moved, m.Moved); d != "" {
		t.Error(d)
	}
	if _, err := m.Patterns([]string{strings.Repeat("x,", MaxPatterns+1)}); err == nil {
		t.Error("more paths than a request may have")
	}
}

// TestMatches checks that the result contains only patterns that were counted before the deadline, and that the search
// by prefix misses no name.
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
		t.Errorf("regardless of case: %v", got)
	}
	if got := Matches(names, []string{"app"}, false, time.Now().Add(-time.Hour)); len(got) != 0 {
		t.Errorf("after the deadline: %v", got)
	}
}
