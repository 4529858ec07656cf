package format

import (
	"regexp"
	"time"
)

// ShortDays is how many days back what stands behind the day of an id stands for the id.
const ShortDays = 30

// madeID matches the ids that a server makes: the day, then what tells messages of one day apart.
var madeID = regexp.MustCompile(`^msg_(\d{8})_([0-9a-f]{8})[0-9a-f]{8}$`)

// ShortID is an id as a person types it: of the last days the eight digits behind the day, of older
// ones the day and those, of an id that no server made all of it. maildir.FullID finds the message
// again.
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
