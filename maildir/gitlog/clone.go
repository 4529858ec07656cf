package gitlog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"mailtree/maildir/format"
	"mailtree/maildir/history"
	"mailtree/maildir/merge"
)

// Clone creates a project's repository and files in dir from another repository. The folder dir must be empty, and no
// other program may use it. Clone skips files that are not synchronized between machines, and the server's next commit
// removes them from the repository. Clone runs no programs from the other repository and follows no links in it. The
// error quotes Git's message, or says what is wrong with the other repository.
func Clone(ctx context.Context, dir, url string) error {
	program, err := findGit()
	switch {
	case err == nil:
		err = Init(dir)
	case errors.Is(err, exec.ErrNotFound):
		err = noSync()
	}
	if err != nil {
		return err
	}
	r := (&Log{cfg: Config{Dir: dir}, git: findGit}).newRepository(ctx, newMemory())
	defer r.Close()
	names := "+refs/heads/*:refs/remotes/" + remoteName + "/*" // used if a user runs git fetch
	for _, s := range [][2]string{{"url", url}, {"fetch", names}} {
		if err := r.plainly(nil, "config", "remote."+remoteName+"."+s[0], s[1]); err != nil {
			return err
		}
	}
	branch, err := r.sharedBranch(program)
	if err != nil {
		return err
	}
	if err := r.fetch(program, branch, false, false); err != nil {
		return err
	}
	theirs, err := r.ref(remoteRef)
	if err != nil {
		return err
	}
	left, err := r.takeFiles(theirs)
	if err != nil {
		return err
	}
	tip := theirs.String()
	if err := r.plainly(nil, "read-tree", tip); err != nil {
		return err
	}
	if len(left) > 0 {
		if tip, err = r.leaveOut(tip, left); err != nil {
			return err
		}
	}
	if err := r.plainly(nil, "update-ref", branch, tip); err != nil {
		return err
	}
	if err := r.plainly(nil, "symbolic-ref", "HEAD", branch); err != nil {
		return err
	}
	return syncAll(dir, ".git")
}

// plainly runs a git command in the repository itself, not in ownFolder. The command ignores the system's and the
// user's configuration.
func (r *repository) plainly(in []byte, args ...string) error {
	_, err := r.plain(in, args...)
	return err
}

func (r *repository) plain(in []byte, args ...string) (string, error) {
	program, err := r.program()
	if err != nil {
		return "", err
	}
	c := gitCommand(r.ctx, program, r.git, append([]string{"-c", "core.fsync=all"}, args...)...)
	var said bytes.Buffer
	c.Stdin, c.Stderr = bytes.NewReader(in), &said
	for _, who := range []string{"AUTHOR", "COMMITTER"} {
		c.Env = append(c.Env, "GIT_"+who+"_NAME="+serverName, "GIT_"+who+"_EMAIL="+serverName+"@"+defaultDomain)
	}
	out, err := c.Output()
	if err != nil {
		err = &gitError{args: args, said: said.String(), err: err}
	}
	return strings.TrimSpace(string(out)), err
}

// sharedBranch returns the branch that contains the mail in the other repository. This is main if it exists. Otherwise,
// it is the only branch.
func (r *repository) sharedBranch(program string) (string, error) {
	out, err := r.runRemote(r.ctx, program, "ls-remote", "--heads", "--", remoteName)
	if err != nil {
		return "", err
	}
	var found []string
	for line := range strings.Lines(out) {
		_, ref, _ := strings.Cut(strings.TrimSpace(line), "\t")
		if ref == "refs/heads/main" {
			return ref, nil
		}
		if validBranch(ref) {
			found = append(found, ref)
		}
	}
	switch len(found) {
	case 0:
		return "", errors.New("that repository is empty: first enable sync on a machine that " +
			"has the mail")
	case 1:
		return found[0], nil
	}
	return "", fmt.Errorf("that repository has %d branches, but none of them is named main", len(found))
}

// takeFiles writes files from a commit to the work tree: the files that machines synchronize, and the .gitignore and
// .gitattributes at the top level. It returns the paths of all other files.
func (r *repository) takeFiles(theirs hash) (left []string, err error) {
	is := map[string]merge.Entry{}
	err = r.crossed(emptyTree.String(), theirs.String(), func(f merge.File) error {
		is[f.Path] = f.Theirs
		if len(is) > mostCrossed {
			return history.ErrTooMany
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if is[format.ProjectFile].Mode != merge.Plain {
		return nil, errors.New("that repository has no mail: " + format.ProjectFile + " is missing")
	}
	var hashes []string
	for _, e := range is {
		hashes = append(hashes, e.Hash)
	}
	if err := r.fits(hashes); err != nil {
		return nil, err
	}
	made := map[string]bool{}
	for path, e := range is {
		forGit := path == format.GitIgnore || path == format.GitAttributes
		if e.Mode != merge.Plain || !forGit && !merge.Crosses(path) {
			left = append(left, path)
			continue
		}
		file := filepath.Join(r.dir, filepath.FromSlash(path))
		if dir := filepath.Dir(file); !made[dir] {
			if err := os.MkdirAll(dir, 0o700); err != nil {
				return nil, err
			}
			made[dir] = true
		}
		data, err := r.read("blob", e.Hash)
		if err == nil {
			err = writeNew(file, data, 0o600)
		}
		if err != nil {
			return nil, err
		}
	}
	return left, nil
}

// leaveOut creates a commit on top of tip that removes the files at paths, and returns the new commit. The index must
// match tip.
func (r *repository) leaveOut(tip string, paths []string) (string, error) {
	none := strings.Repeat("0", 40)
	var info bytes.Buffer
	for _, path := range paths {
		fmt.Fprintf(&info, "0 %s\t%s\x00", none, path)
	}
	if err := r.plainly(info.Bytes(), "update-index", "-z", "--index-info"); err != nil {
		return "", err
	}
	made, err := r.plain(nil, "write-tree")
	if err != nil {
		return "", err
	}
	text := fmt.Sprintf("sync: joined; removed %d files that mailtree does not synchronize\n\nMail-Op: sync\n", len(paths))
	return r.plain(nil, "commit-tree", made, "-p", tip, "-m", text)
}
