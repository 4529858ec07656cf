package guard

import (
	"errors"
	"strings"
	"testing"

	"mailtree/maildir/refusal"
)

// TestCached checks that a program in the cache of a package runner is refused with the command that installs mailtree,
// and that an installed or locally built program is accepted.
func TestCached(t *testing.T) {
	t.Parallel()
	const (
		npm, bun, pnpm = "npm install -g " + npmPackage, "bun add -g " + npmPackage, "pnpm add -g " + npmPackage
		uv, pipx       = "uv tool install " + pypiPackage, "pipx install " + pypiPackage

		program = "mailtree-linux-x64/bin/mailtree"
		sum     = "f9e99c4313084f05f3756fa56ad93726b81c0db5970fe0def20a38dbc1eb55ea"
		dlx     = "/home/ann/.cache/pnpm/dlx/" + sum + "/1a2314b2602-167c/node_modules/"
		store   = "/home/ann/.local/share/pnpm/store/v10/links/@/mailtree-linux-x64/1.0.0/" + sum + "/node_modules/"
	)
	for _, tt := range []struct{ self, onPath, install string }{
		{"/home/ann/.npm/_npx/1f0c9d2e3b4a5968/node_modules/" + program, "", npm},
		{"/home/ann/.npm/_npx/1f0c9d2e/node_modules/@example/mailtree-darwin-arm64/bin/mailtree", "", npm},

		{"/home/ann/.bun/install/cache/.bunx-1000/mailtree@latest/node_modules/" + program, "", bun},
		{"/home/ann/.bun/install/cache/.bunx-1000/@example/mailtree@1.2.3/node_modules/" + program, "", bun},
		{"/tmp/bunx-1000-mailtree@latest/node_modules/" + program, "", bun},
		{"/tmp/bunx-1000-@example/mailtree@latest/node_modules/@example/" + program, "", bun},
		{"/home/ann/.bun/install/global/node_modules/" + program, "", ""},

		{dlx + ".pnpm/mailtree-linux-x64@1.0.0/node_modules/" + program, "", pnpm},
		{"/home/ann/.cache/pnpm/dlx/smhgbtkgtkozcqh6p5bsz2edfm/18f1a2b3c4d-3e8/node_modules/.pnpm/x@1.0.0/node_modules/" + program, "", pnpm},
		{"/home/ann/.local/share/pnpm/store/v3/tmp/dlx-4711/node_modules/.pnpm/x@1.0.0/node_modules/" + program, "", pnpm},
		{"/tmp/dlx-4711/5/node_modules/.pnpm/x@1.0.0/node_modules/" + program, "", pnpm},
		{store + program, dlx + ".bin/mailtree", pnpm},
		{store + program, "/home/ann/.local/share/pnpm/bin/mailtree", ""},
		{store + program, "", ""},
		{"/home/ann/.local/share/pnpm/global/5/.pnpm/mailtree-linux-x64@1.0.0/node_modules/" + program, "", ""},
		{"/usr/bin/mailtree", dlx + ".bin/mailtree", ""},
		{"/x/dlx/mailtree", "", ""},

		{"/tmp/xfs-cf032547/dlx-18274/.yarn/unplugged/mailtree-linux-x64-npm-1.0.0-4991c1c046/node_modules/" + program, "", npm},
		{"/private/var/folders/ab/T/xfs-cf032547/dlx-18274/node_modules/" + program, "", npm},
		{"/work/shop/.yarn/unplugged/mailtree-linux-x64-npm-1.0.0-4991c1c046/node_modules/" + program, "", ""},

		{"/home/ann/.cache/uv/archive-v0/M_008UUOjCLmTsu8/bin/mailtree", "", uv},
		{"/home/ann/.cache/uv/archive-v0/_Legacy-0123456789AbC/bin/mailtree", "", uv},
		{"/home/ann/.cache/uv/builds-v0/.tmpAb3dEf/bin/mailtree", "", uv},
		{"/home/ann/.local/share/uv/tools/mailtree/bin/mailtree", "", ""},
		{"/x/builds-v2/app/mailtree", "", ""},
		{"/x/builds-v2/app/bin/mailtree", "", ""},
		{"/x/archive-v2/app/bin/mailtree", "", ""},
		{"/x/environments-v2/prod/bin/mailtree", "", ""},

		{"/home/ann/.cache/pipx/c539b568024c72c/bin/mailtree", "", pipx},
		{"/home/ann/.local/pipx/.cache/c539b568024c72c/bin/mailtree", "", pipx},
		{"/Users/ann/Library/Caches/pipx/c539b568024c72c/bin/mailtree", "", pipx},
		{"/home/ann/.local/share/pipx/venvs/mailtree/bin/mailtree", "", ""},

		{"/usr/lib/node_modules/mailtree/node_modules/" + program, "", ""},
		{"/work/shop/node_modules/" + program, "", ""},
		{"/usr/bin/mailtree", "", ""},
		{"/tmp/go-build1234567890/b001/exe/mailtree", "", ""},
	} {
		err := cached(tt.self, tt.onPath)
		switch {
		case tt.install == "" && err != nil:
			t.Errorf("%s: %v", tt.self, err)
		case tt.install != "" && (!errors.Is(err, refusal.ErrInvalid) || !strings.HasSuffix(err.Error(), "`"+tt.install+"`")):
			t.Errorf("%s: %v, want %s", tt.self, err, tt.install)
		}
	}
}
