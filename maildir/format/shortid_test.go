package format

import (
	"testing"
	"time"
)

// TestShortID checks that a recent id is shortened to the part after its date, and that an id written by a user is not
// shortened.
func TestShortID(t *testing.T) {
	now := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	for id, want := range map[string]string{
		"msg_20260131_3a51c0f7b3dc3a7e": "3a51c0f7",
		"msg_20260103_3a51c0f7b3dc3a7e": "3a51c0f7",
		"msg_20260102_3a51c0f7b3dc3a7e": "20260102_3a51c0f7",
		"msg_20260201_3a51c0f7b3dc3a7e": "20260201_3a51c0f7", // created while the clock was wrong
		"hello":                         "hello",
		"msg_20260131_3a51c0f7b3dc3a7":  "msg_20260131_3a51c0f7b3dc3a7",
	} {
		if got := ShortID(id, now); got != want {
			t.Errorf("ShortID(%s): %s, want %s", id, got, want)
		}
	}
}
