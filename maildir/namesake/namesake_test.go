package namesake

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mailtree/maildir/core"
	"mailtree/maildir/format"
	"mailtree/maildir/merge"
)

// profile reads text of the form "MACHINE INCEPTION", where the inception is an hour. If "person" follows, the
// profile belongs to a user. "" means no profile.
func profile(t testing.TB, name, text string) (p format.Profile) {
	t.Helper()
	if text == "" {
		return p
	}
	var hour int
	p.Name = name
	if _, err := fmt.Sscan(text, &p.Machine, &hour); err != nil {
		t.Fatal(err)
	}
	p.Inception = time.Date(2026, 11, 26, hour, 0, 0, 0, time.UTC)
	if strings.HasSuffix(text, "person") {
		p.Program = core.PersonProgram
	}
	return p
}

// side returns the Here of a machine with the given agents, each written as "NAME MACHINE INCEPTION".
func side(t testing.TB, agents []string) Here {
	t.Helper()
	h := Here{Machine: func(id string) string { return "of-" + id }}
	for _, a := range agents {
		name, rest, _ := strings.Cut(a, " ")
		h.Agents = append(h.Agents, profile(t, name, rest))
	}
	h.Taken = func(name string) (bool, error) {
		return slices.ContainsFunc(h.Agents, func(a format.Profile) bool { return strings.EqualFold(a.Name, name) }), nil
	}
	return h
}

func TestFind(t *testing.T) {
	t.Parallel()
	type names map[string][3]string // base, ours, theirs
	for _, c := range []struct {
		name     string
		profiles names
		agents   []string // on this machine
		want     []string // "NAME: the side that keeps it, the other agent's new name"
		reverse  []string // the results on the other machine if it has no further agents; not checked if nil
	}{
		{name: "one agent", profiles: names{"Ann": {"a 1", "a 1", "a 1"}}},
		{name: "new there", profiles: names{"Ann": {"", "", "b 1"}}},
		{
			name:     "the first keeps the name",
			profiles: names{"Ann": {"", "a 1", "b 2"}},
			want:     []string{"Ann: ours, Ann-of-b"},
			reverse:  []string{"Ann: theirs, Ann-of-b"},
		},
		{
			name:     "created at the same time: the machine with the smaller id keeps the name",
			profiles: names{"Ann": {"", "a 1", "b 1"}},
			want:     []string{"Ann: ours, Ann-of-b"},
			reverse:  []string{"Ann: theirs, Ann-of-b"},
		},
		{
			name:     "a user's agent takes precedence over a program's",
			profiles: names{"Ann": {"", "a 1", "b 2 person"}},
			want:     []string{"Ann: theirs, Ann-of-a"},
			reverse:  []string{"Ann: ours, Ann-of-a"},
		},
		{name: "a user's agent is the same on both machines", profiles: names{"Ann": {"", "a 1 person", "b 2 person"}}},
		{name: "a missing profile conflicts with nothing", profiles: names{"Ann": {"", "a 1", ""}}},
		{name: "handed over to another machine", profiles: names{"Ann": {"a 1", "a 1", "b 1"}}},
		{
			name:     "a user has replaced the first agent with the second",
			profiles: names{"Ann": {"a 1", "a 1", "b 2"}},
		},
		{
			name:     "the second agent was in the base: it is renamed",
			profiles: names{"Ann": {"b 2", "a 1", "b 2"}},
			want:     []string{"Ann: ours, Ann-of-b"},
			reverse:  []string{"Ann: theirs, Ann-of-b"},
		},
		{
			name:     "the name is taken here",
			profiles: names{"Ann": {"", "a 1", "b 2"}},
			agents:   []string{"ann-OF-b c 1"},
			want:     []string{"Ann: ours, Ann-of-b-2"},
		},
		{
			name:     "the name is taken there",
			profiles: names{"Ann": {"", "a 1", "b 2"}, "Ann-of-b": {"", "", "c 1"}},
			want:     []string{"Ann: ours, Ann-of-b-2"},
		},
		{
			name:     "the name is taken there, in another case",
			profiles: names{"Ann": {"", "a 1", "b 2"}, "ann-OF-b": {"", "", "c 1"}},
			want:     []string{"Ann: ours, Ann-of-b-2"},
		},
		{
			name:     "the other machine has chosen",
			profiles: names{"Ann": {"", "a 1", "b 2"}, "Anna": {"", "", "b 2"}},
			want:     []string{"Ann: ours, Anna"},
		},
		{
			name:     "this machine has chosen, in an earlier round",
			profiles: names{"Ann": {"", "a 1", "b 2"}},
			agents:   []string{"Ann a 1", "Ann-of-b-7 b 2"},
			want:     []string{"Ann: ours, Ann-of-b-7"},
		},
		{
			name:     "both have renamed it",
			profiles: names{"Ann": {"b 2", "a 1", "a 1"}, "Ann-of-b": {"", "b 2", "b 2"}},
			want:     []string{"Ann: moved, Ann-of-b"},
			reverse:  []string{"Ann: moved, Ann-of-b"},
		},
		{
			name:     "two pairs that would get the same name",
			profiles: names{"Ann": {"", "a 1", "b 2"}, "ann": {"", "a 3", "b 4"}},
			want:     []string{"Ann: ours, Ann-of-b", "ann: ours, ann-of-b-2"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			found := func(h Here, reverse bool) (lines []string) {
				t.Helper()
				profiles := map[string]*Versions{}
				for name, v := range c.profiles {
					if reverse {
						v[1], v[2] = v[2], v[1]
					}
					profiles[name] = &Versions{profile(t, name, v[0]), profile(t, name, v[1]), profile(t, name, v[2])}
				}
				pairs, err := Find(profiles, h)
				if err != nil {
					t.Fatal(err)
				}
				for _, p := range pairs {
					who := "ours"
					if p.Lost {
						who = "theirs"
					}
					if p.Moved {
						who = "moved"
					}
					lines = append(lines, fmt.Sprintf("%s: %s, %s", p.Name, who, p.To))
				}
				return lines
			}
			if d := cmp.Diff(c.want, found(side(t, c.agents), false)); d != "" {
				t.Error(d)
			}
			if c.reverse == nil && c.want != nil {
				return
			}
			if d := cmp.Diff(c.reverse, found(side(t, nil), true)); d != "" {
				t.Errorf("the other machine: %s", d)
			}
		})
	}
}

func TestMoveFiles(t *testing.T) {
	t.Parallel()
	const inbox = "inbox/2026/11/26/msg_20261126_00000000000000aa.md"
	entry := func(hash string) merge.Entry {
		if hash == "-" {
			return merge.Entry{}
		}
		return merge.Entry{Mode: merge.Plain, Hash: hash}
	}
	for _, c := range []struct {
		name  string
		moved bool
		here  map[string]string // the entries at new paths on this machine
		files []string          // "PATH BASE OURS THEIRS"
		want  []string
	}{
		{
			name:  "their files move to the new name",
			files: []string{"agents/Ann/" + inbox + " - - t", "agents/Bob/" + inbox + " - - t"},
			want:  []string{"agents/Ann2/" + inbox + " - - t", "agents/Bob/" + inbox + " - - t"},
		},
		{
			name:  "our file under the old name is ignored",
			files: []string{"agents/Ann/" + inbox + " - o t"},
			want:  []string{"agents/Ann2/" + inbox + " - - t"},
		},
		{
			name:  "a file from an interrupted round is not treated as our change",
			here:  map[string]string{"agents/Ann2/" + inbox: "was"},
			files: []string{"agents/Ann/" + inbox + " - - t"},
			want:  []string{"agents/Ann2/" + inbox + " was was t"},
		},
		{
			name:  "a common file stays the base",
			here:  map[string]string{"agents/Ann2/" + inbox: "o"},
			files: []string{"agents/Ann/" + inbox + " b o t"},
			want:  []string{"agents/Ann2/" + inbox + " b o t"},
		},
		{
			name:  "drafts stay",
			files: []string{"agents/Ann/drafts/one.md - - t"},
			want:  []string{"agents/Ann/drafts/one.md - - t"},
		},
		{
			name:  "both have renamed: the base moves too",
			moved: true,
			files: []string{"agents/Ann/" + inbox + " b - -", "agents/Ann2/" + inbox + " - b t"},
			want:  []string{"agents/Ann/" + inbox + " - - -", "agents/Ann2/" + inbox + " b b t"},
		},
		{
			name:  "both have renamed, and the other side has removed the file",
			moved: true,
			here:  map[string]string{"agents/Ann2/" + inbox: "b"},
			files: []string{"agents/Ann/" + inbox + " b - -"},
			want:  []string{"agents/Ann/" + inbox + " - - -", "agents/Ann2/" + inbox + " b b -"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var files []merge.File
			for _, line := range c.files {
				f := strings.Fields(line)
				files = append(files, merge.File{Path: f[0], Base: entry(f[1]), Ours: entry(f[2]), Theirs: entry(f[3])})
			}
			before := slices.Clone(files)
			p := &Pair{Name: "Ann", To: "Ann2", Moved: c.moved}
			moved, err := p.MoveFiles(files, func(path string) (merge.Entry, error) {
				if hash := c.here[path]; hash != "" {
					return entry(hash), nil
				}
				return merge.Entry{}, nil
			})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range moved {
				line := f.Path
				for _, e := range []merge.Entry{f.Base, f.Ours, f.Theirs} {
					if line += " " + e.Hash; e.Hash == "" {
						line += "-"
					}
				}
				got = append(got, line)
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Error(d)
			}
			if !slices.Equal(files, before) {
				t.Error("MoveFiles changed its argument")
			}
		})
	}
}
