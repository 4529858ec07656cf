package core

import (
	"path"
	"strconv"
	"strings"

	"mailtree/maildir/tree"
)

// maxDayFiles is the maximum number of messages in one day folder. The limit exists because Git stores the whole list
// of a folder again with each commit that changes the folder. Further messages of the day are stored in DD/1, then in
// DD/2, and so on.
const maxDayFiles = 1000

// dayFolders determines the folders for new messages of the current day. For each mailbox, it caches the newest folder
// and the number of messages in it. Messages that other programs add later are not counted. Only the writer's goroutine
// uses dayFolders. The zero value is empty.
type dayFolders struct {
	day    string // YYYY/MM/DD; the folders of an earlier day are dropped
	newest map[string]*dayFolder
}

// dayFolder is a mailbox's newest folder for a given day.
type dayFolder struct {
	part  int // number of the subfolder; 0 means the day's folder itself
	files int
}

// place returns the path for a new message file whose usual path is p, in the form "…/YYYY/MM/DD/<id>.md". It returns p
// itself unless the day's folder is full. A folder that cannot be listed is treated as empty.
func (d *dayFolders) place(t *tree.Tree, p string) string {
	dir, name := path.Split(p)
	dir = strings.TrimSuffix(dir, "/")
	if day := dir[len(dir)-len("2006/01/02"):]; day != d.day {
		d.day, d.newest = day, map[string]*dayFolder{}
	}
	f := d.newest[dir]
	if f == nil {
		f = lastPart(t, dir)
		d.newest[dir] = f
	}
	if f.files >= maxDayFiles {
		*f = dayFolder{part: f.part + 1}
	}
	f.files++
	if f.part == 0 {
		return p
	}
	return partOf(dir, f.part) + "/" + name
}

// lastPart finds the newest folder of a day, which is dir or a folder in it, and counts the messages in that folder.
func lastPart(t *tree.Tree, dir string) *dayFolder {
	f := dayFolder{}
	entries, _ := t.List(dir)
	for _, e := range entries {
		if n, err := strconv.Atoi(e.Name()); err == nil && e.IsDir() && strconv.Itoa(n) == e.Name() {
			f.part = max(f.part, n)
		}
	}
	if f.part > 0 {
		entries, _ = t.List(partOf(dir, f.part))
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".md") {
			f.files++
		}
	}
	return &f
}

func partOf(dir string, part int) string { return dir + "/" + strconv.Itoa(part) }

// Place returns the path for a new message file whose usual path is the given path. The result differs from that path
// if the folder is full. Only plans may call Place.
func (c *Mail) Place(path string) string { return c.days.place(c.Tree, path) }
