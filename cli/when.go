package cli

import (
	"fmt"
	"time"

	"mailtree/maildir/format"
)

// ShortID is an id as a person types it: see format.ShortID.
func (s *Screen) ShortID(id string) string { return Line(format.ShortID(id, s.Now())) }

// Ago says how long ago a stamp of an answer is: "now", "4m", "3h", "2d", then the day; "" for none.
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

// In says how long it is until a stamp: "4m", "3h", "2d"; "now" where it is past; "" for none.
func (s *Screen) In(stamp string) string {
	at, err := time.Parse(time.RFC3339Nano, stamp)
	if err != nil {
		return ""
	}
	d := at.Sub(s.Now())
	if d < time.Minute {
		return "now"
	}
	return span(d.Round(time.Minute)) // what was claimed for an hour just now is claimed for 1h
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

// Exact is a stamp in the time of this place, to the minute; "" for none.
func Exact(stamp string) string {
	at, err := time.Parse(time.RFC3339Nano, stamp)
	if err != nil {
		return ""
	}
	return at.Local().Format("Mon 2 Jan 2006 15:04 MST")
}
