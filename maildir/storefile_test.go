package maildir

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"mailtree/maildir/core"
	"mailtree/maildir/hook"
	"mailtree/maildir/registry"
	"mailtree/maildir/storedir"
)

const logFile = "server.log"

// storeFiles lists the store's own files.
var storeFiles = []string{"server.lock", "key", "token", storedir.OwnersFile, storedir.TrustedSendersFile, hook.ListFile, "hooks.log", logFile}

// TestFileProblems replaces the store's own files with other types of files, and checks that FileProblems reports the
// type. A missing file must not be reported.
func TestFileProblems(t *testing.T) {
	t.Parallel()
	if got := FileProblems(t.TempDir()); len(got) > 0 {
		t.Errorf("problems in an empty folder: %v", got)
	}
	for what, make := range map[string]func(file string) error{
		"a named pipe": mkfifo,
		"a folder":     func(file string) error { return os.Mkdir(file, 0o700) },
		"a socket": func(file string) error {
			l, err := net.Listen("unix", file)
			if err == nil {
				t.Cleanup(func() { l.Close() })
			}
			return err
		},
		"a device": func(file string) error { return os.Symlink("/dev/null", file) },
	} {
		root := t.TempDir()
		for _, name := range storeFiles {
			if err := make(filepath.Join(root, name)); err != nil {
				t.Fatal(err)
			}
		}
		got := FileProblems(root)
		for _, name := range storeFiles {
			what := what
			if what == "a device" && (name == logFile || name == "server.lock") { // a link at this path is not followed
				what = "a symbolic link"
			}
			if !slices.ContainsFunc(got, func(err error) bool {
				return strings.Contains(err.Error(), name+" is "+what) && errors.Is(err, ErrUnavailable)
			}) {
				t.Errorf("%s as %s is not reported: %v", name, what, got)
			}
		}
		if len(got) != len(storeFiles) {
			t.Errorf("%d problems: %v", len(got), got)
		}
		if l, err := storedir.Take(root); err == nil || storedir.Held(root) || storedir.Holder(root) != "unknown" {
			t.Errorf("a lock in %s was taken: %v", what, l)
		}
		if l, err := (&Store{core: &core.Store{Config: Config{Root: root, Now: time.Now}}}).OpenHookLog(); l != nil || !errors.Is(err, ErrUnavailable) {
			t.Errorf("a hook log in %s was opened: %v", what, err)
		}
		if f, err := storedir.OpenLog(root); err == nil {
			f.Close()
			t.Errorf("a log in %s was opened", what)
		}
	}
}

// TestFullOwners checks that owners.json is not changed if it has reached its maximum size.
func TestFullOwners(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	file := filepath.Join(root, storedir.OwnersFile)
	text := `{"p/` + strings.Repeat("a", registry.MaxJSON-100) + `": 7}`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	o := core.NewOwners(root)
	if err := o.Set("p/"+strings.Repeat("b", 100), 8); !errors.Is(err, ErrTooLarge) {
		t.Error(err)
	}
	if data, err := os.ReadFile(file); err != nil || string(data) != text {
		t.Errorf("%d bytes, %v", len(data), err)
	}
}
