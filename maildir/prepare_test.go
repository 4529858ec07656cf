package maildir_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"mailtree/fixtures/storetest"
	"mailtree/maildir"
	"mailtree/maildir/format"
)

// TestRecipientsOnce checks that a recipient listed several times is counted only once and refused only once. If there
// are too many recipients, the message must be refused before any recipient is looked up.
func TestRecipientsOnce(t *testing.T) {
	t.Parallel()
	p := project(t, storetest.Config{}, "Ann", "Bob")
	box := p.Box("Ann", format.Origin{})
	often := slices.Repeat([]string{"Nobody", " Nobody "}, 500_000)
	_, err := box.Prepare(t.Context(), "", maildir.Draft{To: often, CC: often, Subject: "s"})
	if !errors.Is(err, maildir.ErrNotFound) || strings.Count(err.Error(), "Nobody") != 1 {
		t.Errorf("one unknown recipient a million times: %.200v", err)
	}
	d, err := box.Prepare(t.Context(), "", maildir.Draft{To: []string{"Bob", "Bob"}, CC: []string{"Bob"}, Subject: "s"})
	if err != nil || !slices.Equal(d.To, []string{"Bob"}) || len(d.CC) > 0 {
		t.Errorf("%+v, %v", d, err)
	}
	var many []string
	for i := range format.MaxRecipients + 1 {
		many = append(many, fmt.Sprint("Nobody", i))
	}
	if _, err := box.Prepare(t.Context(), "", maildir.Draft{To: many, Subject: "s"}); !errors.Is(err, maildir.ErrTooLarge) {
		t.Errorf("too many recipients: %.200v", err)
	}
}
