package gitlog

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRoundObeysNobody checks that commits, comparisons and searches run no program from the repository's
// configuration, attributes or hooks, and that files are committed unchanged.
func TestRoundObeysNobody(t *testing.T) {
	t.Parallel()
	tr := newTree(t, Config{External: true})
	evil := filepath.Join(t.TempDir(), "evil")
	tr.script(evil, "touch "+evil+".ran\ncat\n")
	text := "[filter \"x\"]\n\trequired = true\n"
	for _, key := range []string{"clean", "smudge", "process"} {
		text += "\t" + key + " = " + evil + "\n"
	}
	text += fmt.Sprintf("[core]\n\tautocrlf = true\n\tfsmonitor = %s\n\thooksPath = %s\n\tpager = %s\n", evil, filepath.Dir(evil), evil) +
		fmt.Sprintf("[diff]\n\texternal = %s\n[gpg]\n\tprogram = %s\n[log]\n\tshowSignature = true\n", evil, evil)
	for _, hook := range []string{"reference-transaction", "post-index-change", "fsmonitor-watchman", "pre-commit"} {
		tr.check(os.Symlink(evil, filepath.Join(filepath.Dir(evil), hook)))
		tr.check(os.MkdirAll(tr.path(".git/hooks"), 0o755))
		tr.check(os.Symlink(evil, tr.path(".git/hooks/"+hook)))
	}
	config := tr.file(".git/config")
	tr.check(os.WriteFile(tr.path(".git/config"), append(config, text...), 0o644))
	tr.write(".git/info/attributes", "* filter=x text ident\n")
	tr.write(".gitattributes", "* filter=x text eol=lf ident\n")
	tr.write("crlf", "one\r\n$Id$\r\n")
	tr.write(".git/mailtree-git/commondir", "..\n") // as if this file came from another user's .git
	tr.log.RecordEdits([]string{".gitattributes", "crlf"})
	tr.send("m1", "m1")
	tr.flush()
	tr.write("later", "two\r\n")
	tr.reopen(Config{External: true})
	tr.caughtUp()
	if n := len(tr.walk(everything())); n < 4 {
		t.Errorf("%d commits", n)
	}
	if _, err := os.Lstat(evil + ".ran"); err == nil {
		t.Error("a program from the repository ran")
	}
	tr.check(os.WriteFile(tr.path(".git/config"), config, 0o644))
	tr.equal("bytes", tr.git("cat-file", "-p", "HEAD:crlf")+tr.git("cat-file", "-p", "HEAD:later"), "one\r\n$Id$\r"+"two\r")
	tr.equal("files", strings.ReplaceAll(tr.git("ls-tree", "-r", "--name-only", "HEAD"), "\n", " "), ".gitattributes .gitignore crlf later m1")
}

// TestVersions checks that Git 2.34 and newer are accepted.
func TestVersions(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]bool{
		"2.34.1": true, "2.39.5 (Apple Git-154)": true, "3.0": true, "2.33.8": false, "1.99": false, "x": false, "": false,
	} {
		if isRecent(version) != want {
			t.Errorf("%q: %v", version, !want)
		}
	}
}
