package format

import (
	"encoding/json"
	"time"
)

// Stamp is a time in a response. It is written in the format of FormatTime, or as "" if it is zero.
type Stamp struct{ time.Time }

// At converts t to a Stamp.
func At(t time.Time) Stamp { return Stamp{t} }

// String returns the time in the form that responses use.
func (s Stamp) String() string {
	if s.IsZero() {
		return ""
	}
	return FormatTime(s.Time)
}

// MarshalJSON returns the result of String as JSON.
func (s Stamp) MarshalJSON() ([]byte, error) { return json.Marshal(s.String()) }

// UnmarshalJSON is the inverse of MarshalJSON.
func (s *Stamp) UnmarshalJSON(data []byte) error {
	if string(data) == `""` {
		*s = Stamp{}
		return nil
	}
	return s.Time.UnmarshalJSON(data)
}
