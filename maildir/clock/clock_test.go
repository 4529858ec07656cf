package clock

import (
	"crypto/rand"
	"strings"
	"testing"
	"time"

	"mailtree/maildir/format"
)

// TestStamp checks that ids and times strictly increase, even if the clock stops or is set back a little. If the clock
// is set back further, ids and times must follow it and increase from there. No id may ever repeat.
func TestStamp(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 20, 23, 59, 59, 999_000_000, time.UTC)
	c := New(func() time.Time { return at }, strings.NewReader(strings.Repeat("\xff\xf0\x01random!", 20000)))
	var lastID string
	var last time.Time
	ids := map[string]bool{}
	for i := range 12000 {
		follows := false
		switch i {
		case 3000:
			at = at.Add(time.Second - setBack)
		case 6000:
			at, follows = at.Add(-48*time.Hour), true
		case 9000:
			at, follows = at.Add(-2*setBack), true // the date stays the same
		}
		id, created, err := c.Stamp()
		if err != nil {
			t.Fatal(err)
		}
		if follows && !created.Equal(at) {
			t.Fatalf("%d: the clock says %s, but %s was created at %s", i, at, id, created)
		}
		if !follows && (id <= lastID || !created.After(last)) || ids[id] || !format.ValidID(id) {
			t.Fatalf("%d: %s after %s, %s after %s", i, id, lastID, created, last)
		}
		lastID, last, ids[id] = id, created, true
	}
}

// TestFindID checks that FindID finds an id created by Stamp in every form in which users write it.
func TestFindID(t *testing.T) {
	id, _, err := New(time.Now, rand.Reader).Stamp()
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		id: id, "#" + id: id, "resource://message/" + id: id, strings.ToUpper(id): id, "/store/messages/" + id + ".md": id,
		"": "", "plan": "", id[:len(id)-1]: "",
	} {
		if got := FindID(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
