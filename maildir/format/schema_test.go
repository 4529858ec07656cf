package format

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"
)

// TestSchema checks that docs/reference/message.schema.json describes exactly the known keys. It must accept the
// headers that FormatMessage writes, and reject a few mistakes that ParseMessage also rejects.
func TestSchema(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../../docs/reference/message.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var schema jsonschema.Schema
	if err := json.Unmarshal(data, &schema); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(slices.Sorted(slices.Values(Keys())), slices.Sorted(maps.Keys(schema.Properties))); d != "" {
		t.Errorf("the known keys (-) and the schema's (+) differ:\n%s", d)
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	valid := func(file []byte) error {
		header, _, err := SplitMessage(file)
		if err != nil {
			return err
		}
		var value any
		if err := json.Unmarshal(header, &value); err != nil {
			return err
		}
		return resolved.Validate(value)
	}
	_, key := keyPair(t)
	for _, m := range []*Message{sample(), fromElsewhere()} {
		if err := valid(Seal(key, FormatMessage(m))); err != nil {
			t.Errorf("the schema refuses a valid header: %v", err)
		}
	}
	good := string(FormatMessage(sample()))
	for _, c := range [][2]string{
		{`"from": "GreenCastle",`, ""},
		{`"from": "GreenCastle"`, `"from": "a@b@c"`},
		{`"id": "msg_20251023_3a51c0f7b3dc3a7e",`, ""},
		{`"created": "2025-10-23T15:22:14.123456Z",`, ""},
		{`["BlueLake"]`, `"BlueLake"`},
		{`["BlueLake"]`, `[null]`},
		{`"TKT-123"`, `123`},
		{`"TKT-123"`, `null`},
		{`"high"`, `"huge"`},
		{`"cc": []`, `"cc": [], "message_id": "<1@example.org>"`},
		{`"cc": []`, `"cc": [], "door": "window"`},
		{`"auth": "none"`, `"auth": "uid:1000 (person)"`},
		{`"ack_required": true`, `"ack_required": "yes"`},
		{`"subject": "`, `"subject": "` + strings.Repeat("x", MaxSubject)},
	} {
		file := []byte(strings.Replace(good, c[0], c[1], 1))
		if string(file) == good {
			t.Fatalf("%q is not in the sample", c[0])
		}
		if _, err := ParseMessage(sample().ID, file); err == nil {
			t.Errorf("ParseMessage accepts %s", c[1])
		}
		if err := valid(file); err == nil {
			t.Errorf("the schema accepts %s instead of %s", c[1], c[0])
		}
	}
}
