// Package editing remembers which agents of a project edited which files of its code base. It learns about edits only
// from the clients' hooks, so it misses edits by shell commands. All records are lost when the server restarts.
package editing

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// Together is the maximum time between two agents' edits of the same file for the edits to cause a Meeting.
const Together = 10 * time.Minute

// maxFiles is the maximum number of files with recent edits that are remembered for a project. maxMeetings is the
// maximum number of an agent's Meetings that are kept until Meetings returns them.
const (
	maxFiles    = 4096
	maxMeetings = 20
)

// File is a file that was edited.
type File struct {
	Disk string // absolute path, without symbolic links; two edits of the same Disk cause a Meeting
	Path string // path in the repository, which is the same in every working tree
}

// Edit is an agent's edit of a file.
type Edit struct {
	Path string
	At   time.Time
}

// Meeting is a notice to an agent that another agent has edited the same file.
type Meeting struct {
	Other string
	Edit                // the other agent's edit
	Ago   time.Duration // age of that edit when Meetings returned the Meeting
}

// Editor is an agent and its newest edit of a file.
type Editor struct {
	Agent string
	Edit
}

// Edits remembers the edits of a project's agents. It is safe for concurrent use.
type Edits struct {
	now     func() time.Time
	changed func()

	mu    sync.Mutex
	last  map[string]Edit          // each agent's newest edit
	files map[string]map[string]at // recent edits, by File.Disk and agent
	met   map[string][]Meeting     // Meetings that have not been returned yet, by agent, oldest first
}

// at records when an agent last edited a file, and with which other agents it has already had a Meeting about the
// file.
type at struct {
	time time.Time
	path string // File.Path
	met  map[string]bool
}

// New returns an empty Edits. Edits calls now for the current time, and calls changed when an agent begins to edit a
// different file.
func New(now func() time.Time, changed func()) *Edits {
	return &Edits{now: now, changed: changed, last: map[string]Edit{}, files: map[string]map[string]at{}, met: map[string][]Meeting{}}
}

// Edited records that an agent has just edited files. If another agent edited one of these files at most Together ago,
// both agents get a Meeting, once for each file.
func (e *Edits) Edited(agent string, files ...File) {
	if e.noteEdits(agent, files) {
		e.changed()
	}
}

// noteEdits records the edits, and reports whether the agent has begun to edit a different file.
func (e *Edits) noteEdits(agent string, files []File) (another bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.now()
	for _, f := range files {
		last := e.last[agent]
		another = another || last.Path != f.Path || now.Sub(last.At) > Together
		e.last[agent] = Edit{f.Path, now}
		editors := e.editorsOf(f.Disk, now)
		own := at{now, f.Path, editors[agent].met}
		if own.met == nil {
			own.met = map[string]bool{}
		}
		editors[agent] = own
		for other, their := range editors {
			if other == agent || own.met[other] {
				continue
			}
			own.met[other], their.met[agent] = true, true
			e.meet(agent, Meeting{Other: other, Edit: Edit{f.Path, their.time}})
			e.meet(other, Meeting{Other: agent, Edit: Edit{f.Path, now}})
		}
	}
	return another
}

func (e *Edits) meet(agent string, m Meeting) {
	all := append(e.met[agent], m)
	e.met[agent] = all[max(0, len(all)-maxMeetings):]
}

// editorsOf returns the agents that edited a file at most Together ago.
func (e *Edits) editorsOf(disk string, now time.Time) map[string]at {
	editors := e.files[disk]
	if editors == nil {
		if len(e.files) >= maxFiles {
			e.forgetHalf()
		}
		editors = map[string]at{}
		e.files[disk] = editors
	}
	maps.DeleteFunc(editors, func(_ string, a at) bool { return now.Sub(a.time) > Together })
	return editors
}

// forgetHalf drops the half of the files that were edited least recently.
func (e *Edits) forgetHalf() {
	newest := map[string]time.Time{}
	for disk, editors := range e.files {
		for _, a := range editors {
			if a.time.After(newest[disk]) {
				newest[disk] = a.time
			}
		}
	}
	all := slices.SortedFunc(maps.Keys(e.files), func(a, b string) int { return newest[a].Compare(newest[b]) })
	for _, disk := range all[:len(all)/2] {
		delete(e.files, disk)
	}
}

// Meetings returns the agent's Meetings that no earlier call has returned, oldest first.
func (e *Edits) Meetings(agent string) []Meeting {
	e.mu.Lock()
	defer e.mu.Unlock()
	all := e.met[agent]
	delete(e.met, agent)
	for i := range all {
		all[i].Ago = e.now().Sub(all[i].At)
	}
	return all
}

// Last returns the agent's newest edit. ok is false if no edit is recorded.
func (e *Edits) Last(agent string) (edit Edit, ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	edit, ok = e.last[agent]
	return edit, ok
}

// Recent lists the agents that edited a file at most Together ago, newest edit first. An agent that has edited the
// same file in several working trees is listed once for that file.
func (e *Edits) Recent() (all []Editor) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.now()
	for _, editors := range e.files {
		for agent, a := range editors {
			if now.Sub(a.time) <= Together {
				all = append(all, Editor{agent, Edit{a.path, a.time}})
			}
		}
	}
	slices.SortFunc(all, func(a, b Editor) int {
		return cmp.Or(b.At.Compare(a.At), strings.Compare(a.Path, b.Path), strings.Compare(a.Agent, b.Agent))
	})
	type pair struct{ agent, path string }
	listed := map[pair]bool{}
	return slices.DeleteFunc(all, func(a Editor) bool {
		again := listed[pair{a.Agent, a.Path}]
		listed[pair{a.Agent, a.Path}] = true
		return again
	})
}
