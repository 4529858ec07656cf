package cli

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"time"

	"mailtree/maildir/format"
)

// ShortID returns an id in the form that a user types: see format.ShortID.
func (s *Screen) ShortID(id string) string { return Line(format.ShortID(id, s.Now())) }

// Ago returns how long ago a timestamp was, such as "now", "4m", "3h" or "2d". For older timestamps, it returns the
// date. It returns "" for an invalid timestamp.
func (s *Screen) Ago(stamp string) string {
	at, err := time.Parse(time.RFC3339Nano, stamp)
	if err != nil {
		return ""
	}
	switch d := s.Now().Sub(at); {
	case d < -time.Minute:
		return "in " + span(-d)
	case d < time.Minute:
		return "now"
	case d < 7*24*time.Hour:
		return span(d)
	case at.Year() == s.Now().Year():
		return at.Local().Format("2 Jan")
	}
	return at.Local().Format(time.DateOnly)
}

// In returns the time until a timestamp: see format.TimeLeft. It returns "" for an invalid timestamp.
func (s *Screen) In(stamp string) string {
	at, err := time.Parse(time.RFC3339Nano, stamp)
	if err != nil {
		return ""
	}
	return format.TimeLeft(at.Sub(s.Now()))
}

func span(d time.Duration) string {
	switch {
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}

var (
	agoPattern = regexp.MustCompile(`^([0-9]{1,6})([mhdw])$`)
	agoUnits   = map[string]time.Duration{"m": time.Minute, "h": time.Hour, "d": 24 * time.Hour, "w": 7 * 24 * time.Hour}
)

// Age converts a number with a unit, such as "10m", "3h", "2d" or "1w", to a duration. The result ok is false for
// anything else.
func Age(given string) (age time.Duration, ok bool) {
	parts := agoPattern.FindStringSubmatch(given)
	if parts == nil {
		return 0, false
	}
	n, _ := strconv.ParseInt(parts[1], 10, 64) // at most six digits
	unit := agoUnits[parts[2]]
	return time.Duration(min(n, int64(math.MaxInt64/unit))) * unit, true
}

// Moment converts a time given by a user to the form that tools accept. The time may be an age ("10m", "3h", "2d",
// "1w"), "today" or "yesterday" (the midnight at which that day began), a local date, minute or second ("2026-01-31",
// "2026-01-31 15:04"), or RFC 3339. The result ok is false for anything else.
func Moment(given string, now time.Time) (stamp string, ok bool) {
	at := time.Time{}
	midnight := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, time.Local)
	switch ago, ok := Age(given); {
	case ok:
		at = now.Add(-ago)
	case given == "today":
		at = midnight
	case given == "yesterday":
		at = midnight.AddDate(0, 0, -1)
	default:
		for _, layout := range []string{
			time.DateOnly, "2006-01-02 15:04", "2006-01-02T15:04", time.DateTime, "2006-01-02T15:04:05", time.RFC3339,
		} {
			if t, err := time.ParseInLocation(layout, given, time.Local); err == nil {
				at = t
			}
		}
	}
	if at.IsZero() {
		return "", false
	}
	return at.UTC().Format(time.RFC3339Nano), true
}

// Exact returns a timestamp in local time, to the minute. It returns "" for an invalid timestamp.
func Exact(stamp string) string {
	at, err := time.Parse(time.RFC3339Nano, stamp)
	if err != nil {
		return ""
	}
	return at.Local().Format("Mon 2 Jan 2006 15:04 MST")
}
