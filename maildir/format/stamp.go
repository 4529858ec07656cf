package format

import (
	"encoding/json"
	"time"
)

// Stamp is a time that answers show as FormatTime writes it: "" for the zero time.
type Stamp struct{ time.Time }

// At is the stamp of a time.
func At(t time.Time) Stamp { return Stamp{t} }

// String is the time as answers show it.
func (s Stamp) String() string {
	if s.IsZero() {
		return ""
	}
	return FormatTime(s.Time)
}

// MarshalJSON writes String.
func (s Stamp) MarshalJSON() ([]byte, error) { return json.Marshal(s.String()) }

// UnmarshalJSON reads what MarshalJSON writes.
func (s *Stamp) UnmarshalJSON(data []byte) error {
	if string(data) == `""` {
		*s = Stamp{}
		return nil
	}
	return s.Time.UnmarshalJSON(data)
}
