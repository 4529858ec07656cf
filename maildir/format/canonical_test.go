package format

import (
	"bytes"
	"strings"
	"testing"
)

// TestCanonical checks that Canonical does not change the meaning of a file, and that a second call changes nothing.
func TestCanonical(t *testing.T) {
	t.Parallel()
	const plain = "---json\n{\"created\":\"2025-01-02T04:04:05+01:00\", \"x\": {\"a\": [1,  2]},\n\"to\":[\"B\"],\n\n\"from\":\"A\",\"id\":\"m\"}\n---\n# Hi\n\ntext"
	const want = `---json
{
  "id": "m",
  "from": "A",
  "to": ["B"],
  "cc": [],
  "subject": "Hi",
  "created": "2025-01-02T03:04:05.000000Z",
  "importance": "normal",
  "ack_required": false,
  "attachments": [],
  "x": {"a": [1,  2]}
}
---

# Hi

text
`
	for name, file := range map[string]string{
		"by hand":         plain,
		"byte order mark": "\xef\xbb\xbf" + plain,
		"CRLF":            strings.ReplaceAll(plain, "\n", "\r\n"),
		"already":         want,
	} {
		got, err := Canonical("m", []byte(file))
		if err != nil || string(got) != want {
			t.Errorf("%s: %v\n%s", name, err, got)
		}
	}
	was, _ := ParseMessage("m", []byte(plain))
	is, _ := ParseMessage("m", []byte(want))
	if !bytes.Equal(FormatMessage(was), FormatMessage(is)) {
		t.Errorf("%+v became %+v", was, is)
	}
}

// TestCanonicalWhole checks that files written by the server are already in canonical form, no matter which keys they
// have.
func TestCanonicalWhole(t *testing.T) {
	t.Parallel()
	m := fromElsewhere()
	m.BCC = []string{"RedStone"}
	want := FormatMessage(m)
	if got, err := Canonical(m.ID, want); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%v\n%s", err, got)
	}
}

// TestCanonicalLeaves checks that Canonical leaves a file unchanged if rewriting would remove the file's seal or a
// key, or if the file is not a message.
func TestCanonicalLeaves(t *testing.T) {
	t.Parallel()
	const head = `{"id":"m","from":"A","created":"2025-01-02T03:04:05Z",`
	for name, rest := range map[string]string{
		"sealed":         `"seal":"a:b"}`,
		"an unknown key": `"attachments":[{"type":"file","path":"attachments/x","colour":"red"}]}`,
	} {
		file := []byte("---json\n" + head + rest + "\n---\ntext\n")
		if got, err := Canonical("m", file); err != nil || !bytes.Equal(got, file) {
			t.Errorf("%s: %v\n%s", name, err, got)
		}
	}
	if _, err := Canonical("m", []byte("---\nid: m\n---\n")); err == nil {
		t.Error("YAML was accepted")
	}
}
