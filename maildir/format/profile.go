package format

import (
	"encoding/json"
	"strings"
	"time"

	"mailtree/maildir/tree"
)

// Profile is the content of agents/<Name>/profile.json. The server writes it once, and users may edit it. See
// docs/reference/tree.md, "An agent".
type Profile struct {
	Name      string    `json:"name"`
	Program   string    `json:"program"`
	Model     string    `json:"model"`
	Task      string    `json:"task"`
	Inception time.Time `json:"inception"`
	Machine   string    `json:"machine"` // key id of the agent's machine; empty if the agent does not belong to a machine
}

// MaxSmall is the maximum size, in bytes, of a small file in the tree: a profile, claim, mark or status file.
const MaxSmall = 64 << 10

// ParseProfile parses the profile of the agent with the given name. The name of the agent's folder is the agent's name.
// ParseProfile ignores the name in the file. The error is a *tree.FormatError.
func ParseProfile(name string, data []byte) (Profile, error) {
	o, err := parseSmall(data)
	if err != nil {
		return Profile{Name: name}, err
	}
	p := Profile{Name: name, Program: o.text("program"), Model: o.text("model"), Task: o.text("task"), Inception: o.time("inception"),
		Machine: o.text("machine")}
	o.text("name") // checks only the type; the folder determines the agent's name
	return p, o.err
}

// parseSmall decodes a file that consists of one JSON object.
func parseSmall(data []byte) (*object, error) {
	if strings.HasPrefix(string(data), "\xef\xbb\xbf") {
		return nil, &tree.FormatError{Line: 1, Reason: "the file starts with a byte order mark: save it as UTF-8 without a BOM"}
	}
	return parseObject(data, 0)
}

// FormatProfile returns p in the form that ParseProfile reads.
func FormatProfile(p Profile) []byte {
	b, err := json.MarshalIndent(struct {
		Name      string `json:"name"`
		Program   string `json:"program"`
		Model     string `json:"model"`
		Task      string `json:"task"`
		Inception string `json:"inception"`
		Machine   string `json:"machine,omitempty"`
	}{p.Name, p.Program, p.Model, p.Task, FormatTime(p.Inception), p.Machine}, "", "  ")
	if err != nil {
		panic(err) // cannot happen, because a Profile contains only strings and times
	}
	return append(b, '\n')
}

// Values of an agent's presence. See docs/reference/agentmail.md, "Presence".
const (
	Ready   = "ready"
	Work    = "work"
	Offline = "offline"
)

// ParseStatus parses a status file, which contains a single word. The error is a *tree.FormatError.
func ParseStatus(data []byte) (string, error) {
	s := strings.TrimSpace(string(data))
	if s != Ready && s != Work && s != Offline {
		return "", &tree.FormatError{Line: 1, Reason: Quote(s) + " is not a valid status: write ready, " +
			"work or offline"}
	}
	return s, nil
}

// ParseMark parses a .read, .ack, .archived or .released file, which contains one line with the time. If a merge left
// several lines, the earliest time is used. An empty file is a mark without a time. If ParseMark returns an error,
// the mark is still effective, with the earliest time that could be parsed. ParseMark skips lines that begin with
// "by", which ReleasedBy parses.
func ParseMark(data []byte) (time.Time, error) {
	return parseMark(data, time.Time.Before)
}

// LaterFor is how long an empty .later file hides a thread.
const LaterFor = 2 * time.Hour

// ParseLater is like ParseMark, but for a .later file, in which the latest time is used.
func ParseLater(data []byte) (time.Time, error) {
	return parseMark(data, time.Time.After)
}

// parseMark implements ParseMark and ParseLater. wins reports whether t takes precedence over other.
func parseMark(data []byte, wins func(t, other time.Time) bool) (time.Time, error) {
	var best time.Time
	var bad error
	line := 0
	for l := range strings.Lines(string(data)) {
		line++
		l = strings.TrimSpace(l)
		if l == "" || strings.HasPrefix(l, releasedBy) {
			continue
		}
		t, err := ParseTime(l)
		if err != nil {
			if bad == nil {
				bad = &tree.FormatError{Line: line, Reason: err.Error()}
			}
			continue
		}
		if best.IsZero() || wins(t, best) {
			best = t
		}
	}
	return best, bad
}

// FormatMark returns t in the form that ParseMark reads.
func FormatMark(t time.Time) []byte { return []byte(FormatTime(t) + "\n") }

// releasedBy begins the line in a .released file that identifies the agent that released another agent's claim.
const releasedBy = "by "

// FormatRelease returns the content of the .released file for a claim that an agent other than the holder released.
func FormatRelease(t time.Time, by string) []byte {
	return []byte(string(FormatMark(t)) + releasedBy + by + "\n")
}

// ReleasedBy returns the agent that released another agent's claim, according to the content of the .released file.
// It returns "" if the holder released the claim.
func ReleasedBy(data []byte) string {
	for l := range strings.Lines(string(data)) {
		if by, ok := strings.CutPrefix(strings.TrimSpace(l), releasedBy); ok && ValidName(by) {
			return by
		}
	}
	return ""
}
