package maildir_test

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"mailtree/fixtures/storetest"
	"mailtree/maildir"
)

// TestRegisterInSession checks that if a session's model registers with the name of the session's agent, it gets that
// agent. Another program must get a different agent.
func TestRegisterInSession(t *testing.T) {
	t.Parallel()
	p, _ := sleeping(t, storetest.Config{})
	made, err := p.Agents.Register(t.Context(), maildir.Registration{Program: "Claude Code", Model: "m", NameHint: "Bob"})
	if err != nil || made.Name != "Bob" || made.Note == nil || !strings.Contains(made.Note.Error(), "You are already Bob") {
		t.Errorf("%+v, %v", made, err)
	}
	made, err = p.Agents.Register(t.Context(), maildir.Registration{Program: "codex-cli", Model: "m", NameHint: "Bob"})
	if err != nil || made.Name == "Bob" {
		t.Errorf("another program: %+v, %v", made, err)
	}
}

// TestNewAgentTwice checks that if several callers create an agent with the same name at the same time, exactly one
// of them succeeds.
func TestNewAgentTwice(t *testing.T) {
	t.Parallel()
	p := project(t, storetest.Config{})
	errs := make([]error, 8)
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() { errs[i] = p.Agents.NewAgent(t.Context(), "Ann", maildir.Registration{Program: "test"}) })
	}
	all.Wait()
	made := 0
	for _, err := range errs {
		if err == nil {
			made++
		} else if !errors.Is(err, maildir.ErrConflict) {
			t.Error(err)
		}
	}
	if made != 1 {
		t.Errorf("%d callers created the agent", made)
	}
}
