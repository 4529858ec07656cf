package command

import (
	"strings"
	"testing"
	"time"
)

// TestSummarize checks that the command's output becomes the summary, and that the error gives the reason if the
// command fails.
func TestSummarize(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		line, want, fails string
		limit             time.Duration
	}{
		{line: "tr a-z A-Z", want: "THREAD"},
		{line: "echo read nothing", want: "read nothing"},
		{line: `printf 'a\033[31mb\tc\nd\r'`, want: "a[31mb\tc\nd"},
		{line: "exit 3", fails: "exit status 3"},
		{line: "cat >/dev/null", fails: "output is empty"},
		{line: `printf '\377'`, fails: "output is empty"},
		{line: "head -c 20000 /dev/zero | tr '\\0' x", fails: "longer than 16384 bytes"},
		{line: "sleep 60 & sleep 60", limit: 50 * time.Millisecond, fails: "timed out after 50ms"},
	} {
		got, err := New(c.line, c.limit).Summarize(t.Context(), []byte("thread\n"))
		if got != c.want || (err != nil) != (c.fails != "") || err != nil && !strings.Contains(err.Error(), c.fails) {
			t.Errorf("%s: %q, %v", c.line, got, err)
		}
	}
}
