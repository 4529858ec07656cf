package storedir

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mailtree/maildir/refusal"
)

// TestFormat checks that a store records its format, and that a store from a newer version is not opened. A store from
// a newer version must not be changed, and its lock must be released.
func TestFormat(t *testing.T) {
	t.Parallel()
	root := filepath.Join(t.TempDir(), "store")
	file := filepath.Join(root, formatFile)
	take := func() error {
		t.Helper()
		l, err := Take(root)
		if err == nil {
			err = l.Release()
		}
		return err
	}
	if err := take(); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(file); err != nil || string(data) != "1\n" {
		t.Errorf("%q, %v", data, err)
	}
	for text, want := range map[string]string{
		"2\n": "The store has format 2, and this version supports formats up to 1. Install the newer version.", "new": "it does not contain a positive number",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := take(); !errors.Is(err, refusal.ErrUnavailable) || !strings.Contains(err.Error(), want) {
				t.Errorf("%q: %v", text, err)
			}
		}
		if err := CheckFormat(root); err == nil {
			t.Errorf("%q is accepted", text)
		}
		if data, err := os.ReadFile(file); err != nil || string(data) != text {
			t.Errorf("%q became %q, %v", text, data, err)
		}
	}
}
