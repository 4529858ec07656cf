package watcher

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/fsnotify/fsnotify"
)

// TestRemoveWatch checks that removeWatch does not panic if a folder has replaced another one and fsnotify has not
// read the event yet.
func TestRemoveWatch(t *testing.T) {
	t.Parallel()
	fs, err := fsnotify.NewWatcher()
	if err != nil {
		t.Fatal(err)
	}
	defer fs.Close()
	dir := t.TempDir()
	one, two := filepath.Join(dir, "one"), filepath.Join(dir, "two")
	for _, err := range []error{
		os.Mkdir(one, 0o700), os.Mkdir(two, 0o700), fs.Add(one), fs.Add(two),
		os.Mkdir(filepath.Join(two, "event"), 0o700), // fsnotify blocks on this event, so it reads no later events
		os.Remove(one), os.Rename(two, one), fs.Add(one),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := removeWatch(fs, one); !errors.Is(err, fsnotify.ErrNonExistentWatch) {
		t.Error(err)
	}
}
