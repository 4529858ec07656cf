package event

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

var update = flag.Bool("update", false, "rewrite the files in fixtures/hooks")

// TestHooks checks that the clients' input is parsed and answered as in fixtures/hooks. The README.md file there
// explains the form of a case.
func TestHooks(t *testing.T) {
	t.Parallel()
	for name := range clients {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join("../../fixtures/hooks", name+".txtar")
			want, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := &txtar.Archive{Comment: want.Comment, Files: replay(t, name, want.Files)}
			if *update {
				if err := os.WriteFile(file, txtar.Format(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if d := cmp.Diff(string(txtar.Format(want)), string(txtar.Format(got))); d != "" {
				t.Error(d)
			}
		})
	}
}

// replay runs the cases of one client. It returns the given inputs, each with its actual results.
func replay(t *testing.T, client string, given []txtar.File) (all []txtar.File) {
	var e Event
	for _, f := range given {
		switch f.Name {
		case "stdin":
			var err error
			if e, err = Parse(client, f.Data, func(string) string { return "" }); err != nil {
				t.Fatalf("%s: %v", f.Data, err)
			}
			all = append(all, f, txtar.File{Name: "event", Data: lines(e)})
		case "answer":
			var a Answer
			for line := range strings.Lines(string(f.Data)) {
				name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
				reflect.ValueOf(&a).Elem().FieldByName(name).SetString(value)
			}
			stdout, stderr, exit := a.Format(e)
			if len(stderr) > 0 || exit != 0 {
				stdout = fmt.Appendf(stdout, "stderr: %sexit: %d\n", stderr, exit)
			}
			all = append(all, f, txtar.File{Name: "stdout", Data: stdout})
		}
	}
	return all
}

// lines formats the fields of an event that are not empty, one per line.
func lines(e Event) (text []byte) {
	v := reflect.ValueOf(e)
	for i := range v.NumField() {
		if !v.Field(i).IsZero() {
			text = fmt.Appendf(text, "%s: %v\n", v.Type().Field(i).Name, v.Field(i))
		}
	}
	return text
}

// TestParseRefuses checks that Parse returns an error for input that is not a client's event, and treats a field with
// an unexpected type as absent.
func TestParseRefuses(t *testing.T) {
	t.Parallel()
	none := func(string) string { return "" }
	for _, c := range []struct{ client, stdin string }{
		{"nobody", "{}"},
		{"claude", ""},
		{"claude", "[]"},
		{"claude", "not JSON"},
	} {
		if e, err := Parse(c.client, []byte(c.stdin), none); err == nil {
			t.Errorf("%s %q: got %+v", c.client, c.stdin, e)
		}
	}
	e, err := Parse("claude", []byte(`{"hook_event_name":"Stop","model":{"id":"m"},"session_id":"s"}`), none)
	if err != nil || e.Kind != Stop || e.Session != "s" || e.Model != "" {
		t.Errorf("got %+v, %v", e, err)
	}
}

// TestParseForeign checks that a hook for Claude Code ignores events from Copilot CLI, which runs that hook too. The
// hook must not ignore events from Claude Code, even if Claude Code was started by Copilot.
func TestParseForeign(t *testing.T) {
	t.Parallel()
	env := func(name string) string { return map[string]string{"COPILOT_PROJECT_DIR": "/code"}[name] }
	const edit = `{"hook_event_name":"PreToolUse","session_id":"s","cwd":"/code","tool_name":"Edit","tool_input":{"file_path":"/code/a.py"}`
	for stdin, want := range map[string]Kind{
		edit + `}`: Edit,
		edit + `,"timestamp":"2026-11-27T21:31:21.925Z"}`: "",
	} {
		if e, err := Parse("claude", []byte(stdin), env); err != nil || e.Kind != want {
			t.Errorf("%s: %+v, %v", stdin, e, err)
		}
	}
}

// TestEdited checks which events report edits, and that their paths are absolute.
func TestEdited(t *testing.T) {
	for name, want := range map[string][]string{
		"PreToolUse":         nil,
		"PostToolUse":        {"/code/sub/a.go"},
		"PostToolUseFailure": nil,
	} {
		stdin := fmt.Sprintf(`{"session_id":"s","cwd":"/code/sub","hook_event_name":%q,"tool_name":"write_file","tool_input":{"file_path":"a.go"}}`, name)
		e, err := Parse("qwen", []byte(stdin), func(string) string { return "" })
		if got := e.Edited(); err != nil || e.Name != name || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %+v, %v", name, got, e, err)
		}
	}
}
