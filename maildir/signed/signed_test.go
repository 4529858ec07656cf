package signed

import "testing"

// TestDecode checks that Decode accepts a file only with the key and label that it was written with, and only if the
// file is unchanged.
func TestDecode(t *testing.T) {
	t.Parallel()
	data, err := Encode([]byte("key"), "queue", map[string]string{"to": "ann"})
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]string
	if !Decode([]byte("key"), "queue", data, &got) || got["to"] != "ann" {
		t.Errorf("read back as %v", got)
	}
	changed := append([]byte{}, data...)
	changed[len(changed)-4] ^= 1
	for name, is := range map[string]bool{
		"another key":   Decode([]byte("other"), "queue", data, &got),
		"another label": Decode([]byte("key"), "other", data, &got),
		"changed":       Decode([]byte("key"), "queue", changed, &got),
		"no HMAC":       Decode([]byte("key"), "queue", []byte(`{"to":"ann"}`), &got),
		"empty":         Decode([]byte("key"), "queue", nil, &got),
	} {
		if is {
			t.Errorf("%s: accepted", name)
		}
	}
}
