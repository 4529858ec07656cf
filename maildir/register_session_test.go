package maildir_test

import (
	"strings"
	"testing"

	"mailtree/fixtures/storetest"
	"mailtree/maildir"
)

// TestRegisterInSession: the model of a session that registers under its own name is the session's
// agent; another program gets another one.
func TestRegisterInSession(t *testing.T) {
	t.Parallel()
	p, _ := sleeping(t, storetest.Config{})
	made, err := p.Agents.Register(t.Context(), maildir.Registration{Program: "Claude Code", Model: "m", NameHint: "Bob"})
	if err != nil || made.Name != "Bob" || made.Note == nil || !strings.Contains(made.Note.Error(), "You are Bob already") {
		t.Errorf("%+v, %v", made, err)
	}
	made, err = p.Agents.Register(t.Context(), maildir.Registration{Program: "codex-cli", Model: "m", NameHint: "Bob"})
	if err != nil || made.Name == "Bob" {
		t.Errorf("another program: %+v, %v", made, err)
	}
}
