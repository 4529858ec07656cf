package working_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mailtree/fixtures/storetest"
	"mailtree/maildir"
	"mailtree/maildir/claim"
	"mailtree/maildir/editing"
	"mailtree/maildir/format"
	"mailtree/maildir/working"
)

func TestMain(m *testing.M) {
	if err := storetest.Isolate(os.Setenv); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// TestFiles checks the list of files. A step is "AGENT claims PATTERN", "AGENT shares PATTERN" or "AGENT edits PATH",
// one second after the previous step. In a row, "!" marks a file in which agents clash.
func TestFiles(t *testing.T) {
	for name, tt := range map[string]struct{ steps, want []string }{
		"nothing": {nil, nil},
		"a claim, and an edit of another file": {
			[]string{"Ann claims a/**", "Bob edits b/x.go"},
			[]string{"a/**: Ann claims a/**", "b/x.go: Bob edits"},
		},
		"the holder edits": {
			[]string{"Ann claims a/**", "Ann edits a/x.go"},
			[]string{"a/**: Ann claims a/**", "a/x.go: Ann edits, Ann claims a/**"},
		},
		"another edits": {
			[]string{"Ann claims a/**", "Ann claims 0.go", "Bob edits a/x.go"},
			[]string{"! a/x.go: Bob edits Ann's, Ann claims a/**", "0.go: Ann claims 0.go", "a/**: Ann claims a/**"},
		},
		"the claim of the file itself": {
			[]string{"Ann claims a.go", "Bob edits a.go"},
			[]string{"! a.go: Bob edits Ann's, Ann claims a.go"},
		},
		"two edit": {
			[]string{"Ann edits a.go", "Bob edits a.go"},
			[]string{"! a.go: Bob edits, Ann edits"},
		},
		"shared claims forbid nothing": {
			[]string{"Ann shares a.go", "Bob shares *.go", "Cat edits a.go"},
			[]string{"*.go: Bob claims *.go", "a.go: Cat edits, Ann claims a.go"},
		},
		"a claim that stopped an agent": {
			[]string{"Ann claims b/**", "Ann claims a.go", "Bob claims b/x.go"},
			[]string{"! b/**: Ann claims b/** and stopped Bob's b/x.go", "a.go: Ann claims a.go"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			now := time.Now()
			s := storetest.Open(t, storetest.Config{NoWatcher: true, Now: func() time.Time { return now }})
			p, err := s.EnsureProject(t.Context(), "/code/backend")
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{"Ann", "Bob", "Cat"} {
				if err := p.Agents.EnsureAgent(t.Context(), name, maildir.Registration{Program: "test"}); err != nil {
					t.Fatal(err)
				}
			}
			for _, step := range tt.steps {
				now = now.Add(time.Second)
				of := strings.Fields(step)
				if of[1] == "edits" {
					p.Edits.Edited(of[0], editing.File{Disk: "/code/backend/" + of[2], Path: of[2]})
					continue
				}
				r := claim.Request{Patterns: of[2:], Shared: of[1] == "shares"}
				if _, err := p.Box(of[0], format.Origin{}).Claim(t.Context(), r); err != nil {
					t.Fatal(err)
				}
			}
			files, err := working.Files(t.Context(), p.Claims, p.Edits)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range files {
				got = append(got, row(f))
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

// row describes a listed file in words.
func row(f *working.File) string {
	var parts []string
	for _, e := range f.Editors {
		part := e.Agent + " edits"
		if e.Holder != "" {
			part += " " + e.Holder + "'s"
		}
		parts = append(parts, part)
	}
	for _, c := range f.Claims {
		part := c.Agent + " claims " + c.Pattern
		for _, s := range c.Stopped {
			part += fmt.Sprintf(" and stopped %s's %s", s.Agent, strings.Join(s.Paths, " "))
		}
		parts = append(parts, part)
	}
	mark := map[bool]string{true: "! "}[f.Clashes()]
	return mark + f.Path + ": " + strings.Join(parts, ", ")
}
