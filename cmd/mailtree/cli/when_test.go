package cli

import (
	"math"
	"testing"
	"time"
)

// TestDuration checks which durations users can enter.
func TestDuration(t *testing.T) {
	const day = 24 * time.Hour
	for given, want := range map[string]time.Duration{
		"90m": 90 * time.Minute, "1d": day, "1d12h": 36 * time.Hour, "2w": 14 * day, "1h30m": 90 * time.Minute,
		"1.5h": 90 * time.Minute, "10s": 10 * time.Second, "250ms": 250 * time.Millisecond, "0m": 0,
	} {
		if d, err := Duration(given); err != nil || d != want {
			t.Errorf("%q is %v, %v, but must be %v", given, d, err, want)
		}
	}
	if d, err := Duration("999999999w999999999d"); err != nil || d < math.MaxInt64/2 {
		t.Errorf("a long duration is %v, %v", d, err)
	}
	for given, want := range map[string]string{
		"90":    `is "90", which has no unit: write 90m for minutes or 90h for hours`,
		"":      `is "", but must be a duration, such as 90m, 2h or 1d12h`,
		"-1h":   `is "-1h", but must be a duration, such as 90m, 2h or 1d12h`,
		"12h1d": `is "12h1d", but must be a duration, such as 90m, 2h or 1d12h`,
		"1 day": `is "1 day", but must be a duration, such as 90m, 2h or 1d12h`,
	} {
		if _, err := Duration(given); err == nil || err.Error() != want {
			t.Errorf("%q: %v", given, err)
		}
	}
}
