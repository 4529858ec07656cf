package format

import (
	"slices"
	"time"
)

// Hold is the content of agents/<Name>/hold, which asks the agent not to change any files. See docs/reference/tree.md,
// "A hold".
type Hold struct {
	By     string    `json:"by"`     // the agent that placed the hold, usually a user's agent
	Reason string    `json:"reason"` // empty if no reason was given
	Since  time.Time `json:"since"`
	Until  time.Time `json:"until"` // when the hold expires
}

// ParseHold parses a hold file. The error is a *tree.FormatError.
func ParseHold(data []byte) (Hold, error) {
	o, err := parseSmall(data)
	if err != nil {
		return Hold{}, err
	}
	h := Hold{By: o.text("by"), Reason: o.text("reason"), Since: o.time("since"), Until: o.time("until")}
	switch {
	case o.err != nil:
	case h.By == "":
		return h, o.bad("by", `"by" is missing: write the name of the user or agent who put this agent on hold`)
	case CheckName(h.By) != "":
		return h, o.bad("by", Quote(h.By)+" is not an agent's name: "+CheckName(h.By))
	case h.Since.IsZero() || h.Until.IsZero():
		return h, o.bad("until", `"since" and "until" are both needed, as times such as 2025-10-23T15:22:14Z`)
	}
	return h, o.err
}

// FormatHold returns h in the form that ParseHold reads. Unknown keys in the old content, which may be nil, are kept
// after the known keys.
func FormatHold(h Hold, old []byte) []byte {
	return formatKeyed([]keyed{
		{"by", h.By}, {"reason", h.Reason}, {"since", FormatTime(h.Since)}, {"until", FormatTime(h.Until)},
	}, old)
}

// formatKeyed returns a JSON object with the given keys, followed by the unknown keys of the old object, which may be
// nil or invalid.
func formatKeyed(known []keyed, old []byte) []byte {
	var b lines
	var ours []string
	for _, k := range known {
		b.put(k.key, compact(k.value))
		ours = append(ours, k.key)
	}
	if o, err := parseSmall(old); old != nil && err == nil {
		for _, m := range o.keys {
			if !slices.Contains(ours, m.key) {
				b.put(m.key, m.val)
			}
		}
	}
	return append(b.object(), '\n')
}
