package format

import (
	"time"

	"mailtree/maildir/lazy"
)

// ShortDays is the maximum age, in days, of messages that can be identified by the digits after the date in their
// ids.
const ShortDays = 30

// madeID matches an id that a server created: the date, followed by digits that distinguish the messages of that date.
var madeID = lazy.Regexp(`^msg_(\d{8})_([0-9a-f]{8})[0-9a-f]{8}$`)

// shortID matches the short form that ShortID returns for an id that a server created.
var shortID = lazy.Regexp(`^(\d{8}_)?[0-9a-f]{8}$`)

// IsShortID reports whether text looks like a short id of a message that a server created. See ShortID.
func IsShortID(text string) bool { return shortID().MatchString(text) }

// ShortID returns an id in the form that a user types. For a recent message, the result is the eight digits after the
// date. For an older message, the result is the date and these digits. If a server did not create the id, ShortID
// returns the whole id. maildir.Project.FullID expands the result again.
func ShortID(id string, now time.Time) string {
	part := madeID().FindStringSubmatch(id)
	if part == nil {
		return id
	}
	day, err := time.Parse("20060102", part[1])
	if age := now.Sub(day); err == nil && age >= 0 && age < (ShortDays-1)*24*time.Hour {
		return part[2]
	}
	return part[1] + "_" + part[2]
}
