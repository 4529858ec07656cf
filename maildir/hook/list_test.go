package hook

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mailtree/maildir/refusal"
	"mailtree/maildir/registry"
)

// TestFullList checks that Create does not change a hooks.json that has reached its maximum size.
func TestFullList(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	file := filepath.Join(root, ListFile)
	text := `[{"cmd": ["/` + strings.Repeat("a", registry.MaxJSON-100) + `"]}]`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := NewList(root).Create(Hook{Name: "more"}, func(*Hook) bool { return true })
	if !errors.Is(err, refusal.ErrTooLarge) {
		t.Error(err)
	}
	if data, err := os.ReadFile(file); err != nil || string(data) != text {
		t.Errorf("%d bytes, %v", len(data), err)
	}
}

// TestDeleteOfSeveral checks that, if several hooks have the same name, Delete deletes the preferred hook, or no hook
// if none is preferred.
func TestDeleteOfSeveral(t *testing.T) {
	t.Parallel()
	l := NewList(t.TempDir())
	for _, mailbox := range []string{"ann", "bob"} {
		h := Hook{
			Mailbox: mailbox,
			Name:    "wake",
			Event:   OnReceive,
			Cmd:     []string{"/bin/true"},
			Timeout: 1,
			Created: time.Unix(1, 0).UTC(),
		}
		if _, err := l.Create(h, func(o *Hook) bool { return o.Mailbox == mailbox }); err != nil {
			t.Fatal(err)
		}
	}
	every := func(*Hook) bool { return true }
	of := func(mailbox string) func(*Hook) bool { return func(h *Hook) bool { return h.Mailbox == mailbox } }
	if err := l.Delete("wake", every, of("cat")); !errors.Is(err, refusal.ErrConflict) {
		t.Errorf("deleting one of two: %v", err)
	}
	if err := l.Delete("wake", every, of("bob")); err != nil {
		t.Error(err)
	}
	if left, err := l.Select(every); err != nil || len(left) != 1 || left[0].Mailbox != "ann" {
		t.Errorf("left: %+v, %v", left, err)
	}
	if err := l.Delete("wake", of("bob"), every); !errors.Is(err, refusal.ErrNotFound) {
		t.Errorf("deleting a hook that is gone: %v", err)
	}
}
