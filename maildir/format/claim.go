package format

import (
	"slices"
	"time"

	"mailtree/maildir/glob"
)

// Claim is the content of a claim file: an agent's lease on a path pattern. See docs/tree.md, "A claim".
type Claim struct {
	Pattern   string    `json:"path"` // a path or glob relative to the code repository's root
	Agent     string    `json:"agent"`
	Exclusive bool      `json:"exclusive"`
	Reason    string    `json:"reason"`
	Created   time.Time `json:"created"`
	Expires   time.Time `json:"expires"`
}

// ParseClaim reads a claim file. The error is a *tree.FormatError.
func ParseClaim(data []byte) (Claim, error) {
	o, err := parseSmall(data)
	if err != nil {
		return Claim{}, err
	}
	c := Claim{
		Pattern:   o.text("path"),
		Agent:     o.text("agent"),
		Exclusive: o.flag("exclusive"),
		Reason:    o.text("reason"),
		Created:   o.time("created"),
		Expires:   o.time("expires"),
	}
	if !o.has("exclusive") {
		c.Exclusive = true
	}
	switch {
	case o.err != nil:
		return c, o.err
	case c.Agent == "":
		return c, o.bad("agent", `no "agent": write the name of the agent that claims`)
	case CheckName(c.Agent) != "":
		return c, o.bad("agent", Quote(c.Agent)+" is not an agent's name: "+CheckName(c.Agent))
	case c.Created.IsZero() || c.Expires.IsZero():
		return c, o.bad("expires", `"created" and "expires" are both needed, times such as 2025-10-23T15:22:14Z`)
	}
	const fold = false
	if _, err := glob.Compile(c.Pattern, fold); err != nil {
		return c, o.bad("path", Quote(c.Pattern)+" is not a pattern of paths: "+err.Error())
	}
	return c, nil
}

// FormatClaim returns the content of a claim file. It keeps the unknown keys of the old content, unchanged,
// after the known keys.
func FormatClaim(c Claim, old []byte) []byte {
	var b lines
	var ours []string
	for _, k := range []struct {
		key   string
		value any
	}{
		{"path", c.Pattern}, {"agent", c.Agent}, {"exclusive", c.Exclusive}, {"reason", c.Reason},
		{"created", FormatTime(c.Created)}, {"expires", FormatTime(c.Expires)},
	} {
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
