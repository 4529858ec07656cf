// Package namesake finds agents that two machines created with the same name before they merged their mail, and
// chooses new names. It only compares values: the profiles in three commits. Package peers reads the commits and
// renames the agents. Both machines choose the same names, because each calls Find with the sides exchanged. See
// docs/sync.md, "Names".
package namesake

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"mailtree/maildir/core"
	"mailtree/maildir/format"
	"mailtree/maildir/merge"
)

// Versions contains the profiles of one name in three commits: the merge base and the two sides. A missing profile
// has no Name.
type Versions struct{ Base, Ours, Theirs format.Profile }

// Pair is two agents with the same name.
type Pair struct {
	Name         string
	Ours, Theirs format.Profile
	Lost         bool   // theirs keeps the name
	To           string // the new name of the other agent
	Moved        bool   // both sides have renamed the agent since the last common commit; Ours and Theirs are empty
}

// First returns the agent that keeps the name.
func (p *Pair) First() *format.Profile {
	if p.Lost {
		return &p.Theirs
	}
	return &p.Ours
}

// Second returns the agent that gets another name.
func (p *Pair) Second() *format.Profile {
	if p.Lost {
		return &p.Ours
	}
	return &p.Theirs
}

// isSame reports whether two profiles, whatever their names, belong to the same agent.
func isSame(a, b *format.Profile) bool {
	return a.Machine != "" && a.Machine == b.Machine && a.Inception.Equal(b.Inception)
}

// areTwo reports whether the two sides have two different agents with the name, not two versions of one agent.
func (v *Versions) areTwo() bool {
	people := v.Ours.Program == core.PersonProgram && v.Theirs.Program == core.PersonProgram
	// The user has changed the machine in the profile of one agent.
	handedOver := v.Base.Name != "" && v.Ours.Inception.Equal(v.Theirs.Inception)
	return v.Ours.Machine != "" && v.Theirs.Machine != "" && v.Ours.Machine != v.Theirs.Machine && !people && !handedOver
}

// isAfter reports whether b, not a, keeps a name. A user's agent comes before a program, then the agent that was
// created first.
func isAfter(a, b *format.Profile) bool {
	if person := b.Program == core.PersonProgram; person != (a.Program == core.PersonProgram) {
		return person
	}
	return cmp.Or(a.Inception.Compare(b.Inception), cmp.Compare(a.Machine, b.Machine)) > 0
}

// Here contains what this machine knows.
type Here struct {
	Agents  []format.Profile                // the agents of its mail
	Machine func(id string) string          // the name of a machine
	Taken   func(name string) (bool, error) // whether an agent has the name, regardless of case
}

// Find returns a Pair for each name under which the two sides have two agents, and for each agent that both have
// renamed, sorted by name. profiles contains the profiles of all folders that theirs changed, by name. It returns
// the errors of Here.Taken.
func Find(profiles map[string]*Versions, here Here) (pairs []Pair, err error) {
	for _, name := range slices.Sorted(maps.Keys(profiles)) {
		v := profiles[name]
		p := Pair{Name: name, Ours: v.Ours, Theirs: v.Theirs, Lost: isAfter(&v.Ours, &v.Theirs)}
		switch {
		case v.areTwo() && !isSame(&v.Base, p.First()): // otherwise a user replaced the first by the second
			pairs = append(pairs, p)
		case v.Base.Name == "" && isSame(&v.Ours, &v.Theirs):
			for was, w := range profiles {
				if isSame(&w.Base, &v.Theirs) && !isSame(&w.Theirs, &v.Theirs) {
					pairs = append(pairs, Pair{Name: was, To: name, Moved: true})
				}
			}
		}
	}
	chosen := map[string]bool{}
	for name := range profiles {
		chosen[strings.ToLower(name)] = true
	}
	for i := range pairs {
		p := &pairs[i]
		if p.Moved {
			continue
		}
		if p.To, err = p.newName(profiles, here, chosen); err != nil {
			return nil, err
		}
		chosen[strings.ToLower(p.To)] = true
	}
	return pairs, nil
}

// newName chooses the name of the agent that does not keep its own name. It is the name that a machine has already
// given the agent, or a free name. chosen contains the names in the three commits and the names of earlier pairs,
// in lower case.
func (p *Pair) newName(profiles map[string]*Versions, here Here, chosen map[string]bool) (string, error) {
	for name, v := range profiles {
		if name != p.Name && isSame(&v.Theirs, p.Second()) { // the other machine has already chosen
			return name, nil
		}
	}
	for i := range here.Agents {
		if a := &here.Agents[i]; a.Name != p.Name && isSame(a, p.Second()) { // this machine has, in an earlier round
			return a.Name, nil
		}
	}
	machine := here.Machine(p.Second().Machine)
	to := core.Suffixed(p.Name, machine)
	for i := 2; ; i++ {
		taken, err := here.Taken(to)
		if err != nil {
			return "", err
		}
		if !taken && !chosen[strings.ToLower(to)] {
			return to, nil
		}
		to = core.Suffixed(p.Name, format.Cut(machine, 20)+"-"+strconv.Itoa(i))
	}
}

// Path returns the path of an agent's file under the new name. in reports whether the file is the agent's.
func (p *Pair) Path(path string) (to string, in bool) {
	rest, in := strings.CutPrefix(path, format.AgentsDir+"/"+p.Name+"/")
	return format.AgentsDir + "/" + p.To + "/" + rest, in
}

// MoveFiles returns the files of a merge with the second agent's files under its new name: in the base, and in
// theirs if theirs has not renamed the agent. ours returns the entry at a path on this machine. It returns the
// errors of ours.
func (p *Pair) MoveFiles(files []merge.File, ours func(path string) (merge.Entry, error)) ([]merge.File, error) {
	all := slices.Clone(files)
	at := map[string]int{}
	for i, f := range files {
		at[f.Path] = i
	}
	for i, f := range files {
		to, in := p.Path(f.Path)
		if !in || !merge.Crosses(f.Path) {
			continue
		}
		if known, there := at[to]; there && p.Moved {
			all[i].Base, all[known].Base = merge.Entry{}, f.Base
			continue
		}
		entry, err := ours(to)
		if err != nil {
			return nil, err
		}
		is := merge.File{Path: to, Base: f.Base, Ours: entry, Theirs: f.Theirs}
		switch {
		case p.Moved:
			is.Theirs = merge.Entry{}
			all[i].Base = merge.Entry{}
			all = append(all, is)
			continue
		case f.Base.Mode == 0: // the file there comes from an earlier round that was interrupted
			is.Base = is.Ours
		}
		all[i] = is
	}
	return all, nil
}
