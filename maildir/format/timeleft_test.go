package format

import (
	"testing"
	"time"
)

// TestTimeLeft checks how times are rounded. For example, a little less than two hours must not be shown as one hour.
func TestTimeLeft(t *testing.T) {
	const day = 24 * time.Hour
	for d, want := range map[time.Duration]string{
		-time.Hour:                   "now",
		29 * time.Second:             "now",
		40 * time.Second:             "1m",
		59 * time.Minute:             "59m",
		time.Hour - time.Second:      "1h",
		2*time.Hour - time.Minute:    "1h 59m",
		2*time.Hour - 2*time.Second:  "2h",
		day - time.Second:            "1d",
		2*day + 3*time.Hour:          "2d 3h",
		30*day - 10*time.Minute:      "29d 23h",
		30*day - 10*time.Millisecond: "30d",
	} {
		if got := TimeLeft(d); got != want {
			t.Errorf("%s: %q, want %q", d, got, want)
		}
	}
}
