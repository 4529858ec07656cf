package format

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// ValidSlug reports whether slug is a valid name for a project's folder.
func ValidSlug(slug string) bool {
	return slugPattern.MatchString(slug) && !strings.Contains(slug, "..")
}

var slugPattern = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,127}$`)

// Slug returns the folder name of the project with the given absolute path. It consists of the path's base name in safe
// lower-case characters, and the first 8 hex digits of the path's SHA-256. See docs/tree.md, "The store".
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

// FormatProject returns a project.json in the form that ParseProject reads. For the default project, human is "".
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

// ParseProject parses project.json. human is "" if the file has no human key. The error is a *tree.FormatError.
func ParseProject(data []byte) (human string, created time.Time, err error) {
	o, err := parseSmall(data)
	if err != nil {
		return "", time.Time{}, err
	}
	human, created = o.text("human_key"), o.time("created")
	if o.err == nil && o.has("human_key") && !filepath.IsAbs(human) {
		o.err = o.bad("human_key", Quote(human)+" is not an absolute path: write the absolute path of the code base")
	}
	if o.err != nil {
		return "", time.Time{}, o.err
	}
	return human, created, nil
}

// WithHumanKey returns a project.json with another human key. All other keys are kept. It returns a *tree.FormatError
// for an invalid file.
func WithHumanKey(data []byte, human string) ([]byte, error) {
	o, err := parseSmall(data)
	if err != nil {
		return nil, err
	}
	var b lines
	b.put("human_key", compact(human))
	for _, m := range o.keys {
		if m.key != "human_key" {
			b.put(m.key, m.val)
		}
	}
	return append(b.object(), '\n'), nil
}
