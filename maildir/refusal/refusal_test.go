package refusal

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
)

var keys = regexp.MustCompile(`\{([^}]*)\}`)

// TestSentences: each refusal has a sentence, which has only keys that mean something, and in a log
// nothing stays open.
func TestSentences(t *testing.T) {
	if open := (&Words{Phrases: phrases}).Missing(); len(open) > 0 {
		t.Errorf("no words for %q", open)
	}
	for _, what := range All() {
		text := sentences[what].text
		for _, key := range keys.FindAllStringSubmatch(text, -1) {
			_, isFact := (&Words{}).fact(key[1], &Error{Err: errors.New("x")})
			if _, isPhrase := phrases[key[1]]; !isFact && !isPhrase {
				t.Errorf("%q: nothing stands for {%s}", text, key[1])
			}
		}
		said := (&Error{What: what, Name: "name", Why: "why", Err: errors.New("cause.")}).Error()
		if said == "" || strings.ContainsAny(said, "{}") || strings.Contains(said, "  ") {
			t.Errorf("%q is said as %q", text, said)
		}
	}
}

// TestSay: facts and phrases, in the words of a log and of a reader.
func TestSay(t *testing.T) {
	reader := Words{
		Args:    map[Field]string{Project: "project_key", Subject: "subject"},
		Phrases: map[string]string{"make a project": "create_agent makes {name}."},
		Says:    map[What]string{UnknownHook: "Hook '{=name}' not found"},
	}
	unknown := &Error{
		What:  UnknownProject,
		Field: Project,
		Name:  "a\nb",
		Near:  []string{"c", "d"},
	}
	long := &Error{What: SubjectTooLong, Field: Subject, Counts: []int{9}, Limit: 5}
	for _, tt := range []struct {
		err         error
		log, reader string
	}{
		{unknown, `No project "a\nb". Did you mean c or d?`, `No project "a\nb" (project_key). Did you mean c or d? create_agent makes "a\nb".`},
		{&Error{What: UnknownProject, Name: "x"}, `No project "x".`, `No project "x". create_agent makes "x".`},
		{long, "The subject has 9 bytes, over the limit of 5: put the rest into the body.", "subject has 9 bytes, over the limit of 5: put the rest into the body."},
		{&Error{What: UnknownHook, Name: strings.Repeat("é", 60)}, `No hook "` + strings.Repeat("é", 60) + `" on a mailbox of yours.`, "Hook '" + strings.Repeat("é", 40) + "…' not found"},
		{&Error{What: UnknownAgent, Name: "a", More: []string{"b"}, Other: "p"}, `No agent "a", "b" in project p.`, `No agent "a", "b" in project p.`},
		{&Error{What: NothingWritten, Why: "the disk is full"}, "The disk is full; nothing was changed. See the server's log, then try again.", "The disk is full; nothing was changed. See the server's log, then try again."},
		{&Own{Kind: ErrInvalid, Text: "no {name}"}, "no {name}", "no {name}"},
	} {
		if got := tt.err.Error(); got != tt.log {
			t.Errorf("a log says %s\nwant %s", got, tt.log)
		}
		for _, err := range []error{tt.err, fmt.Errorf("op: %w", tt.err)} {
			if got := reader.Explain(err); got != tt.reader {
				t.Errorf("a reader is told %s\nwant %s", got, tt.reader)
			}
		}
	}
	both := errors.Join(&Error{What: KeyOld}, &Error{What: TrustedLineUnusable, Counts: []int{3}, Err: &Error{What: UnknownHook, Name: "h"}})
	if got := reader.Explain(both); !strings.HasSuffix(got, "makes a new one.\nThe store's trusted_keys, line 3: Hook 'h' not found") {
		t.Errorf("joined: %s", got)
	}
}

// TestKinds: errors.Is and Code tell the kind of the table, or the one that is set, and the cause.
func TestKinds(t *testing.T) {
	cause := errors.New("cause")
	for _, tt := range []struct {
		err  error
		code string
	}{
		{nil, ""},
		{cause, "internal"},
		{&Error{What: UnknownAgent, Err: cause}, "not_found"},
		{&Error{What: UnknownAgent, Kind: ErrUnavailable, Err: cause}, "unavailable"},
		{&Error{What: HintTaken, Err: cause}, "internal"},
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
