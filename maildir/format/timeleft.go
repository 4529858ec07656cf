package format

import (
	"fmt"
	"time"
)

// TimeLeft formats a remaining duration, rounded to minutes: "now" for less than a minute, "58m", "1h", "1h 59m", and
// "2d 3h" for a day or more.
func TimeLeft(d time.Duration) string {
	d = d.Round(time.Minute) // so that a new one-hour claim is shown as 1h
	hours, minutes := int(d.Hours()), int(d.Minutes())%60
	switch {
	case d < time.Minute:
		return "now"
	case hours == 0:
		return fmt.Sprintf("%dm", minutes)
	case hours < 24:
		return parts(hours, "h", minutes, "m")
	}
	return parts(hours/24, "d", hours%24, "h")
}

// parts formats a number of units and a number of smaller units. It omits the smaller units if their number is 0.
func parts(n int, unit string, rest int, smaller string) string {
	text := fmt.Sprint(n, unit)
	if rest > 0 {
		text += fmt.Sprint(" ", rest, smaller)
	}
	return text
}
