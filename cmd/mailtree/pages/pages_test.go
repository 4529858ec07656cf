package pages

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestWrite checks the sections of the program's page and of two commands' pages. One of the commands describes its
// exit statuses itself, and the other does not. A hidden command must not have a page.
func TestWrite(t *testing.T) {
	t.Parallel()
	do := func(*cobra.Command, []string) {}
	root := &cobra.Command{Use: "post", Short: "Send letters", Long: "Send letters."}
	check := &cobra.Command{Use: "check", Short: "Check letters", Long: "Check letters.\nExit status 0: good. 1: bad.", Run: do}
	root.AddCommand(check, &cobra.Command{Use: "send", Short: "Send one", Run: do}, &cobra.Command{Use: "inner", Hidden: true, Run: do})
	dir := filepath.Join(t.TempDir(), "man1")
	err := Write(root, dir, Config{
		Version:     "1.2",
		Environment: []Entry{{"POST_BOX", "where letters *are*\n(default a-b)"}},
		Files:       []Entry{{".post", "settings"}},
		Statuses:    []Entry{{"0", "It worked."}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]string{
		"post.1": {
			`"post 1.2"`, ".SH ENVIRONMENT\n.TP\n\\fBPOST_BOX\\fP\nwhere letters *are* (default a\\-b)\n",
			".SH FILES\n.TP\n\\fB\\&.post\\fP\nsettings\n", ".SH EXIT STATUS\n.TP\n\\fB0\\fP\nIt worked.\n.SH SEE ALSO\n", "post-check(1)",
		},
		"post-check.1": {"Check letters.\n", ".SH EXIT STATUS\nExit status 0: good. 1: bad.\n.SH SEE ALSO", "\\fBpost\\fP(1) lists"},
		"post-send.1":  {".SH EXIT STATUS\n.TP\n\\fB0\\fP\nIt worked.\n.SH SEE ALSO"},
	} {
		page, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Error(err)
			continue
		}
		for _, text := range want {
			if !strings.Contains(string(page), text) {
				t.Errorf("%s does not contain %q:\n%s", name, text, page)
			}
		}
		if n := strings.Count(string(page), "Exit status"); n > 1 {
			t.Errorf("%s contains its exit statuses %d times", name, n)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "post-inner.1")); err == nil {
		t.Error("a hidden command has a page")
	}
	if check.Long != "Check letters.\nExit status 0: good. 1: bad." {
		t.Errorf("Write changed the command: %q", check.Long)
	}
}
