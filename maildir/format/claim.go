package format

import (
	"time"

	"mailtree/maildir/glob"
)

// Claim is the content of a claim file: an agent's lease on a path pattern. See docs/reference/tree.md, "A claim".
type Claim struct {
	Pattern   string    `json:"path"` // a path or glob relative to the code repository's root
	Agent     string    `json:"agent"`
	Exclusive bool      `json:"exclusive"`
	Reason    string    `json:"reason"`
	Created   time.Time `json:"created"`
	Expires   time.Time `json:"expires"`
}

// Lease is a claim in the list of claims that machines share. Expires is zero, because each machine measures Length
// with its own clock. See docs/reference/sync.md, "Claims".
type Lease struct {
	Claim
	Length  time.Duration // whole seconds
	Renewal int           // number of renewals
	Machine string        // id of the key of the machine that made the claim
	// Inception is the agent's inception, which distinguishes two agents with the same name. It is zero if unknown.
	Inception time.Time
}

// ParseClaim parses a claim file. The error is a *tree.FormatError.
func ParseClaim(data []byte) (Claim, error) {
	o, err := parseSmall(data)
	if err != nil {
		return Claim{}, err
	}
	c := Claim{Expires: o.time("expires")}
	err = o.claim(&c, c.Expires.IsZero())
	return c, err
}

// claim reads the keys that claims and leases have in common. endless reports whether the file specifies no expiry,
// which is an error.
func (o *object) claim(c *Claim, endless bool) error {
	c.Pattern = o.text("path")
	c.Agent = o.text("agent")
	c.Exclusive = o.flag("exclusive")
	c.Reason = o.text("reason")
	c.Created = o.time("created")
	if !o.has("exclusive") {
		c.Exclusive = true
	}
	switch {
	case o.err != nil:
		return o.err
	case c.Agent == "":
		return o.bad("agent", `"agent" is missing: write the name of the claiming agent`)
	case CheckName(c.Agent) != "":
		return o.bad("agent", Quote(c.Agent)+" is not an agent's name: "+CheckName(c.Agent))
	case c.Created.IsZero() || endless:
		return o.bad("expires", `"created" and "expires" are both needed, as times such as 2025-10-23T15:22:14Z`)
	}
	const fold = false
	if _, err := glob.Compile(c.Pattern, fold); err != nil {
		return o.bad("path", Quote(c.Pattern)+" is not a path pattern: "+err.Error())
	}
	return nil
}

// ParseLease parses a lease in the form that FormatLease returns. The error is a *tree.FormatError.
func ParseLease(data []byte) (l Lease, err error) {
	o, err := parseSmall(data)
	if err != nil {
		return l, err
	}
	var seconds int
	o.decode("seconds", &seconds)
	o.decode("renewal", &l.Renewal)
	l.Inception = o.time("inception")
	l.Length, l.Machine = time.Duration(min(max(seconds, 0), int(MaxLease.Seconds())))*time.Second, o.text("machine")
	err = o.claim(&l.Claim, false)
	return l, err
}

// MaxLease is the maximum duration of a claim.
const MaxLease = 30 * 24 * time.Hour

// FormatLease returns a lease in the form that the shared list uses.
func FormatLease(l Lease) []byte {
	var b lines
	for _, k := range l.keys() {
		b.put(k.key, compact(k.value))
	}
	b.put("seconds", compact(int(l.Length/time.Second)))
	b.put("renewal", compact(l.Renewal))
	b.put("machine", compact(l.Machine))
	if !l.Inception.IsZero() {
		b.put("inception", compact(FormatTime(l.Inception)))
	}
	return append(b.object(), '\n')
}

// keyed is a key with its value.
type keyed struct {
	key   string
	value any
}

// keys returns a claim's keys and values, without "expires".
func (c *Claim) keys() []keyed {
	return []keyed{
		{"path", c.Pattern}, {"agent", c.Agent}, {"exclusive", c.Exclusive}, {"reason", c.Reason}, {"created", FormatTime(c.Created)},
	}
}

// FormatClaim returns the content of a claim file. Unknown keys in the old content are kept unchanged, after the
// known keys.
func FormatClaim(c Claim, old []byte) []byte {
	return formatKeyed(append(c.keys(), keyed{"expires", FormatTime(c.Expires)}), old)
}
