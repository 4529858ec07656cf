package guard

import (
	"errors"
	"strings"
	"testing"

	"mailtree/maildir/refusal"
)

// TestCached checks that a program in the cache of npx or uvx is refused with the command that installs mailtree, and
// that an installed or locally built program is accepted.
func TestCached(t *testing.T) {
	t.Parallel()
	for path, install := range map[string]string{
		"/home/ann/.npm/_npx/1f0c9d2e3b4a5968/node_modules/mailtree-linux-x64/bin/mailtree":     "npm install -g " + npmPackage,
		"/home/ann/.npm/_npx/1f0c9d2e/node_modules/@example/mailtree-darwin-arm64/bin/mailtree": "npm install -g " + npmPackage,
		"/home/ann/.cache/uv/archive-v0/Hk3vX-2_pQ/bin/mailtree":                                "uv tool install " + pypiPackage,
		"/home/ann/.local/share/uv/tools/mailtree/bin/mailtree":                                 "",
		"/usr/lib/node_modules/mailtree/node_modules/mailtree-linux-x64/bin/mailtree":           "",
		"/work/shop/node_modules/mailtree-linux-x64/bin/mailtree":                               "",
		"/usr/bin/mailtree":                         "",
		"/tmp/go-build1234567890/b001/exe/mailtree": "",
	} {
		err := cached(path)
		switch {
		case install == "" && err != nil:
			t.Errorf("%s: %v", path, err)
		case install != "" && (!errors.Is(err, refusal.ErrInvalid) || !strings.HasSuffix(err.Error(), "`"+install+"`")):
			t.Errorf("%s: %v, want %s", path, err, install)
		}
	}
}
