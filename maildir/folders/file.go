package folders

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"mailtree/maildir/format"
	"mailtree/maildir/refusal"
	"mailtree/maildir/registry"
	"mailtree/maildir/tree"
)

// Kind says why a folder identifies a project.
type Kind string

// The kinds of lines in the map.
const (
	Link     Kind = "link"     // a user linked the folder
	Clone    Kind = "clone"    // the folder contains another clone of the project's repository
	Worktree Kind = "worktree" // the folder is or was a worktree linked to the project's working tree
)

// Line is a line of the map, which says that a folder identifies a project.
type Line struct {
	Kind    Kind
	Project string    // slug
	Day     time.Time // day on which the line was written or last confirmed
	Folder  string    // absolute and clean
}

// Map is the content of the file. A Map must not be modified.
type Map struct {
	Lines        []Line
	Repositories []Repository
	Kept         []string // comments and unreadable lines, which are preserved but have no effect
}

// FileName is the name of the map's file in the store.
const FileName = "folders"

// maxFile is the maximum size of the file in bytes. maxNoted is the maximum number of lines of each kind that the
// program writes on its own.
const (
	maxFile  = 4 << 20
	maxNoted = 500
)

const header = "# Folders on this machine and the projects that they belong to. You added the lines that begin with \"link\";\n" +
	"# mailtree adds the others.\n"

var unusable = refusal.Unavailable("The file {=other} in the store cannot be used: {why}. It lists the folders of each project. Move " +
	"it elsewhere, and link your folders again.")

// File gives access to a store's map of folders. It is safe for concurrent use.
type File = registry.File[*Map]

// Open returns the file of the store at root, without reading it. Load returns an empty Map if the file does not exist,
// and ErrUnavailable if the file cannot be used.
func Open(root string) *File {
	return registry.New(filepath.Join(root, FileName), registry.Format[*Map]{
		Limit:  maxFile,
		Parse:  func(data []byte, _ tree.FileStat) (*Map, error) { return parse(data), nil },
		Print:  func(m *Map) ([]byte, error) { return m.print(), nil },
		Refuse: func(err error) error { return refusal.Disk(registry.WrongFile(err, unusable, FileName)) },
	})
}

// parse reads the file. Each line is parsed separately, so an invalid line does not affect other lines.
func parse(data []byte) *Map {
	m := &Map{}
	for text := range strings.Lines(string(data)) {
		text = strings.TrimRight(text, "\r\n")
		if strings.TrimSpace(text) == "" || strings.Contains(header, text+"\n") {
			continue
		}
		if line, ok := parseLine(text); ok {
			m.Lines = append(m.Lines, line)
		} else if r, ok := parseRepository(text); ok {
			m.Repositories = append(m.Repositories, r)
		} else {
			m.Kept = append(m.Kept, text)
		}
	}
	return m
}

// parseLine reads a line such as "clone webshop-1a2b3c4d 2026-11-28 /home/me/webshop 2".
func parseLine(text string) (l Line, ok bool) {
	kind, rest := field(text)
	project, rest := field(rest)
	day, folder := field(rest)
	l = Line{Kind: Kind(kind), Project: project, Folder: folder}
	var err error
	l.Day, err = time.Parse(time.DateOnly, day)
	known := slices.Contains([]Kind{Link, Clone, Worktree}, l.Kind)
	return l, known && err == nil && format.ValidSlug(project) && isFolder(folder)
}

func field(text string) (word, rest string) {
	word, rest, _ = strings.Cut(strings.TrimLeft(text, " \t"), " ")
	return word, strings.TrimSpace(rest)
}

// isFolder reports whether text is an absolute clean path that fits in a line.
func isFolder(text string) bool {
	return filepath.IsAbs(text) && filepath.Clean(text) == text && !strings.ContainsFunc(text, format.Misleading)
}

func (m *Map) print() []byte {
	var b bytes.Buffer
	b.WriteString(header)
	for _, text := range m.Kept {
		fmt.Fprintln(&b, text)
	}
	for _, l := range m.Lines {
		fmt.Fprintln(&b, l.Kind, l.Project, l.Day.Format(time.DateOnly), l.Folder)
	}
	for _, r := range m.Repositories {
		fmt.Fprintln(&b, r)
	}
	return b.Bytes()
}

// Wrong returns the lines that cannot be parsed.
func (m *Map) Wrong() (all []string) {
	for _, text := range m.Kept {
		if !strings.HasPrefix(strings.TrimSpace(text), "#") {
			all = append(all, text)
		}
	}
	return all
}

// Linked returns the user's link line for the innermost folder that contains path.
func (m *Map) Linked(path string) (Line, bool) {
	return m.around(path, func(l Line) bool { return l.Kind == Link })
}

// Noted returns the line that the program wrote for the innermost folder that contains path. It ignores lines for which
// counts returns false.
func (m *Map) Noted(path string, counts func(Line) bool) (Line, bool) {
	return m.around(path, func(l Line) bool { return l.Kind != Link && counts(l) })
}

// around returns the accepted line for the innermost folder that contains path. If two lines are for the same folder,
// it returns the later one.
func (m *Map) around(path string, accept func(Line) bool) (found Line, ok bool) {
	for _, l := range m.Lines {
		inside := path == l.Folder || strings.HasPrefix(path, strings.TrimSuffix(l.Folder, "/")+"/")
		if inside && len(l.Folder) >= len(found.Folder) && accept(l) {
			found, ok = l, true
		}
	}
	return found, ok
}

// With returns a copy of the map with l added. l replaces lines of the same kind for the same folder. A link also
// replaces the lines that the program wrote for the folder. If there are then too many lines of a kind that the program
// writes, With drops the oldest one. If the folder's path does not fit in a line, With adds nothing.
func (m *Map) With(l Line) *Map {
	if !isFolder(l.Folder) {
		return m
	}
	next := *m
	next.Lines = slices.DeleteFunc(slices.Clone(m.Lines), func(old Line) bool {
		return old.Folder == l.Folder && (old.Kind == l.Kind || l.Kind == Link)
	})
	next.Lines = append(next.Lines, l)
	if l.Kind != Link {
		next.Lines = withoutOldest(next.Lines, l.Kind)
	}
	return &next
}

// withoutOldest drops the first line of the given kind if there are more than maxNoted lines of that kind. New lines
// are added at the end.
func withoutOldest(lines []Line, kind Kind) []Line {
	first, n := 0, 0
	for i, l := range lines {
		if l.Kind != kind {
			continue
		}
		if n++; n == 1 {
			first = i
		}
	}
	if n <= maxNoted {
		return lines
	}
	return slices.Delete(lines, first, first+1)
}

// Has reports whether the map contains a line with the same kind, project, day and folder.
func (m *Map) Has(l Line) bool {
	return slices.ContainsFunc(m.Lines, func(old Line) bool {
		return old.Kind == l.Kind && old.Project == l.Project && old.Folder == l.Folder &&
			old.Day.Format(time.DateOnly) == l.Day.Format(time.DateOnly)
	})
}

// Without returns a copy of the map without the lines that remove accepts.
func (m *Map) Without(remove func(Line) bool) *Map {
	next := *m
	next.Lines = slices.DeleteFunc(slices.Clone(m.Lines), remove)
	return &next
}
