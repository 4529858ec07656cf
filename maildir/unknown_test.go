package maildir_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mailtree/fixtures/storetest"
	"mailtree/maildir"
)

// TestUnknownOfMany: of more agents than anybody reads, a refusal names the nearest alone; of all of
// them where somebody wants to write to all.
func TestUnknownOfMany(t *testing.T) {
	t.Parallel()
	names := []string{"GreenCastle"}
	for i := range 20 {
		names = append(names, fmt.Sprintf("worker%02d", i))
	}
	p := project(t, storetest.Config{}, names...)
	refused := func(to string) (e *maildir.Error) {
		t.Helper()
		_, err := p.Send(t.Context(), maildir.Draft{From: "GreenCastle", To: []string{to}, Body: "b"})
		if !errors.As(err, &e) {
			t.Fatalf("%s: %v", to, err)
		}
		return e
	}
	if e := refused("GreenCastel"); e.All != nil || !slices.Equal(e.Near, []string{"GreenCastle"}) {
		t.Errorf("near %q, all %q", e.Near, e.All)
	}
	if diff := cmp.Diff(names[1:], refused("All").Near); diff != "" {
		t.Error(diff)
	}
}

// TestAllIsAName: where an agent is called all, mail goes to it alone.
func TestAllIsAName(t *testing.T) {
	t.Parallel()
	p := project(t, storetest.Config{}, "Ann", "Bob", "all")
	if m := send(t, p, maildir.Draft{From: "Ann", To: []string{"all"}, Body: "b"}); !slices.Equal(m.To, []string{"all"}) {
		t.Errorf("sent to %q", m.To)
	}
}
