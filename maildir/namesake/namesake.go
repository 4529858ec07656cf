// Package namesake chooses new names for agents if two machines created agents with the same name before they merged
// their mail. It only compares profiles from three commits. Package peers reads the commits and renames the agents.
// Both machines choose the same names, because each calls Find with the sides swapped. See docs/reference/sync.md,
// "Names".
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

// Versions contains the profiles of agents with the same name in three commits: the merge base and the two sides. If a
// commit has no such profile, its Name is "".
type Versions struct{ Base, Ours, Theirs format.Profile }

// Pair describes two different agents with the same name.
type Pair struct {
	Name         string
	Ours, Theirs format.Profile
	Lost         bool   // the other side's agent keeps the name
	To           string // the new name of the agent that does not keep its name
	Moved        bool   // both sides have renamed the agent since the last common commit; Ours and Theirs are empty
}

// First returns the agent that keeps the name.
func (p *Pair) First() *format.Profile {
	if p.Lost {
		return &p.Theirs
	}
	return &p.Ours
}

// Second returns the agent that gets a new name.
func (p *Pair) Second() *format.Profile {
	if p.Lost {
		return &p.Ours
	}
	return &p.Theirs
}

// isSame reports whether two profiles belong to the same agent, regardless of their names.
func isSame(a, b *format.Profile) bool {
	return a.Machine != "" && a.Machine == b.Machine && a.Inception.Equal(b.Inception)
}

// areTwo reports whether the two sides' profiles belong to different agents.
func (v *Versions) areTwo() bool {
	people := v.Ours.Program == core.PersonProgram && v.Theirs.Program == core.PersonProgram
	// handedOver is true if both profiles belong to one agent and the user changed the machine in one of them.
	handedOver := v.Base.Name != "" && v.Ours.Inception.Equal(v.Theirs.Inception)
	return v.Ours.Machine != "" && v.Theirs.Machine != "" && v.Ours.Machine != v.Theirs.Machine && !people && !handedOver
}

// isAfter reports whether agent a must give up a name to agent b. A user's agent takes precedence over a program's.
// Otherwise, the agent that was created first takes precedence.
func isAfter(a, b *format.Profile) bool {
	if person := b.Program == core.PersonProgram; person != (a.Program == core.PersonProgram) {
		return person
	}
	return cmp.Or(a.Inception.Compare(b.Inception), cmp.Compare(a.Machine, b.Machine)) > 0
}

// Here provides Find with information about this machine.
type Here struct {
	Agents  []format.Profile                // the agents in this machine's mail
	Machine func(id string) string          // returns a machine's name, given the id of its key
	Taken   func(name string) (bool, error) // reports whether an agent has the given name, ignoring case
}

// Find returns a Pair for each name under which the two sides have different agents, and for each agent that both sides
// have renamed. The pairs are sorted by name. profiles contains, by name, the profiles in all folders that the other
// side has changed. Find returns any error from Here.Taken.
func Find(profiles map[string]*Versions, here Here) (pairs []Pair, err error) {
	for _, name := range slices.Sorted(maps.Keys(profiles)) {
		v := profiles[name]
		p := Pair{Name: name, Ours: v.Ours, Theirs: v.Theirs, Lost: isAfter(&v.Ours, &v.Theirs)}
		switch {
		case v.areTwo() && !isSame(&v.Base, p.First()): // otherwise, a user replaced the base's agent
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

// newName chooses a name for the agent that does not keep its name. It reuses the name that a machine has already
// given the agent. If there is none, it picks a free name. The set chosen contains, in lower case, the names in the
// three commits and the names chosen for earlier pairs.
func (p *Pair) newName(profiles map[string]*Versions, here Here, chosen map[string]bool) (string, error) {
	for name, v := range profiles {
		if name != p.Name && isSame(&v.Theirs, p.Second()) { // the other machine has already chosen the name
			return name, nil
		}
	}
	for i := range here.Agents {
		if a := &here.Agents[i]; a.Name != p.Name && isSame(a, p.Second()) { // this machine has already chosen the name
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

// Path returns the new path of a file in the agent's old folder. in reports whether path is in that folder.
func (p *Pair) Path(path string) (to string, in bool) {
	rest, in := strings.CutPrefix(path, format.AgentsDir+"/"+p.Name+"/")
	return format.AgentsDir + "/" + p.To + "/" + rest, in
}

// MoveFiles returns a merge's files, with the second agent's files moved to its new name. It moves the files in the
// base. Unless the other side has already renamed the agent, it also moves them on the other side. The function ours
// returns this machine's entry at a path. MoveFiles returns any error from ours.
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
		case f.Base.Mode == 0: // the file under the new name comes from an earlier round that was interrupted
			is.Base = is.Ours
		}
		all[i] = is
	}
	return all, nil
}
