package event

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

const patch = "*** Begin Patch\n*** Add File: new file.txt\n+*** Add File: no.txt\n*** Update File: a.txt\n*** Move to: b/a.txt\n" +
	"@@\n-hi\n+ho\n*** Delete File: /abs/old.txt\r\n*** End Patch\n"

// TestFiles checks that the files that a tool changes are found in the tool's arguments.
func TestFiles(t *testing.T) {
	t.Parallel()
	text := func(s string) string {
		b, _ := json.Marshal(s)
		return string(b)
	}
	all := []string{"new file.txt", "a.txt", "b/a.txt", "/abs/old.txt"}
	for _, c := range []struct {
		arguments string
		want      []string
	}{
		{`{"file_path": "/code/a.go", "old_string": "a", "new_string": "b"}`, []string{"/code/a.go"}},
		{`{"notebook_path": "/code/a.ipynb"}`, []string{"/code/a.ipynb"}},
		{`{"filePath": "/code/a.go", "content": "*** Add File: no.txt"}`, []string{"/code/a.go"}},
		{`{"path": "/code/a.go", "file_path": "/code/a.go"}`, []string{"/code/a.go"}},
		{`{"command": ` + text(patch) + `}`, all},
		{`{"patchText": ` + text(patch) + `}`, all},
		{text(patch), all},
		{text(`{"path": "/code/a.go", "new_str": "*** Add File: no.txt"}`), []string{"/code/a.go"}},
		{`"ls"`, nil},
		{`["a.txt"]`, nil},
		{`null`, nil},
		{`{"path": 7, "command": ["ls"]}`, nil},
		{`{}`, nil},
	} {
		var in input
		if err := json.Unmarshal([]byte(c.arguments), &in); err != nil {
			t.Fatal(err)
		}
		if got := in.files(); fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s: got %q, want %q", c.arguments, got, c.want)
		}
	}
}

// TestShellPatched checks that files are found in a shell command only if the command does nothing but apply a patch.
func TestShellPatched(t *testing.T) {
	t.Parallel()
	here := "apply_patch <<'EOF'\n" + patch + "EOF\n"
	for command, want := range map[string]string{
		here:                                  "new file.txt|a.txt|b/a.txt|/abs/old.txt",
		"  cd lib && " + here:                 "lib/new file.txt|lib/a.txt|lib/b/a.txt|/abs/old.txt",
		`cd "a lib"  &&` + here:               "a lib/new file.txt|a lib/a.txt|a lib/b/a.txt|/abs/old.txt",
		"applypatch <<EOF\n" + patch + "EOF":  "new file.txt|a.txt|b/a.txt|/abs/old.txt",
		"cat >notes <<'EOF'\n" + here + "EOF": "",
		"echo apply_patch":                    "",
		"apply_patch --help":                  "",
		"":                                    "",
	} {
		if got := strings.Join(shellPatched(command), "|"); got != want {
			t.Errorf("%q: got %q, want %q", command, got, want)
		}
	}
}
