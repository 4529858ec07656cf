package maildir_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"mailtree/fixtures/storetest"
	"mailtree/maildir"
	"mailtree/maildir/format"
)

// mount mounts a small file system for the test. It skips the test if the process lacks permission to mount.
func mount(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=6m"); err != nil {
		t.Skipf("needs the right to mount a tmpfs: %v", err)
	}
	t.Cleanup(func() {
		// A child process that another test has forked keeps this process's descriptors open until it calls exec.
		until(t, "unmounted", func() bool { return !errors.Is(unix.Unmount(dir, 0), unix.EBUSY) })
	})
	return dir
}

// TestFullDisk checks that a send on a full disk fails with a clear error and leaves no files behind. Reading must
// still work. Once space is available again, everything must work, and no file may be incomplete.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	dir := mount(t)
	p := project(t, storetest.Config{Root: filepath.Join(dir, "store")}, "Ann", "Bob")
	send(t, p, "Ann", maildir.Draft{To: []string{"Bob"}, Subject: "kept", Body: "b"})
	if err := p.FlushHistory(t.Context()); err != nil {
		t.Fatal(err)
	}
	filler := filepath.Join(dir, "filler")
	fill(t, filler)
	body := strings.Repeat("x", 200_000)
	_, err := p.Box("Ann", format.Origin{}).Send(t.Context(), maildir.Draft{To: []string{"Bob"}, Subject: "lost", Body: body})
	if !errors.Is(err, maildir.ErrUnavailable) || !strings.Contains(err.Error(), "disk is full") {
		t.Fatalf("got %v", err)
	}
	if page := inbox(t, p, "Bob"); page.Total != 1 || page.Messages[0].Subject != "kept" {
		t.Errorf("%+v", page)
	}
	// Removing the file would not free its space if a child process that another test has forked has the file open.
	if err := os.Truncate(filler, 0); err != nil {
		t.Fatal(err)
	}
	send(t, p, "Ann", maildir.Draft{To: []string{"Bob"}, Subject: "after", Body: body})
	if page := inbox(t, p, "Bob"); page.Total != 2 || page.Messages[0].Subject != "after" {
		t.Errorf("%+v", page)
	}
}

func fill(t *testing.T, name string) {
	t.Helper()
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := io.Copy(f, zeros{}); !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("the disk did not fill: %v", err)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }
