package merge

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

const (
	inbox   = "agents/Bob/inbox/2026/11/26/msg_20261126_00000000000000aa"
	outbox  = "agents/Ann/outbox/2026/11/26/msg_20261126_00000000000000aa.md"
	message = "messages/2026/11/26/msg_20261126_00000000000000aa.md"
)

// e returns the entry for a plain file with the given content. "" means that the file does not exist. A leading x, l or
// m makes the entry an executable, a link or a submodule.
func e(content string) Entry {
	if content == "" {
		return Entry{}
	}
	mode := map[byte]uint32{'x': 0o100755, 'l': 0o120000, 'm': 0o160000}[content[0]]
	if mode == 0 {
		mode = Plain
	}
	return Entry{mode, fmt.Sprintf("%x", strings.Repeat(content, 20))[:40]}
}

func TestMerge(t *testing.T) {
	t.Parallel()
	aside := strings.TrimSuffix(message, ".md") + ".edit-"
	for _, c := range []struct {
		name, path, base, ours, theirs string
		later                          bool   // the other side's version is later
		want                           string // our side's content after the merge
		beside                         string // the version written next to a message
	}{
		{name: "new there", path: inbox + ".md", theirs: "a", want: "a"},
		{name: "new here", path: inbox + ".md", ours: "a", want: "a"},
		{name: "deleted there, unchanged here", path: inbox + ".md", base: "a", ours: "a", want: ""},
		{name: "deleted here, unchanged there", path: inbox + ".md", base: "a", theirs: "a", want: ""},
		{name: "edited there", path: message, base: "a", ours: "a", theirs: "b", want: "b"},
		{name: "edited here", path: message, base: "a", ours: "b", theirs: "a", want: "b"},
		{name: "edited there, deleted here", path: message, base: "a", theirs: "b", want: "b"},
		{name: "edited here, deleted there", path: message, base: "a", ours: "b", later: true, want: "b"},
		{name: "edited on both sides", path: message, base: "a", ours: "b", theirs: "c", want: "b", beside: "c"},
		{name: "edited on both sides, later there", path: message, base: "a", ours: "b", theirs: "c", later: true, want: "c", beside: "b"},
		{name: "edited identically", path: message, base: "a", ours: "b", theirs: "b", want: "b"},

		{name: "acknowledged there", path: inbox + ".ack", theirs: "1", want: "1"},
		{name: "acknowledged on both sides", path: inbox + ".ack", ours: "1", theirs: "2", want: "1"},
		{name: "archived, and put back there", path: inbox + ".archived", base: "1", ours: "1", want: ""},
		{name: "read here, unread there later", path: inbox + ".read", base: "1", ours: "2", later: true, want: ""},
		{name: "unread there, read here later", path: inbox + ".read", base: "1", ours: "2", want: "2"},
		{name: "unread here later, read there", path: inbox + ".read", base: "1", theirs: "2", want: ""},
		{name: "hidden on both sides, later there", path: inbox + ".later", base: "1", ours: "2", theirs: "3", later: true, want: "3"},
		{name: "hidden for longer there, shown here later", path: inbox + ".later", base: "1", theirs: "2", want: ""},

		{name: "profile", path: "agents/Ann/profile.json", base: "a", ours: "b", theirs: "c", later: true, want: "c"},
		{name: "profile here", path: "agents/Ann/profile.json", base: "a", ours: "b", theirs: "c", want: "b"},
		{name: "status", path: "agents/Ann/status", base: "a", ours: "b", theirs: "c", later: true, want: "c"},
		{name: "project", path: "project.json", base: "a", ours: "b", theirs: "c", later: true, want: "c"},
		{name: "a person's file", path: "README.md", theirs: "a", want: "a"},
		{name: "attachment", path: "attachments/ab/abc.png", theirs: "a", want: "a"},

		{name: "draft", path: "agents/Ann/drafts/d.md", theirs: "a", want: ""},
		{name: "draft here", path: "agents/Ann/drafts/d.md", base: "a", ours: "a", want: "a"},
		{name: "claim", path: "claims/aa-Ann.json", theirs: "a", want: ""},
		{name: "claim here", path: "claims/aa-Ann.json", base: "a", ours: "a", want: "a"},
		{name: "released", path: "claims/aa-Ann.released", theirs: "a", want: ""},
		{name: "sender's copy", path: outbox, theirs: "a", want: "a"},
		{name: "a file to send", path: "agents/Ann/outbox/new.md", theirs: "a", want: ""},
		{name: "a file to send here", path: "agents/Ann/outbox/2026/11/26/new.md", base: "a", ours: "a", want: "a"},

		{name: "link", path: "README.md", theirs: "l", want: ""},
		{name: "executable in a mailbox", path: inbox + ".md", theirs: "x", want: ""},
		{name: "submodule", path: "agents/Ann", theirs: "m", want: ""},
		{name: "executable on this machine that the other side lacks", path: "run.sh", base: "x", ours: "x", want: "x"},
		{name: "hidden", path: ".gitattributes", theirs: "a", want: ""},
		{name: "run-time folder", path: ".mailtree/journal", theirs: "a", want: ""},
		{name: "Git's folder", path: "agents/.git/config", theirs: "a", want: ""},
		{name: "outside", path: "../x", theirs: "a", want: ""},
		{name: "absolute", path: "/etc/passwd", theirs: "a", want: ""},
		{name: "not an agent's name", path: "agents/a b/profile.json", theirs: "a", want: ""},
		{name: "control character", path: "messages/a\x1b.md", theirs: "a", want: ""},
		{name: "too long", path: "messages/" + strings.Repeat("a/", 600) + "a.md", theirs: "a", want: ""},
	} {
		ours := map[string]Entry{}
		apply(ours, Change{Path: c.path, Is: e(c.ours)})
		changes, _ := Merge([]File{{c.path, e(c.base), e(c.ours), e(c.theirs)}}, func(string) bool { return c.later })
		for _, change := range changes {
			if ours[change.Path] != change.Was {
				t.Errorf("%s: was %v, but is %v", c.name, change.Was, ours[change.Path])
			}
			apply(ours, change)
		}
		if ours[c.path] != e(c.want) {
			t.Errorf("%s: %v, want %v", c.name, ours[c.path], e(c.want))
		}
		var beside Entry
		for p, is := range ours {
			if strings.HasPrefix(p, aside) {
				beside = is
			}
		}
		if beside != e(c.beside) {
			t.Errorf("%s: next to the message %v, want %v", c.name, beside, e(c.beside))
		}
	}
}

func apply(files map[string]Entry, c Change) {
	files[c.Path] = c.Is
	if !c.Is.exists() {
		delete(files, c.Path)
	}
}

// TestProperties makes random changes on two sides. It checks that merging on either side gives the same files, that
// merging again changes nothing, and that no file is lost if one side has it and the other has not removed it.
func TestProperties(t *testing.T) {
	t.Parallel()
	paths := []string{inbox + ".md", inbox + ".read", inbox + ".ack", inbox + ".archived", message, outbox,
		"agents/Ann/profile.json", "agents/Ann/status", "project.json", "README.md", "attachments/ab/abc.png"}
	for n := range 2000 {
		random := rand.New(rand.NewPCG(1, uint64(n)))
		base, ours, theirs := map[string]Entry{}, map[string]Entry{}, map[string]Entry{}
		later := map[string]bool{} // the other side's version is later
		for _, p := range paths {
			was := e([]string{"", "a"}[random.IntN(2)])
			apply(base, Change{Path: p, Is: was})
			for _, side := range []map[string]Entry{ours, theirs} {
				apply(side, Change{Path: p, Is: []Entry{was, e(""), e("b"), e("c")}[random.IntN(4)]})
			}
			later[p] = random.IntN(2) == 0
		}
		merged := mergedFiles(base, ours, theirs, later)
		for p := range later {
			later[p] = !later[p]
		}
		if other := mergedFiles(base, theirs, ours, later); !maps.Equal(merged, other) {
			t.Fatalf("%d: merged here %v, there %v", n, merged, other)
		}
		if again := mergedFiles(theirs, merged, theirs, later); !maps.Equal(merged, again) {
			t.Fatalf("%d: merged again %v, before %v", n, again, merged)
		}
		for _, sides := range [][2]map[string]Entry{{ours, theirs}, {theirs, ours}} {
			side, other := sides[0], sides[1]
			is := side[message]
			removed := base[message] == is && !other[message].exists()
			edited := base[message] == is && other[message] != is
			kept := slices.Contains(slices.Collect(maps.Values(only(merged, message))), is)
			if is.exists() && !removed && !edited && !kept {
				t.Fatalf("%d: %v is lost: base %v, ours %v, theirs %v, merged %v", n, is, base, ours, theirs, merged)
			}
		}
	}
}

// only returns the versions of the message at p.
func only(files map[string]Entry, p string) map[string]Entry {
	all := maps.Clone(files)
	maps.DeleteFunc(all, func(q string, _ Entry) bool { return !strings.HasPrefix(q, strings.TrimSuffix(p, ".md")) })
	return all
}

// mergedFiles returns our side's files after the merge.
func mergedFiles(base, ours, theirs map[string]Entry, later map[string]bool) map[string]Entry {
	all := map[string]bool{}
	for _, side := range []map[string]Entry{base, ours, theirs} {
		for p := range side {
			all[p] = true
		}
	}
	var files []File
	for p := range all {
		files = append(files, File{p, base[p], ours[p], theirs[p]})
	}
	out := maps.Clone(ours)
	changes, _ := Merge(files, func(p string) bool { return later[p] })
	for _, c := range changes {
		apply(out, c)
	}
	return out
}
