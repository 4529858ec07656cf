package registry_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"mailtree/maildir/registry"
	"mailtree/maildir/tree"
)

// counter is a File whose content is a number. It counts how often the File was parsed.
type counter struct {
	*registry.File[int]
	path   string
	parsed int // used by one goroutine
}

func newCounter(t *testing.T) *counter {
	t.Helper()
	c := &counter{path: filepath.Join(t.TempDir(), "number")}
	c.File = registry.New(c.path, registry.Format[int]{
		Limit: 100,
		Parse: func(data []byte, _ tree.FileStat) (int, error) {
			c.parsed++
			if data == nil {
				return 0, nil
			}
			return strconv.Atoi(string(data))
		},
		Print:  func(n int) ([]byte, error) { return fmt.Append(nil, n), nil },
		Refuse: func(err error) error { return fmt.Errorf("refused: %w", err) },
	})
	return c
}

func (c *counter) put(t *testing.T, text string) {
	t.Helper()
	if err := os.WriteFile(c.path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestLoad checks that Load notices any change that a user makes to the file, even if the file's size stays the same.
func TestLoad(t *testing.T) {
	t.Parallel()
	c := newCounter(t)
	if n, err := c.Load(); n != 0 || err != nil {
		t.Errorf("without a file: %d, %v", n, err)
	}
	for want := 100; want < 300; want++ {
		c.put(t, strconv.Itoa(want))
		if n, err := c.Load(); n != want || err != nil {
			t.Fatalf("%d, %v, want %d", n, err, want)
		}
	}
	c.put(t, "damaged")
	if n, err := c.Load(); n != 299 || err == nil || strings.Contains(err.Error(), "refused") {
		t.Errorf("for a damaged file: %d, %v", n, err)
	}
	if err := os.Remove(c.path); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(c.path, 0o700); err != nil {
		t.Fatal(err)
	}
	var bad *tree.FormatError
	if n, err := c.Load(); n != 299 || !errors.As(err, &bad) || !strings.HasPrefix(err.Error(), "refused: ") {
		t.Errorf("for a folder: %d, %v", n, err)
	}
	if err := os.Remove(c.path); err != nil {
		t.Fatal(err)
	}
	if n, err := c.Load(); n != 0 || err != nil {
		t.Errorf("for a removed file: %d, %v", n, err)
	}
}

// TestLoadAgain checks that an unchanged or missing file is read only once.
func TestLoadAgain(t *testing.T) {
	t.Parallel()
	c := newCounter(t)
	again := func() bool {
		before := c.parsed
		if _, err := c.Load(); err != nil {
			t.Fatal(err)
		}
		return c.parsed > before
	}
	if !again() || again() {
		t.Errorf("a missing file was parsed %d times", c.parsed)
	}
	c.put(t, "1")
	if !again() {
		t.Error("a new file was not parsed")
	}
	for end := time.Now().Add(time.Minute); again(); { // a recently changed file is parsed every time
		if time.Now().After(end) {
			t.Fatalf("the file was parsed every time, %d times in all", c.parsed)
		}
	}
	if c.put(t, "2"); !again() {
		t.Error("a changed file was not parsed")
	}
}

// TestLoadRacy checks that a file that has just been changed is read again, because another change in the same tick of
// the kernel's clock would leave the same stamp.
func TestLoadRacy(t *testing.T) {
	t.Parallel()
	c := newCounter(t)
	c.put(t, "1")
	fi, err := os.Stat(c.path)
	if err != nil {
		t.Fatal(err)
	}
	changed := time.Unix(0, tree.StatOfInfo(fi).CTime)
	for _, tt := range []struct {
		after time.Duration // time since the change
		want  int           // how many times two Loads parse the file
	}{{0, 2}, {tree.Racy, 2}, {tree.Racy + 1, 1}} {
		c.SetNow(func() time.Time { return changed.Add(tt.after) })
		before := c.parsed
		for range 2 {
			if _, err := c.Load(); err != nil {
				t.Fatal(err)
			}
		}
		if got := c.parsed - before; got != tt.want {
			t.Errorf("%s after the change, the file is parsed %d times, want %d", tt.after, got, tt.want)
		}
	}
}

// TestChange checks that no change is lost if several callers change the file at the same time, and that unchanged
// content is not written.
func TestChange(t *testing.T) {
	t.Parallel()
	c := newCounter(t)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if err := c.Change(func(n int) (int, error) { return n + 1, nil }); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n, err := c.Load(); n != 8 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	c.put(t, "08")
	if err := c.Change(func(n int) (int, error) { return n, nil }); err != nil {
		t.Error(err)
	}
	if data, err := os.ReadFile(c.path); string(data) != "08" || err != nil {
		t.Errorf("%s, %v", data, err)
	}
	no := errors.New("no")
	if err := c.Change(func(int) (int, error) { return 9, no }); err != no {
		t.Error(err)
	}
	c.put(t, "damaged")
	if err := c.Change(func(int) (int, error) { t.Error("edited"); return 0, nil }); err == nil {
		t.Error("no error")
	}
}
