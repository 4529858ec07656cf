// Package working lists the files of a code base that agents are currently working on: the files that they edit, and
// the patterns that they claim.
package working

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"mailtree/maildir/claim"
	"mailtree/maildir/claims"
	"mailtree/maildir/editing"
)

// maxEdits is the maximum number of edits in a list. If there are more, only the newest are listed.
const maxEdits = 200

// File is a file that agents edit, or a pattern that they claim.
type File struct {
	Path    string   // relative to the root of the code repository
	Editors []Editor // newest edit first
	Claims  []Claim  // live claims, earliest first; for an edited file, also exclusive claims on other patterns that cover it
}

// Editor is an agent that edits a file.
type Editor struct {
	editing.Editor
	Holder string // the agent whose exclusive claim the edit violates; empty if there is none
}

// Claim is a claim with the agents that it has blocked.
type Claim struct {
	claim.Row
	Stopped []Stopped // newest first
}

// Stopped is an agent that was blocked by a claim. See claims.Stop.
type Stopped struct {
	claims.Stop
	Paths []string // the paths or patterns that the claim covers
}

// Clashes reports whether agents conflict over the file: two of them edit it, one of them edits it although another
// agent has claimed it, or a claim on it has blocked an agent.
func (f *File) Clashes() bool {
	return len(f.Editors) > 1 || slices.ContainsFunc(f.Editors, func(e Editor) bool { return e.Holder != "" }) ||
		slices.ContainsFunc(f.Claims, func(c Claim) bool { return c.Pattern == f.Path && len(c.Stopped) > 0 })
}

// Files lists the files that agents currently edit or claim. Files in which agents clash come first. Otherwise, files
// are sorted by path. It returns any error from claims.Claims.
func Files(ctx context.Context, cs *claims.Claims, edits *editing.Edits) ([]*File, error) {
	const ended = false
	live, err := cs.List(ctx, ended)
	if err != nil {
		return nil, err
	}
	stops, err := cs.Stops(ctx)
	if err != nil {
		return nil, err
	}
	var all []*File
	byPath := map[string]*File{}
	at := func(path string) *File {
		if byPath[path] == nil {
			byPath[path] = &File{Path: path}
			all = append(all, byPath[path])
		}
		return byPath[path]
	}
	var paths []string
	recent := edits.Recent()
	for _, e := range recent[:min(len(recent), maxEdits)] {
		f := at(e.Path)
		if f.Editors = append(f.Editors, Editor{Editor: e}); len(f.Editors) == 1 {
			paths = append(paths, e.Path)
		}
	}
	for i := range live {
		f := at(live[i].Pattern)
		f.Claims = append(f.Claims, Claim{live[i], stoppedBy(stops, live[i].Path)})
	}
	covering, err := cs.Covering(ctx, paths)
	if err != nil {
		return nil, err
	}
	known := map[string]bool{} // files whose holder is already set, because the earliest claim wins
	for _, c := range covering {
		for _, path := range c.Paths {
			f := byPath[path]
			if !known[path] {
				f.setHolder(c.Claim.Agent)
			}
			if known[path] = true; c.Claim.Pattern != path {
				f.Claims = append(f.Claims, Claim{Row: c.Claim})
			}
		}
	}
	for _, f := range all {
		slices.SortStableFunc(f.Claims, func(a, b Claim) int { return a.Created.Compare(b.Created) })
	}
	slices.SortStableFunc(all, func(a, b *File) int { return cmp.Or(first(a)-first(b), strings.Compare(a.Path, b.Path)) })
	return all, nil
}

// first returns the sort order of a file: 0 if agents clash over it, and otherwise 1.
func first(f *File) int {
	if f.Clashes() {
		return 0
	}
	return 1
}

// setHolder sets agent as the Holder of all of the file's editors other than agent itself.
func (f *File) setHolder(agent string) {
	for i := range f.Editors {
		if e := &f.Editors[i]; e.Agent != agent {
			e.Holder = agent
		}
	}
}

// stoppedBy returns the agents blocked by the claim in the given file.
func stoppedBy(stops []claims.Stop, file string) (all []Stopped) {
	for _, s := range stops {
		for _, by := range s.By {
			if by.Claim.Path == file {
				all = append(all, Stopped{s, by.Paths})
			}
		}
	}
	return all
}
