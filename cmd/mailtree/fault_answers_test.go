//go:build linux

package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// difference is a mismatch between a response and the files.
type difference struct {
	text string
	lost bool // the response lacks an item that was reported before the fault and whose file is unchanged
}

// differing asks the server for everything that the attempted operation may have changed, and compares the responses
// with the files.
func (r *peril) differing() (all []difference) {
	r.d.t.Helper()
	differ := func(lost bool, format string, args ...any) {
		all = append(all, difference{fmt.Sprintf(format, args...), lost})
	}
	there := []string{}
	for _, path := range r.glob("agents/*/profile.json") {
		there = append(there, strings.Split(path, "/")[1])
	}
	listed := r.agents()
	for _, name := range there {
		if _, ok := listed[name]; !ok {
			differ(slices.Contains(r.load.agents, name), "list_agents does not list %s, whose profile is there", name)
		}
	}
	if len(listed) != len(there) {
		differ(false, "list_agents lists %v; the profiles on disk are those of %v", slices.Sorted(maps.Keys(listed)), there)
	}
	if r.task != "" && listed["Dora"] != r.task {
		differ(false, "list_agents says that Dora's task is %q; her profile says %q", listed["Dora"], r.task)
	}
	boxes := []string{"Bob", "Cid"}
	if r.has("agents/" + r.newcomer() + "/inbox") {
		boxes = append(boxes, r.newcomer())
	}
	for _, agent := range boxes {
		r.compareInbox(agent, differ)
	}
	found := r.search()
	if there := strings.Contains(r.canonical(), r.word); there != slices.Contains(found, r.id) || len(found) > 1 {
		differ(r.before && there && !r.op.beside, "search finds %v; %q is in the file of %s: %v", found, r.word, r.id, there)
	}
	held := r.holder()
	if _, conflict, err := r.askDry(); err != nil {
		differ(false, "claim_paths: %v", err)
	} else if conflict != (held != "") {
		differ(r.before && held != "", "claim_paths reports a claim on %s: %v; the files say that its holder is %q", r.pattern, conflict, held)
	}
	return all
}

// askDry uses a dry run to ask whether Eve could claim the pattern.
func (r *peril) askDry() (granted, conflict bool, err error) { return r.askClaim("Eve", true) }

// compareInbox compares one inbox with the files: the number of messages, and the message of the attempted operation.
func (r *peril) compareInbox(agent string, differ func(lost bool, format string, args ...any)) {
	r.d.t.Helper()
	var page struct {
		Messages []struct {
			ID    string
			Read  bool
			Acked bool `json:"acknowledged"`
		}
		Total, Unread int
	}
	args := map[string]any{"project_key": faultKey, "agent_name": agent, "limit": 20}
	if err := r.d.call("check_my_messages", args, &page); err != nil {
		differ(false, "check_my_messages of %s: %v", agent, err)
		return
	}
	box := "agents/" + agent + "/inbox/*/*/*/"
	copies, unread := r.glob(box+"*.md"), 0
	for _, path := range copies {
		if !r.exists(strings.TrimSuffix(path, ".md") + ".read") {
			unread++
		}
	}
	if page.Total != len(copies) || page.Unread != unread {
		differ(false, "check_my_messages says that %s has %d messages, %d unread; the files show %d and %d",
			agent, page.Total, page.Unread, len(copies), unread)
	}
	if r.id == "" {
		return
	}
	there, shown := r.has(box+r.id+".md"), false
	for _, m := range page.Messages {
		if m.ID != r.id {
			continue
		}
		shown = true
		if read, acked := r.has(box+r.id+".read"), r.has(box+r.id+".ack"); m.Read != read || m.Acked != acked {
			differ(false, "check_my_messages says that %s of %s is read %v, acknowledged %v; the marks say %v, %v",
				r.id, agent, m.Read, m.Acked, read, acked)
		}
	}
	if there != shown {
		differ(there && r.before && r.away == "", "check_my_messages lists %s of %s: %v; its file is there: %v", r.id, agent, shown, there)
	}
}

// agents returns each agent's task, by name. It reads every page of list_agents.
func (r *peril) agents() map[string]string {
	r.d.t.Helper()
	all := map[string]string{}
	for cursor := ""; ; {
		var page struct {
			Agents []struct {
				Name string
				Task string `json:"task_description"`
			}
			Next string `json:"next_cursor"`
		}
		args := map[string]any{"project_key": faultKey, "active_only": false}
		if cursor != "" {
			args["cursor"] = cursor
		}
		if err := r.d.call("list_agents", args, &page); err != nil {
			r.bad("list_agents: %v", err)
			return all
		}
		for _, a := range page.Agents {
			all[a.Name] = a.Task
		}
		if cursor = page.Next; cursor == "" {
			return all
		}
	}
}

// search finds messages that contain the attempt's word.
func (r *peril) search() (ids []string) {
	r.d.t.Helper()
	var found struct{ Hits []struct{ ID string } }
	if err := r.d.call("search_messages", map[string]any{"project_key": faultKey, "query": r.word}, &found); err != nil {
		r.bad("search_messages: %v", err)
	}
	for _, m := range found.Hits {
		ids = append(ids, m.ID)
	}
	return ids
}

// unread returns the number of unread messages according to check_my_messages.
func (r *peril) unread(agent string) int {
	var page struct{ Unread int }
	if err := r.d.call("check_my_messages", map[string]any{"project_key": faultKey, "agent_name": agent, "limit": 1}, &page); err != nil {
		return -1
	}
	return page.Unread
}

// canonical returns the content of the canonical file of the attempt's message, or "" if there is none.
func (r *peril) canonical() string {
	if r.id == "" {
		return ""
	}
	for _, path := range r.glob("messages/*/*/*/" + r.id + ".md") {
		data, _ := os.ReadFile(filepath.Join(r.tree, path))
		return string(data)
	}
	return ""
}

// glob finds files in the tree. The paths are relative to the tree.
func (r *peril) glob(pattern string) (paths []string) {
	const day = "/*/*/*/"
	all, err := filepath.Glob(filepath.Join(r.tree, pattern))
	if strings.Contains(pattern, day) && err == nil { // a day with more than 1,000 messages has subfolders
		var more []string
		more, err = filepath.Glob(filepath.Join(r.tree, strings.Replace(pattern, day, day+"[0-9]*/", 1)))
		all = append(all, more...)
	}
	if err != nil {
		r.d.t.Fatal(err)
	}
	for _, name := range all {
		paths = append(paths, strings.TrimPrefix(name, r.tree+"/"))
	}
	return paths
}

func (r *peril) has(pattern string) bool { return len(r.glob(pattern)) > 0 }

func (r *peril) exists(path string) bool {
	_, err := os.Lstat(filepath.Join(r.tree, path))
	return err == nil
}

// one returns the only file that matches a pattern.
func (r *peril) one(pattern string) string {
	r.d.t.Helper()
	paths := r.glob(pattern)
	if len(paths) != 1 {
		r.d.t.Fatalf("%d files match %s", len(paths), pattern)
	}
	return paths[0]
}
