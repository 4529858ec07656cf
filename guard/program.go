package guard

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"

	"mailtree/maildir/lazy"
	"mailtree/maildir/refusal"
)

// The names of the packages that install mailtree. release/apply updates these constants.
const (
	npmPackage  = "mailtree"
	pypiPackage = "mailtree"
)

// runners lists the programs that run a package without installing it. Each entry has a pattern for paths in the
// runner's cache, and a command that installs mailtree.
var runners = []struct {
	name    string
	cache   func() *regexp.Regexp
	install string
}{
	{"npx", lazy.Regexp(`/_npx/[0-9a-f]+/node_modules/`), "npm install -g " + npmPackage},
	{"bunx", lazy.Regexp(`/(\.bunx-\d+/|bunx-\d+-)([^/]+/)?[^/]+@[^/]+/node_modules/`), "bun add -g " + npmPackage},
	{"yarn dlx", lazy.Regexp(`/xfs-[0-9a-f]{8}/dlx-\d+/`), "npm install -g " + npmPackage}, // yarn cannot install programs
	{
		"pnpm dlx",
		lazy.Regexp(`/dlx/[0-9a-z]{26,64}/[0-9a-f]+-[0-9a-f]+/node_modules/|/dlx-\d+/(\d+/)?node_modules/`),
		"pnpm add -g " + npmPackage,
	},
	{
		"uvx",
		lazy.Regexp(`/(archive-v\d+/([\w-]{16}|[\w-]{21})|builds-v\d+/\.tmp\w{6})/bin/[^/]+$`),
		"uv tool install " + pypiPackage,
	},
	{"pipx run", lazy.Regexp(`/(pipx|\.cache)/[0-9a-f]{15}/bin/[^/]+$`), "pipx install " + pypiPackage},
}

// pnpmStore matches paths in pnpm's store. Programs that pnpm has installed run from the store, and so may programs
// that `pnpm dlx` runs.
var pnpmStore = lazy.Regexp(`/links/@[^/]*/[^/]+/[^/]+/[0-9a-f]{64}/node_modules/`)

// Program returns the path that a hook or a service should use to run this program. If the mailtree on the PATH is
// this program, Program returns that path, which stays valid when a newer version replaces the program. Otherwise, it
// returns the path of the executable. If a package runner such as npx has started the program from its cache, the
// executable may be deleted at any time. In that case, Program returns ErrInvalid with the command that installs
// mailtree.
func Program() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fileError("Cannot determine the path of this program", err)
	}
	p, lookErr := exec.LookPath("mailtree")
	if err := cached(self, p); err != nil {
		return "", err
	}
	if lookErr == nil && filepath.IsAbs(p) {
		a, errA := os.Stat(p)
		b, errB := os.Stat(self)
		if errA == nil && errB == nil && os.SameFile(a, b) {
			return p, nil
		}
	}
	return self, nil
}

// cached returns ErrInvalid if the program's file is in the cache of a package runner. onPath is the mailtree on the
// PATH, or "".
func cached(self, onPath string) error {
	if real, err := filepath.EvalSymlinks(self); err == nil {
		self = real
	}
	if pnpmStore().MatchString(self) {
		self = onPath // `pnpm dlx` puts its cache first in the PATH
	}
	for _, r := range runners {
		if r.cache().MatchString(self) {
			return &refusal.Own{Kind: refusal.ErrInvalid, Text: fmt.Sprintf("%s runs mailtree from its cache, where the program "+
				"may be deleted at any time. Install mailtree, then try again: `%s`", r.name, r.install)}
		}
	}
	return nil
}
