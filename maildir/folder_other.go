//go:build unix && !linux

package maildir

import "io/fs"

// folder is a folder of the tree.
type folder struct {
	t    *Tree
	path string
}

// dirent is one entry of a folder; mode holds the type only.
type dirent struct {
	name string
	mode fs.FileMode
}

// openFolder opens the folder at p and says how it stood then. Errors: as of Read.
func (t *Tree) openFolder(p string) (*folder, FileStat, error) {
	st, err := t.Stat(p)
	if err == nil && !st.Mode.IsDir() {
		err = notRegular(st.Mode)
	}
	return &folder{t, p}, st, err
}

func (d *folder) close() {}

// entries lists the folder by name.
func (d *folder) entries() ([]dirent, error) {
	l, err := d.t.list(d.path)
	all := make([]dirent, len(l))
	for i, e := range l {
		all[i] = dirent{e.Name(), e.Type()}
	}
	return all, err
}

// stat looks at a file of the folder without following a link.
func (d *folder) stat(name string) (FileStat, error) { return d.t.Stat(d.path + "/" + name) }

// read returns a regular file of the folder and says how it stood when it was opened. Errors: as of Read; the limit is
// one byte less than buf has.
func (d *folder) read(name string, buf []byte) ([]byte, FileStat, error) {
	return d.t.Read(d.path+"/"+name, int64(len(buf)-1))
}
