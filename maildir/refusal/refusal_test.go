package refusal

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// TestSay checks how facts and phrases are filled in, both for a log and for another reader.
func TestSay(t *testing.T) {
	tooLong := TooLarge("{field} is {count} bytes long, over the limit of {limit}: move text into the body.")
	unknownProject := NotFound("No project {name} {arg}. {near} {all projects} {make a project}")
	unknownAgent := NotFound("No agent {names} {arg} in project {=other}. {near} {in} {all agents} {make an agent}")
	reader := Words{
		Args:    map[Field]string{Project: "project_key", Subject: "subject"},
		Phrases: map[string]string{"make a project": "create_agent makes {name}."},
		Says:    map[What]string{UnknownHook: "Hook '{=name}' not found"},
	}
	unknown := &Error{
		What:  unknownProject,
		Field: Project,
		Name:  "a\nb",
		Near:  []string{"c", "d"},
	}
	long := &Error{What: tooLong, Field: Subject, Counts: []int{9}, Limit: 5}
	for _, tt := range []struct {
		err         error
		log, reader string
	}{
		{unknown, `No project "a\nb". Did you mean c or d?`, `No project "a\nb" (project_key). Did you mean c or d? create_agent makes "a\nb".`},
		{&Error{What: unknownProject, Name: "x"}, `No project "x".`, `No project "x". create_agent makes "x".`},
		{long, "The subject is 9 bytes long, over the limit of 5: move text into the body.", "subject is 9 bytes long, over the limit of 5: move text into the body."},
		{&Error{What: UnknownHook, Name: strings.Repeat("é", 60)}, `None of your mailboxes has a hook "` + strings.Repeat("é", 60) + `".`, "Hook '" + strings.Repeat("é", 40) + "…' not found"},
		{&Error{What: unknownAgent, Name: "a", More: []string{"b"}, Other: "p"}, `No agent "a", "b" in project p.`, `No agent "a", "b" in project p.`},
		{&Error{What: NothingWritten, Why: "the disk is full"}, "The disk is full; nothing was changed. See the server's log, then try again.", "The disk is full; nothing was changed. See the server's log, then try again."},
		{&Own{Kind: ErrInvalid, Text: "no {name}"}, "no {name}", "no {name}"},
	} {
		if got := tt.err.Error(); got != tt.log {
			t.Errorf("a log says %s\nwant %s", got, tt.log)
		}
		for _, err := range []error{tt.err, fmt.Errorf("op: %w", tt.err)} {
			if got := reader.Explain(err); got != tt.reader {
				t.Errorf("a reader gets %s\nwant %s", got, tt.reader)
			}
		}
	}
	both := errors.Join(&Error{What: Unavailable("The key is old.")}, &Error{What: Invalid("Line {count}: {cause}"), Counts: []int{3}, Err: &Error{What: UnknownHook, Name: "h"}})
	if got := reader.Explain(both); !strings.HasSuffix(got, "The key is old.\nLine 3: Hook 'h' not found") {
		t.Errorf("joined: %s", got)
	}
}

// TestKinds checks that errors.Is and Code use the kind of What, unless Kind is set, and that errors.Is finds the
// cause.
func TestKinds(t *testing.T) {
	cause := errors.New("cause")
	for _, tt := range []struct {
		err  error
		code string
	}{
		{nil, ""},
		{cause, "internal"},
		{&Error{What: NotFound(""), Err: cause}, "not_found"},
		{&Error{What: NotFound(""), Kind: ErrUnavailable, Err: cause}, "unavailable"},
		{&Error{What: Note(""), Err: cause}, "internal"},
		{&Own{Kind: ErrDenied, Err: cause}, "denied"},
	} {
		if got := Code(tt.err); got != tt.code {
			t.Errorf("%v is %s, want %s", tt.err, got, tt.code)
		}
		if tt.err != nil && !errors.Is(tt.err, cause) {
			t.Errorf("%v has lost its cause", tt.err)
		}
	}
}
