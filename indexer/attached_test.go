package indexer

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mailtree/maildir/format"
)

// TestAttached checks that Attached returns an agent if the agent has a copy of a message that lists the attachment,
// and no longer does so after the copy is removed.
func TestAttached(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	sum, other := strings.Repeat("ab", 20), strings.Repeat("cd", 20)
	attached := func(sum string) []format.Attachment {
		return []format.Attachment{{Type: "file", MediaType: "text/plain", Path: format.AttachmentPath(sum, ".txt"), Bytes: 1, SHA1: sum}}
	}
	d.send(format.Message{ID: "m1", From: "Ann", To: []string{"Bob"}, Subject: "s", Body: "the text names " + other, Attachments: attached(sum)})
	d.send(format.Message{ID: "m2", From: "Ann", To: []string{"Cid"}, Subject: "s", Body: sum})
	check := func(sum string, want ...string) {
		t.Helper()
		if got, err := d.Attached(t.Context(), "p", sum); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v, %v; want %v", sum, got, err, want)
		}
	}
	check(sum, "Ann", "Bob")
	check(strings.ToUpper(sum), "Ann", "Bob")
	check(other)
	check("")
	const copied = "agents/Bob/inbox/m1.md"
	if err := os.Remove(filepath.Join(d.dir, copied)); err != nil {
		t.Fatal(err)
	}
	ingest(t, d.Index, "p", copied)
	check(sum, "Ann")
	if got, err := d.Attached(t.Context(), "q", sum); err != nil || len(got) > 0 {
		t.Errorf("agents found in another project: %v, %v", got, err)
	}
}
