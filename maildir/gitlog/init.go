package gitlog

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"mailtree/maildir/format"
)

// newConfig is the content of .git/config in a repository that Init creates. Each setting that differs from Git's
// defaults keeps a user's configuration from interfering with the history. As a result, files are committed unchanged,
// no program is run, and Git's own maintenance never runs at the same time as a writer. fsmonitor is empty because Git
// before 2.36 would run a program named "false". See docs/explanation/durability.md, "Why it is done this way".
const newConfig = `[core]
	repositoryformatversion = 0
	filemode = true
	bare = false
	logallrefupdates = true
	autocrlf = false
	fsmonitor =
[gc]
	auto = 0
`

// Init creates a repository for the mail tree in dir, with the branch main and no commits, unless dir already has a
// repository. If Init is killed, there is either no repository or a complete one. Init does not need the git program.
// The error says why the repository could not be created. Open reports problems with an existing repository.
func Init(dir string) error {
	git := filepath.Join(dir, ".git")
	if _, err := os.Lstat(git); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	tmp := git + ".new"
	if err := os.RemoveAll(tmp); err != nil {
		return err
	}
	if err := os.Mkdir(tmp, 0o755); err != nil { // do not create dir, because it may have just been removed
		return err
	}
	var names []string
	for _, d := range []string{"objects/info", "objects/pack", "refs/heads", "refs/tags", "info"} {
		if err := os.MkdirAll(filepath.Join(tmp, d), 0o755); err != nil {
			return err
		}
		names = append(names, d)
	}
	for name, text := range map[string]string{
		"HEAD":         "ref: refs/heads/main\n",
		"config":       newConfig,
		"description":  "The mail of a mailtree project. The commits are its audit log.\n",
		"info/exclude": "/" + format.RunDir + "\n",
	} {
		if err := writeNew(filepath.Join(tmp, name), []byte(text), 0o644); err != nil {
			return err
		}
		names = append(names, name)
	}
	if err := syncAll(tmp, names...); err != nil {
		return err
	}
	if err := os.Rename(tmp, git); err != nil {
		return err
	}
	return syncAll(dir, ".git")
}
