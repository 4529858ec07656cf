package guard

import (
	"path/filepath"
	"strings"
	"testing"

	"mailtree/fixtures/trap"
)

// TestEditUnchecked checks that if the claims cannot be read, the edit is allowed with a warning, unless the
// environment sets CLAIM_MODE to block.
func TestEditUnchecked(t *testing.T) {
	t.Parallel()
	store, dir := editScene(t)
	trap.Unreadable(t, filepath.Join(dir, "code/sub/.git/commondir"))
	e := Edit{Store: store, Agent: session("BlueLake"), Paths: []string{dir + "/code/sub/a.md"}, Now: noon}
	if deny, warn := CheckEdit(e); deny != "" || !strings.Contains(warn, "NOT CHECKED") || !strings.Contains(warn, "The edit continues") {
		t.Errorf("deny %q, warn %q", deny, warn)
	}
	e.Env = []string{"CLAIM_MODE=block"}
	if deny, warn := CheckEdit(e); warn != "" || !strings.Contains(deny, "CLAIM_MODE is set to block, so the edit is refused") {
		t.Errorf("deny %q, warn %q", deny, warn)
	}
}
