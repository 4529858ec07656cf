// Package release reads the file home, which says where mailtree is published. The programs below this folder use it:
//
//   - apply rewrites everything in the repository that depends on the home;
//   - licenses collects the license texts of all linked modules;
//   - pack builds npm packages, wheels, MCPB bundles, the container image, the Homebrew formula and the install script
//     from GoReleaser's archives.
//
// README.md explains how to make a release.
package release

import (
	"fmt"
	"net/url"
	"os"
	"strings"

	"golang.org/x/mod/module"
)

// Home contains the values from the file home. If mailtree has no home, Repository, Maintainer and Tap are empty, and
// the other values are the names that a build from a clone uses.
type Home struct {
	Repository string // URL
	Maintainer string
	Registry   string // name in the MCP registry
	NPM        string
	PyPI       string
	Image      string // without a tag
	Tap        string // OWNER/NAME, as in `brew install OWNER/NAME/mailtree`
	Module     string // module path, derived from Repository
}

// none is the home that is used until mailtree is published.
var none = Home{
	// The top-level domain .internal is reserved for private use, so nobody else can register this name.
	Registry: "internal.mailtree/mailtree",
	NPM:      "mailtree",
	PyPI:     "mailtree",
	Image:    "mailtree",
	Module:   "mailtree",
}

// IsSet reports whether mailtree has a home.
func (h Home) IsSet() bool { return h.Repository != "" }

// Read reads a file such as home. It returns an error if a line is neither a comment nor one of the known keys, or if
// only some of the values are set. It also returns an error if the repository's address cannot be converted to a
// module path.
func Read(file string) (Home, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return none, err
	}
	var h Home
	values := map[string]*string{
		"repository": &h.Repository, "maintainer": &h.Maintainer, "registry": &h.Registry,
		"npm": &h.NPM, "pypi": &h.PyPI, "image": &h.Image, "tap": &h.Tap,
	}
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		key, value, found := strings.Cut(line, "=")
		to := values[strings.TrimSpace(key)]
		if !found || to == nil {
			return none, fmt.Errorf("%s: cannot read the line %q: write a known key, = and a value", file, line)
		}
		*to = strings.TrimSpace(value)
	}
	var set, empty []string
	for key, value := range values {
		if *value == "" {
			empty = append(empty, key)
		} else {
			set = append(set, key)
		}
	}
	switch {
	case len(set) == 0:
		return none, nil
	case len(empty) > 0:
		return none, fmt.Errorf("%s: %s is set, but %s is empty: set all values or none", file, set[0], strings.Join(empty, ", "))
	}
	u, err := url.Parse(h.Repository)
	if err != nil || u.Scheme != "https" {
		return none, fmt.Errorf("%s: repository is %q, but it must be an https address", file, h.Repository)
	}
	h.Module = u.Host + u.Path
	if err := module.CheckPath(h.Module); err != nil {
		return none, fmt.Errorf("%s: repository is %q, which does not yield a valid module path: %w", file, h.Repository, err)
	}
	return h, nil
}
