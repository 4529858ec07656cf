package maildir_test

import (
	"testing"

	"mailtree/fixtures/storetest"
	"mailtree/maildir"
	"mailtree/maildir/format"
)

// TestProjectOfInboxCheck checks that if two projects have an agent with the same name, the name without a project
// refers to the project in which the agent last checked its inbox.
func TestProjectOfInboxCheck(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, storetest.Config{}).Store
	first := projectIn(t, s, "Ann")
	second, err := s.EnsureProject(t.Context(), "/abs/second")
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Agents.EnsureAgent(t.Context(), "Ann", maildir.Registration{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []*maildir.Project{first, second, first} {
		inbox(t, want, "Ann")
		if p, err := s.ProjectOf(t.Context(), format.KindProfile, "Ann"); err != nil || p != want {
			t.Errorf("after an inbox check in %s: %v, %v", want.Slug, p, err)
		}
	}
}
