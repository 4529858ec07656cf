package wake

import "testing"

// TestIsExec: `codex exec` is recognised, because it drops whatever is queued for its thread.
func TestIsExec(t *testing.T) {
	for args, want := range map[string]bool{
		"codex\x00exec\x00hello\x00": true, "codex\x00-c\x00a=b\x00exec\x00hello\x00": true, "/x/codex\x00e\x00hello\x00": true,
		"codex\x00app-server\x00": false, "codex\x00--no-daemon\x00": false, "codex\x00": false, "": false,
	} {
		if got := isExec([]byte(args)); got != want {
			t.Errorf("%q: %v", args, got)
		}
	}
}
