package cli

import (
	"fmt"
	"time"

	"mailtree/maildir/format"
	"mailtree/maildir/lazy"
)

// ShortID returns an id in the short form that users type. See format.ShortID.
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

// Clock returns a local time, preceded by the day unless the day is today. Examples are "17:40", "yesterday 17:40" and
// "Thu 26 Nov 17:40".
func (s *Screen) Clock(at time.Time) string {
	at = at.Local()
	now := s.Now().Local()
	switch at.Format(time.DateOnly) {
	case now.Format(time.DateOnly):
		return at.Format("15:04")
	case now.AddDate(0, 0, -1).Format(time.DateOnly):
		return "yesterday " + at.Format("15:04")
	}
	if at.Year() == now.Year() {
		return at.Format("Mon 2 Jan 15:04")
	}
	return at.Format("2006-01-02 15:04")
}

// In returns the time until a timestamp, in the form of format.TimeLeft. It returns "" for an invalid timestamp.
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

var bareNumber = lazy.Regexp(`^[0-9]+$`)

// Duration parses a duration in the form in which people write durations. See format.ParseSpan. It returns an error for
// any other text. The text of the error begins with "is", so that the caller can put the flag's name in front of it.
func Duration(given string) (d time.Duration, err error) {
	d, ok := format.ParseSpan(given)
	switch {
	case ok:
		return d, nil
	case bareNumber().MatchString(given):
		return 0, fmt.Errorf("is %q, which has no unit: write %sm for minutes or %sh for hours", given, given, given)
	}
	return 0, fmt.Errorf("is %q, but must be a duration, such as 90m, 2h or 1d12h", given)
}

// Moment converts a time given by a user to the form that tools accept. The time may be a duration before now (see
// Duration), "today" or "yesterday" (the midnight at which that day began), a local date or time ("2026-01-31",
// "2026-01-31 15:04"), or a time in RFC 3339. ok is false for anything else.
func Moment(given string, now time.Time) (stamp string, ok bool) {
	at := time.Time{}
	midnight := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, time.Local)
	switch ago, err := Duration(given); {
	case err == nil:
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

// Exact returns a timestamp in local time, with a precision of one minute. It returns "" for an invalid timestamp.
func Exact(stamp string) string {
	at, err := time.Parse(time.RFC3339Nano, stamp)
	if err != nil {
		return ""
	}
	return at.Local().Format("Mon 2 Jan 2006 15:04 MST")
}
