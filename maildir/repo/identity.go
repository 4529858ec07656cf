package repo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"mailtree/maildir/tree"
)

// git runs a Git command that reads a .git folder, and returns its output. Git does not run any program that the
// repository configures, because such commands call no hooks, the file system monitor is off, and no fetch protocol is
// allowed.
func git(ctx context.Context, folder string, args ...string) ([]byte, error) {
	c := exec.CommandContext(ctx, "git", append([]string{"--no-pager", "-c", "core.fsmonitor=", "-c", "core.hooksPath=" + os.DevNull}, args...)...)
	c.Dir = folder
	c.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + folder, "LC_ALL=C", "GIT_DIR=" + folder, "GIT_WORK_TREE=" + folder,
		"GIT_OPTIONAL_LOCKS=0", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + os.DevNull, "GIT_NO_REPLACE_OBJECTS=1",
		"GIT_TERMINAL_PROMPT=0", "GIT_ALLOW_PROTOCOL=none", "GIT_NO_LAZY_FETCH=1",
	}
	c.WaitDelay = 100 * time.Millisecond
	out, err := c.Output()
	return out, errors.Join(err, ctx.Err())
}

// ErrNoFirst is returned by FirstCommits for a repository that has no commits or lacks its first ones, such as a
// shallow clone.
var ErrNoFirst = errors.New("the repository has no commits, or its history is incomplete")

// FirstCommits returns the first commits of HEAD's history, in hex, in the repository of the working tree with the
// given top. It runs Git, which walks the whole history. In a large repository, this takes seconds. FirstCommits
// returns ErrNoFirst, also if there is no git program. It may also return Git's error or ctx's error.
func FirstCommits(ctx context.Context, top string) ([]string, error) {
	_, common, err := GitFolders(top)
	if err != nil {
		return nil, err
	}
	if common == "" {
		return nil, ErrNoFirst
	}
	if _, err := os.Lstat(filepath.Join(common, "shallow")); err == nil {
		return nil, ErrNoFirst
	}
	out, err := git(ctx, common, "rev-list", "--max-parents=0", "--max-count=100", "HEAD", "--")
	var exit *exec.ExitError
	switch {
	case errors.Is(err, exec.ErrNotFound), errors.As(err, &exit) && strings.Contains(string(exit.Stderr), "bad revision 'HEAD'"):
		return nil, ErrNoFirst // if HEAD is a bad revision, its branch has no commits
	case err != nil:
		return nil, fmt.Errorf("cannot list the first commits: %w", err)
	}
	if all := strings.Fields(string(out)); len(all) > 0 {
		return all, nil
	}
	return nil, ErrNoFirst
}

// RemoteURL returns the address of the remote origin, or of the only remote, as it appears in the repository's
// configuration. folder is the top of a working tree, or a bare repository. RemoteURL returns "" if there is no such
// remote. It does not read included files. It returns an error only for a machine fault.
func RemoteURL(folder string) (string, error) {
	_, common, err := GitFolders(folder)
	if err != nil {
		return "", err
	}
	if common == "" {
		common = folder
	}
	data, _, err := tree.ReadPlain(filepath.Join(common, "config"), maxConfig)
	if err != nil {
		return "", tree.MachineFault(err)
	}
	urls := map[string]string{} // by remote
	for _, s := range settings(string(data)) {
		if s.section == "remote" && s.key == "url" && urls[s.sub] == "" {
			urls[s.sub] = s.value
		}
	}
	if len(urls) == 1 {
		for _, only := range urls {
			return only, nil
		}
	}
	return urls["origin"], nil
}
