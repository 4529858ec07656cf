package crossing

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"mailtree/maildir/format"
	"mailtree/maildir/signed"
	"mailtree/maildir/storedir"
	"mailtree/maildir/tree"
)

// Item is a message that may not have reached another project yet.
type Item struct {
	From    string    `json:"from"`          // slug of the sender's project
	To      string    `json:"to"`            // slug of the other project
	Message string    `json:"message"`       // message id
	Queued  time.Time `json:"queued"`        // when the item was written
	BCC     []string  `json:"bcc,omitempty"` // the other project's agents that are bcc recipients
	File    string    `json:"file"`          // the canonical file as the other project stores it, without a seal
}

// label identifies this package's signed files. See package signed.
const label = "mailtree crossing"

// FolderName is the name of the folder with a project's items, next to the project's tree.
const FolderName = "crossing"

// folder contains the items of one project.
type folder struct {
	dir  string
	slug string
	key  []byte // the store's key
}

// folderOf returns the folder of a project's items in the store at root.
func folderOf(root, slug string, key []byte) *folder {
	return &folder{filepath.Join(filepath.Dir(storedir.Repo(root, slug)), FolderName), slug, key}
}

func name(id, to string) string { return id + "-" + to + ".json" }

func (f *folder) fileOf(id, to string) string { return filepath.Join(f.dir, name(id, to)) }

// saveItem durably writes an item. It replaces an existing item for the same message and project.
func (f *folder) saveItem(i *Item) error {
	data, err := signed.Encode(f.key, label, i)
	if err != nil {
		return err
	}
	err = os.Mkdir(f.dir, 0o700)
	switch {
	case err == nil:
		err = tree.SyncDir(filepath.Dir(f.dir))
	case errors.Is(err, fs.ErrExist):
		err = nil
	}
	if err == nil {
		err = tree.WriteFile(f.fileOf(i.Message, i.To), data)
	}
	if err != nil {
		return fmt.Errorf("cannot queue message %s for project %s: %w", i.Message, i.To, err)
	}
	return nil
}

func (f *folder) has(id, to string) bool {
	_, err := os.Lstat(f.fileOf(id, to))
	return err == nil
}

// loadItem reads an item. It returns nil if the file does not exist, or if this store did not write it under this name.
func (f *folder) loadItem(file string) (*Item, error) {
	data, err := os.ReadFile(filepath.Join(f.dir, file))
	if err != nil {
		return nil, tree.IgnoreGone(err)
	}
	i := &Item{}
	if !signed.Decode(f.key, label, data, i) || i.From != f.slug || file != name(i.Message, i.To) ||
		!format.ValidID(i.Message) || !format.ValidSlug(i.To) {
		return nil, nil
	}
	return i, nil
}

// listItems lists the names of the items' files, sorted. Because ids begin with the date, older messages usually come
// first.
func (f *folder) listItems() (all []string, err error) {
	entries, err := os.ReadDir(f.dir)
	for _, e := range entries {
		if e.Type().IsRegular() && strings.HasSuffix(e.Name(), ".json") {
			all = append(all, e.Name())
		}
	}
	return all, tree.IgnoreGone(err)
}

// removeItem durably removes an item. It returns nil if the item does not exist.
func (f *folder) removeItem(id, to string) error {
	err := os.Remove(f.fileOf(id, to))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = tree.SyncDir(f.dir)
	}
	return err
}

// tidy removes the files that an interrupted save left behind. No save may be in progress.
func (f *folder) tidy() error {
	entries, err := os.ReadDir(f.dir)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".new-") {
			err = errors.Join(err, os.Remove(filepath.Join(f.dir, e.Name())))
		}
	}
	return tree.IgnoreGone(err)
}

// Waiting summarizes the messages in one project that are waiting to reach another project.
type Waiting struct {
	From     string    `json:"from"`     // slug of the sender's project
	To       string    `json:"to"`       // slug of the other project
	Messages int       `json:"messages"` // number of messages
	Since    time.Time `json:"since"`    // when the oldest waiting message was sent
}

// WaitingIn summarizes the waiting messages in the given projects of the store at root, for each pair of projects. It
// does not read the files' contents, so it works without the store's key and while a server is running.
func WaitingIn(root string, slugs []string) (all []Waiting, err error) {
	for _, slug := range slugs {
		f := folderOf(root, slug, nil)
		names, ferr := f.listItems()
		err = errors.Join(err, ferr)
		by := map[string]*Waiting{}
		for _, file := range names {
			_, to, _ := strings.Cut(strings.TrimSuffix(file, ".json"), "-") // a server's ids contain no dash
			fi, ferr := os.Lstat(filepath.Join(f.dir, file))
			if ferr != nil { // the message has been delivered since the files were listed
				continue
			}
			w := by[to]
			if w == nil {
				w = &Waiting{From: slug, To: to, Since: fi.ModTime()}
				by[to] = w
			}
			if w.Messages++; fi.ModTime().Before(w.Since) {
				w.Since = fi.ModTime()
			}
		}
		for _, to := range slices.Sorted(maps.Keys(by)) {
			all = append(all, *by[to])
		}
	}
	return all, err
}

// Items returns the items of a project in the store at root. Programs other than the store's server may call Items,
// too. The argument key is the store's key.
func Items(root, slug string, key []byte) (all []Item, err error) {
	f := folderOf(root, slug, key)
	names, err := f.listItems()
	for _, file := range names {
		i, ierr := f.loadItem(file)
		if err = errors.Join(err, ierr); i != nil {
			all = append(all, *i)
		}
	}
	return all, err
}

// Rekey re-signs a project's items. from is the old key, and to is the new key.
func Rekey(root, slug string, from, to []byte) error {
	all, err := Items(root, slug, from)
	f := folderOf(root, slug, to)
	for i := range all {
		err = errors.Join(err, f.saveItem(&all[i]))
	}
	return err
}
