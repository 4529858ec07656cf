package format

import (
	"fmt"
	"time"
)

// TimeLeft says for how long something holds still, to the minute: "now" below one, "58m", "1h",
// "1h 59m", from a day on "2d 3h".
func TimeLeft(d time.Duration) string {
	d = d.Round(time.Minute) // what was claimed for an hour just now is claimed for 1h
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

// parts is a number of units and of smaller ones, without those where there are none.
func parts(n int, unit string, rest int, smaller string) string {
	text := fmt.Sprint(n, unit)
	if rest > 0 {
		text += fmt.Sprint(" ", rest, smaller)
	}
	return text
}
