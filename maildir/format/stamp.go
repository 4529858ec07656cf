package format

import (
	"encoding/json"
	"time"
)

// Stamp is a time as it appears in answers: in the format of FormatTime, or "" for the zero time.
type Stamp struct{ time.Time }

// At returns t as a Stamp.
func At(t time.Time) Stamp { return Stamp{t} }

// String returns the time as it appears in answers.
func (s Stamp) String() string {
	if s.IsZero() {
		return ""
	}
	return FormatTime(s.Time)
}

// MarshalJSON returns the result of String as JSON.
func (s Stamp) MarshalJSON() ([]byte, error) { return json.Marshal(s.String()) }

// UnmarshalJSON parses the result of MarshalJSON.
func (s *Stamp) UnmarshalJSON(data []byte) error {
	if string(data) == `""` {
		*s = Stamp{}
		return nil
	}
	return s.Time.UnmarshalJSON(data)
}
