package format

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"mailtree/maildir/lazy"
)

// ValidSlug reports whether slug is valid as the name of a project's folder.
func ValidSlug(slug string) bool {
	return slugPattern().MatchString(slug) && !strings.Contains(slug, "..")
}

var slugPattern = lazy.Regexp(`^[a-z0-9][a-z0-9._-]{0,127}$`)

// Slug returns the folder name of the project with the given absolute path. The name consists of the path's base name
// in safe lower-case characters, and the first 8 hex digits of the path's SHA-256. See docs/reference/tree.md, "The
// store".
func Slug(human string) string {
	base := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		}
		return '-'
	}, filepath.Base(human))
	base = strings.Trim(base, "-")
	if base == "" {
		base = "project"
	}
	sum := sha256.Sum256([]byte(human))
	return Cut(base, 64) + "-" + hex.EncodeToString(sum[:4])
}

// FormatProject returns a project.json in the form that ParseProject reads. The argument human is "" for the default
// project.
func FormatProject(human, slug string, now time.Time) []byte {
	b, err := json.MarshalIndent(struct {
		HumanKey string `json:"human_key,omitempty"` // missing in the default project
		Slug     string `json:"slug"`
		Created  string `json:"created"`
	}{human, slug, FormatTime(now)}, "", "  ")
	if err != nil {
		panic(err) // cannot happen, because the values are strings
	}
	return append(b, '\n')
}

// HasControls reports whether a path contains control characters or bytes that are not UTF-8, so that it cannot be the
// path of a code base.
func HasControls(path string) bool {
	return strings.ContainsFunc(path, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\uFFFD' })
}

// ParseProject parses project.json. It returns the human key as a clean path, or "" if the file has no human key. The
// error is a *tree.FormatError.
func ParseProject(data []byte) (human string, created time.Time, err error) {
	o, err := parseSmall(data)
	if err != nil {
		return "", time.Time{}, err
	}
	human, created = o.text("human_key"), o.time("created")
	switch {
	case o.err != nil || !o.has("human_key"):
	case !filepath.IsAbs(human):
		o.err = o.bad("human_key", Quote(human)+" is not an absolute path: write the absolute path of the code base")
	case HasControls(human):
		o.err = o.bad("human_key", Quote(human)+" contains control characters: write the absolute path of the code base")
	default:
		human = filepath.Clean(human)
	}
	if o.err != nil {
		return "", time.Time{}, o.err
	}
	return human, created, nil
}

// formatKey is the key of the project format in project.json. It has the same meaning in every format.
const formatKey = "format"

// ProjectFormat returns the project format in project.json. The format is 1 if the file specifies none or is not a
// JSON object. ProjectFormat returns a *tree.FormatError if the value is not a positive whole number.
func ProjectFormat(data []byte) (int, error) {
	o, err := parseSmall(data)
	if err != nil || !o.has(formatKey) {
		return 1, nil
	}
	n := 0
	if o.decode(formatKey, &n); o.err == nil && n < 1 {
		o.err = o.bad(formatKey, Quote(formatKey)+" must be a positive whole number: write one, or omit it")
	}
	if o.err != nil {
		return 0, o.err
	}
	return n, nil
}

// WithFormat returns a project.json with another format. All other keys stay unchanged. The argument data must be
// valid for ParseProject.
func WithFormat(data []byte, n int) ([]byte, error) { return withKey(data, formatKey, compact(n)) }

// WithHumanKey returns a project.json with another human key. All other keys stay unchanged. It returns a
// *tree.FormatError for an invalid file.
func WithHumanKey(data []byte, human string) ([]byte, error) {
	return withKey(data, "human_key", compact(human))
}

// withKey returns the JSON object in data with a new value for a key. The key is moved to the end.
func withKey(data []byte, key string, value json.RawMessage) ([]byte, error) {
	o, err := parseSmall(data)
	if err != nil {
		return nil, err
	}
	var b lines
	for _, m := range o.keys {
		if m.key != key {
			b.put(m.key, m.val)
		}
	}
	b.put(key, value)
	return append(b.object(), '\n'), nil
}

// FormatMachineFormat returns the content of the file in which a machine publishes the highest project format that it
// supports.
func FormatMachineFormat(n int) []byte { return []byte(strconv.Itoa(n) + "\n") }

// ParseMachineFormat parses the content of the file in which a machine publishes the highest project format that it
// supports. It returns 0 if the content is not a positive whole number.
func ParseMachineFormat(data []byte) int {
	n, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		return 0
	}
	return max(n, 0)
}
