// Package installed keeps a list of everything that mailtree has written outside its store, so that `mailtree
// uninstall` can remove it. The list is the file storedir.InstalledFile in the store, with one JSON entry per line. The
// list may contain entries for things that no longer exist, because users can remove these things without mailtree.
package installed

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"mailtree/maildir/storedir"
	"mailtree/maildir/tree"
)

const maxFile = 16 << 20 // bytes

// Kind is the kind of thing that an Entry describes.
type Kind string

// The kinds of entries.
const (
	Client  Kind = "client"  // mailtree's entry, hooks or lines in the configuration of the client Entry.Client
	Guard   Kind = "guard"   // the guard's hooks in the repository in Dir
	Plugins Kind = "plugins" // the clients' plugins in the folder Dir
)

// Entry describes something that mailtree has written.
type Entry struct {
	Kind   Kind              `json:"kind"`
	Dir    string            `json:"dir,omitempty"`    // absolute path of the code base; empty for the user's own files
	Client string            `json:"client,omitempty"` // the client's name
	Env    map[string]string `json:"env,omitempty"`    // variables that determined the paths of the client's files
}

// Note adds an entry to the list unless the list already contains the entry. Call it before the entry's files are
// written. If the store does not exist yet, Note does nothing, because only a server creates a store. Several processes
// may call Note at the same time. Errors contain the path of the file.
func Note(store string, e Entry) error {
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	if fi, err := os.Stat(store); err != nil || !fi.IsDir() {
		return nil
	}
	f, _, err := tree.OpenPlain(filepath.Join(store, storedir.InstalledFile), os.O_RDWR|os.O_CREATE|os.O_APPEND)
	if err != nil {
		return cannotWrite(store, err)
	}
	defer f.Close()
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		return cannotWrite(store, err)
	}
	data, _, err := tree.ReadPlain(f.Name(), maxFile)
	if err != nil {
		return cannotWrite(store, err)
	}
	for known := range bytes.Lines(data) {
		if bytes.Equal(bytes.TrimSpace(known), line) {
			return nil
		}
	}
	if len(data) > 0 && data[len(data)-1] != '\n' { // an earlier line was cut off
		line = append([]byte{'\n'}, line...)
	}
	if _, err = f.Write(append(line, '\n')); err == nil {
		err = f.Sync()
	}
	return cannotWrite(store, errors.Join(err, f.Close()))
}

func cannotWrite(store string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("cannot write %s, the list of files that mailtree has installed: %w", filepath.Join(store, storedir.InstalledFile), err)
}

// Read returns the entries, oldest first. It skips lines that are not valid entries. It returns an error if it cannot
// read the list. If there is no list, it returns no entries and no error.
func Read(store string) (all []Entry, err error) {
	data, _, err := tree.ReadPlain(filepath.Join(store, storedir.InstalledFile), maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for line := range bytes.Lines(data) {
		var e Entry
		if json.Unmarshal(line, &e) == nil && e.Kind != "" {
			all = append(all, e)
		}
	}
	return all, err
}

// Add copies the entries from the list of another store to the list of store. It returns errors from Read and Note.
func Add(store, other string) error {
	all, err := Read(other)
	for _, e := range all {
		err = errors.Join(err, Note(store, e))
	}
	return err
}

// Forget removes the list. A missing list is not an error.
func Forget(store string) error {
	if err := os.Remove(filepath.Join(store, storedir.InstalledFile)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
