package gitlog

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"mailtree/maildir/history"
	"mailtree/maildir/lazy"
	"mailtree/maildir/tree"
)

// hold is an error that says why nothing can be committed at the moment. Operations wait until the hold ends. Callers
// outside the package get an error that wraps refusal.ErrUnavailable instead (unavailable).
type hold struct {
	mode   string // history.State.Mode
	reason string // a sentence that says what is wrong and what to do
	cause  error
}

// waiting returns a *hold that ends on its own, or once a user follows the instructions in its text.
func waiting(format string, args ...any) *hold {
	return &hold{mode: "waiting", reason: fmt.Sprintf(format, args...)}
}

// detached returns a *hold that lasts until a user checks out the recorded branch again.
func detached(format string, args ...any) *hold {
	return &hold{mode: history.Detached, reason: fmt.Sprintf(format, args...)}
}

// notAudited returns a *hold for a repository that cannot be used.
func notAudited(format string, args ...any) *hold {
	return &hold{mode: "off", reason: "The server cannot commit the mail: " + fmt.Sprintf(format, args...)}
}

func (h *hold) Error() string { return h.reason }
func (h *hold) Unwrap() error { return h.cause }

// holdOf returns the *hold that an error wraps, or nil if there is none.
func holdOf(err error) *hold {
	var h *hold
	if errors.As(err, &h) {
		return h
	}
	return nil
}

// head is the branch and commit of HEAD.
type head struct {
	branch string // full name of the branch; "" if HEAD is detached
	commit hash   // zero before the first commit
}

func (r *repository) path(name string) string { return filepath.Join(r.git, filepath.FromSlash(name)) }

// head reads HEAD and its branch.
func (r *repository) head() (head, error) {
	b, err := readSmall(r.path("HEAD"))
	if err != nil {
		return head{}, noHead(err)
	}
	text := strings.TrimSpace(string(b))
	name, ok := strings.CutPrefix(text, "ref:")
	if !ok {
		return head{commit: plumbing.NewHash(text)}, nil
	}
	name = strings.TrimSpace(name)
	if !validBranch(name) {
		return head{}, nil
	}
	h, err := r.ref(name)
	return head{name, h}, err
}

// validBranch reports whether name is a safe branch name in refs/heads. Names read from HEAD and similar files must be
// checked, because a user may have edited these files.
func validBranch(name string) bool {
	if !strings.HasPrefix(name, "refs/heads/") || strings.ContainsAny(name, "\\\x00\n\r :?*[~^") {
		return false
	}
	return path.Clean(name) == name && !strings.HasSuffix(name, ".lock")
}

// ref reads a branch from its own file or, if that file does not exist, from packed-refs. It returns the zero hash if
// the branch does not exist.
func (r *repository) ref(name string) (hash, error) {
	b, err := readSmall(r.path(name))
	if err == nil {
		text := strings.TrimSpace(string(b))
		if !plumbing.IsHash(text) {
			return hash{}, waiting("The mail branch %s is damaged or is a symbolic ref. Its last commit is usually the second "+
				"hash in the last line of .git/logs/%s. In the mail folder, write that hash to the branch: "+
				"`echo HASH > %s`", name, name, shellWord(".git/"+name))
		}
		return plumbing.NewHash(text), nil
	}
	if !errors.Is(err, fs.ErrNotExist) && !isFolder(r.path(name)) {
		return hash{}, err
	}
	packed, _, err := tree.ReadPlain(r.path("packed-refs"), maxPacked)
	for line := range strings.Lines(string(packed)) {
		hex, ref, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if ok && ref == name && plumbing.IsHash(hex) {
			return plumbing.NewHash(hex), nil
		}
	}
	return hash{}, tree.IgnoreGone(err)
}

func isFolder(path string) bool {
	fi, err := os.Lstat(path)
	return err == nil && fi.IsDir()
}

// noHead returns the error to report if HEAD cannot be read. If err is transient, noHead returns err.
func noHead(err error) error {
	if transient(err) {
		return err
	}
	h := notAudited(".git/HEAD cannot be read. Make the file readable, or restore it.")
	h.cause = err
	return h
}

const (
	maxSmall  = 1 << 20   // size limit, in bytes, for a file that contains a line or a page of text
	maxPacked = 256 << 20 // size limit, in bytes, for packed-refs
)

// readSmall reads a file in .git, up to maxSmall bytes. It does not block on a FIFO.
func readSmall(path string) ([]byte, error) {
	b, _, err := tree.ReadPlain(path, maxSmall)
	return b, err
}

// recorded returns the name of the recorded branch, on which the server commits. It returns "" if no branch is
// recorded, or if a power failure has damaged the record.
func (r *repository) recorded() (string, error) {
	b, err := readSmall(r.path(branchFile))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	case err != nil:
		return "", err
	}
	if name := strings.TrimSpace(string(b)); validBranch(name) {
		return name, nil
	}
	return "", nil
}

// busy returns a *hold if a user has started, but not finished, a merge or a similar operation. Any other error is
// transient.
func (r *repository) busy() error {
	for _, s := range []struct{ name, what, do string }{
		{"MERGE_HEAD", "a merge", "git commit, or git merge --abort"},
		{"rebase-merge", "a rebase", "git rebase --continue, or git rebase --abort"},
		{"rebase-apply", "a rebase or git am", "git rebase --continue or git am --continue, or cancel it with --abort instead"},
		{"CHERRY_PICK_HEAD", "a cherry-pick", "git cherry-pick --continue, or git cherry-pick --abort"},
		{"REVERT_HEAD", "a revert", "git revert --continue, or git revert --abort"},
		{"sequencer", "a series of cherry-picks or reverts", "git cherry-pick --continue or git revert --continue, or cancel " +
			"it with --abort instead"},
	} {
		_, err := os.Lstat(r.path(s.name))
		if transient(err) {
			return err
		}
		if err != nil {
			continue
		}
		if branch := r.movedSince(s.name); branch != "" {
			s.do = fmt.Sprintf("git rebase --quit and git checkout %s, then start the rebase again. Do not use --abort: "+
				"it would remove a commit that was added to the branch while the rebase was starting", branch)
		}
		return waiting("The mail repository is in the middle of %s. Finish it with %s. New mail is safe, "+
			"but is not committed until that operation has ended.", s.what, s.do)
	}
	return nil
}

// movedSince returns the branch that is being rebased, quoted for a shell, if that branch has moved since the rebase
// read it. Otherwise, movedSince returns "". The branch moves in this way if we commit after Git has read the branch
// but before Git creates the rebase's folder.
func (r *repository) movedSince(folder string) string {
	name, noName := readSmall(r.path(folder + "/head-name"))
	looked, noHash := readSmall(r.path(folder + "/orig-head"))
	branch := strings.TrimSpace(string(name))
	if noName != nil || noHash != nil || !validBranch(branch) {
		return ""
	}
	tip, err := r.ref(branch)
	if err != nil || tip.String() == strings.TrimSpace(string(looked)) {
		return ""
	}
	return shellWord(strings.TrimPrefix(branch, "refs/heads/"))
}

// onBranch returns HEAD if HEAD is on the recorded branch, and a *hold otherwise. If no branch is recorded, any
// branch is accepted.
func (r *repository) onBranch(recorded string) (head, error) {
	h, err := r.head()
	if err != nil {
		return h, err
	}
	switch {
	case h.branch == "" && recorded == "":
		return h, detached("The mail repository is not on a branch (detached HEAD), so new mail is kept but not " +
			"committed. Check out a branch.")
	case recorded == "" || h.branch == recorded:
		return h, nil
	}
	tip, err := r.ref(recorded)
	if err != nil {
		return h, err
	}
	at := "no branch (detached HEAD)"
	if h.branch != "" {
		at = "branch " + strings.TrimPrefix(h.branch, "refs/heads/")
	}
	if tip.IsZero() {
		return h, branchGone(at, recorded)
	}
	return h, elsewhere(at, recorded)
}

// branchGone returns an error that says how to restore the recorded branch, which a user has renamed or deleted.
func branchGone(at, recorded string) error {
	short := shellWord(strings.TrimPrefix(recorded, "refs/heads/"))
	return detached("The mail repository is on %s, and the mail branch %s no longer exists. New mail is kept "+
		"but not committed until the branch exists again. Run `git checkout -b %s` in the mail folder, which "+
		"creates the branch at HEAD.", at, short, short)
}

// elsewhere returns an error that says how to return to the recorded branch. `git checkout` refuses to overwrite
// uncommitted files, and mailtree's newest files have not been committed. Such a file may also exist on the recorded
// branch, for example the mark of a message that was acknowledged on both branches. Therefore, the suggested command
// first resets the index entry of each uncommitted file to that of the recorded branch. Git then keeps the file
// (git-read-tree(1), two tree merge, cases 6, 7, 18 and 19). Unlike with git stash, the files always stay on disk. The
// -r option of xargs is necessary, because a reset without paths would move the checked-out branch. Staged changes, and
// files that the recorded branch has removed, are left to the user.
func elsewhere(at, recorded string) error {
	short := shellWord(strings.TrimPrefix(recorded, "refs/heads/"))
	return detached("The mail repository is on %s. New mail is kept but not committed until the repository is "+
		"back on %s. Run `git checkout %s` in the mail folder. If Git reports that files would be overwritten, "+
		"run `git ls-files -zmo --exclude-standard | xargs -0r git --literal-pathspecs reset -q %s -- && git "+
		"checkout %s` there instead. That leaves those files unchanged.", at, short, short, short, short)
}

var plainWord = lazy.Regexp(`^[A-Za-z0-9_./][A-Za-z0-9_./-]*$`)

// shellWord quotes the name of a branch for a shell if necessary. Git allows most characters in such a name.
func shellWord(name string) string {
	if plainWord().MatchString(name) {
		return name
	}
	return "'" + strings.ReplaceAll(name, "'", `'\''`) + "'"
}
