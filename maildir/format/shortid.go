package format

import (
	"regexp"
	"time"
)

// ShortDays is for how many days the digits after the day of an id may stand for the whole id.
const ShortDays = 30

// madeID matches ids made by a server: the day, then digits that distinguish the messages of a day.
var madeID = regexp.MustCompile(`^msg_(\d{8})_([0-9a-f]{8})[0-9a-f]{8}$`)

// ShortID returns an id in the form that a person types: for recent messages the eight digits after the
// day, for older ones the day and those digits, and the whole id if no server made it. maildir.FullID finds
// the message again.
func ShortID(id string, now time.Time) string {
	part := madeID.FindStringSubmatch(id)
	if part == nil {
		return id
	}
	day, err := time.Parse("20060102", part[1])
	if age := now.Sub(day); err == nil && age >= 0 && age < (ShortDays-1)*24*time.Hour {
		return part[2]
	}
	return part[1] + "_" + part[2]
}
