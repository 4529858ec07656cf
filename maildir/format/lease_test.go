package format

import (
	"reflect"
	"testing"
	"time"
)

// TestLease checks that parsing a formatted lease returns the same lease, that an invalid lease is rejected, and that a
// lease that is too long is cut to the maximum duration.
func TestLease(t *testing.T) {
	t.Parallel()
	l := Lease{
		Claim: Claim{
			Pattern: "app/[id]/*.py", Agent: "Ann", Exclusive: true, Reason: "a \"reason\"",
			Created: time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC),
		},
		Length: time.Hour, Renewal: 2, Machine: "0123456789abcdef",
		Inception: time.Date(2026, 11, 19, 10, 0, 0, 0, time.UTC),
	}
	got, err := ParseLease(FormatLease(l))
	if err != nil || !reflect.DeepEqual(got, l) {
		t.Errorf("%+v, %v", got, err)
	}
	for _, text := range []string{
		`{}`, `[]`, `{"path": "a", "agent": "Ann"}`, `{"path": "/a", "agent": "Ann", "created": "2026-11-20T10:00:00Z"}`,
		`{"path": "a", "agent": "../x", "created": "2026-11-20T10:00:00Z"}`,
		`{"path": "a", "agent": "Ann", "created": "2026-11-20T10:00:00Z", "seconds": 1e99}`,
		`{"path": "a", "agent": "Ann", "created": "2026-11-20T10:00:00Z", "seconds": "9"}`,
	} {
		if got, err := ParseLease([]byte(text)); err == nil {
			t.Errorf("%s is read as %+v", text, got)
		}
	}
	got, err = ParseLease([]byte(`{"path": "a", "agent": "Ann", "created": "2026-11-20T10:00:00Z", "seconds": 99999999999}`))
	if err != nil || got.Length != 30*24*time.Hour {
		t.Errorf("%+v, %v", got, err)
	}
}
