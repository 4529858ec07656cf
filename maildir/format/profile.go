package format

import (
	"encoding/json"
	"strings"
	"time"

	"mailtree/maildir/tree"
)

// Profile is agents/<Name>/profile.json: written once by the server, edited by people.
// See docs/tree.md, "An agent".
type Profile struct {
	Name      string    `json:"name"`
	Program   string    `json:"program"`
	Model     string    `json:"model"`
	Task      string    `json:"task"`
	Inception time.Time `json:"inception"`
}

// MaxSmall is the size limit of every small file of the tree: profiles, claims, marks, status.
const MaxSmall = 64 << 10

// ParseProfile reads a profile; the folder's name, not the file's, is the agent's name. The error
// is a *tree.FormatError.
func ParseProfile(name string, data []byte) (Profile, error) {
	o, err := parseSmall(data)
	if err != nil {
		return Profile{Name: name}, err
	}
	p := Profile{Name: name, Program: o.text("program"), Model: o.text("model"), Task: o.text("task"), Inception: o.time("inception")}
	o.text("name") // a renamed folder follows its path: only the type counts
	return p, o.err
}

// parseSmall decodes a whole JSON file.
func parseSmall(data []byte) (*object, error) {
	if strings.HasPrefix(string(data), "\xef\xbb\xbf") {
		return nil, &tree.FormatError{Line: 1, Reason: "starts with a byte order mark: save as UTF-8 without BOM"}
	}
	return parseObject(data, 0)
}

// FormatProfile writes what ParseProfile reads.
func FormatProfile(p Profile) []byte {
	b, err := json.MarshalIndent(struct {
		Name      string `json:"name"`
		Program   string `json:"program"`
		Model     string `json:"model"`
		Task      string `json:"task"`
		Inception string `json:"inception"`
	}{p.Name, p.Program, p.Model, p.Task, FormatTime(p.Inception)}, "", "  ")
	if err != nil {
		panic(err) // strings only
	}
	return append(b, '\n')
}

// Presence of an agent.
// See docs/agentmail.md, "Presence".
const (
	Ready   = "ready"
	Work    = "work"
	Offline = "offline"
)

// ParseStatus reads a status file: one word. The error is a *tree.FormatError.
func ParseStatus(data []byte) (string, error) {
	s := strings.TrimSpace(string(data))
	if s != Ready && s != Work && s != Offline {
		return "", &tree.FormatError{Line: 1, Reason: Quote(s) + " is none of ready, work, offline: write one of them"}
	}
	return s, nil
}

// ParseMark reads a .read, .ack or .released file: one line, the time; of several lines, as a merge
// leaves them, the earliest counts. An empty file counts without a time. With an error the mark
// counts all the same, with the earliest time that could be read. ReleasedBy reads the lines that
// begin with "by".
func ParseMark(data []byte) (time.Time, error) {
	var first time.Time
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
		if first.IsZero() || t.Before(first) {
			first = t
		}
	}
	return first, bad
}

// FormatMark writes what ParseMark reads.
func FormatMark(t time.Time) []byte { return []byte(FormatTime(t) + "\n") }

// releasedBy begins the line of a .released file that names who released another's claim.
const releasedBy = "by "

// FormatRelease is the .released file of a claim that another agent than its holder has released.
func FormatRelease(t time.Time, by string) []byte {
	return []byte(string(FormatMark(t)) + releasedBy + by + "\n")
}

// ReleasedBy is who released another's claim, as its .released file says; "": its holder did.
func ReleasedBy(data []byte) string {
	for l := range strings.Lines(string(data)) {
		if by, ok := strings.CutPrefix(strings.TrimSpace(l), releasedBy); ok && ValidName(by) {
			return by
		}
	}
	return ""
}
