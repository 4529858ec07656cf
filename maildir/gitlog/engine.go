package gitlog

import (
	"io"
	"time"

	"mailtree/maildir/tree"
)

// engine reads and writes a repository. The rest of the package decides what to read and write, and when. There are
// two engines: gitProgram runs the git program, and builtIn works without it. A Log never changes its engine. Either
// engine can use a repository that the other has written.
type engine interface {
	// read returns the content of an object of the given kind. name is an object's hash, or COMMIT:PATH. The caller
	// must not change the content. The error wraps errNoObject if there is no such object.
	read(kind, name string) ([]byte, error)

	// resolve returns the commit whose name begins with prefix. The error wraps errNoObject or embedded.ErrAmbiguous if
	// there is not exactly one.
	resolve(prefix string) (hash, error)

	// eachCommit calls fn for a commit and its ancestors in the order of git log, newest first. If fn returns
	// fs.SkipAll, eachCommit ends and returns nil.
	eachCommit(tip hash, which commits, fn func(*commit) error) error

	// follows reports whether older is an ancestor of commit, or the same commit.
	follows(commit, older hash) (bool, error)

	// changesOf returns the files that differ between two commits or trees.
	changesOf(from, to string) ([]*change, error)

	// changedIn returns the files that a commit changed. For a merge, it returns the files that differ from all
	// parents.
	changedIn(c *commit) ([]*change, error)

	// patch returns the changed lines of a file as git diff shows them.
	patch(from, to, path string) (string, error)

	// filesBelow calls each for the files below a folder of a commit, sorted by path.
	filesBelow(commit hash, folder string, each func(path, blob string)) error

	// status calls each for the paths, at or below the wanted paths, at which the work tree differs from the last
	// commit. These include untracked files that are not ignored. It may also call each for other paths. If staged is
	// set, the file equals the index.
	status(w *tree.Tree, wanted map[string]bool, each func(path string, staged, untracked bool)) error

	// person returns the identity that Git would use for a commit made here by hand, or "" if none is configured.
	person() (string, error)

	// newObjects returns a writer for the objects of a round. The caller must call Discard. The parent of the first
	// commit is base.
	newObjects(base hash) objects

	// checkIndex returns the state of the index. It returns a *hold if the index is damaged or has conflicts that a
	// user must resolve.
	checkIndex() (indexState, error)

	// makeIndex writes the next index to file: the current index with the changes. It returns the checksum of the next
	// index, or zeros if there will be none.
	makeIndex(file string, at hash, changes []*change) (hash, error)

	// placeIndex moves the next index into place, or removes the index if there is no next index.
	placeIndex() error

	// lockRef locks HEAD and the branch for the move that a mark describes. It returns errMoved if the branch has
	// another value, and a *hold if another program holds a lock.
	lockRef(m *mark) (refLock, error)

	// Close closes the engine's open files and programs. The engine can still be used afterwards.
	Close()
}

// commits selects commits for eachCommit.
type commits struct {
	most  int       // at most this many; 0 for all
	until time.Time // only commits made at or before this time; zero for all
	roots bool      // only commits without parents
	path  string    // only commits that changed files at or below the path; "" for all
}

// objects writes the objects of a round.
type objects interface {
	// blob writes size bytes of in as a blob and returns the blob's name. If in has fewer bytes, the error wraps
	// errChanging or the error from in, and no commit may refer to the blob.
	blob(size int64, in io.Reader) (hash, error)

	// commit writes a commit. Its first parent is the previous commit. The commits in c.Merges are its other parents.
	commit(c commitFor, makes []version) error

	// Finish waits until all objects are durable and returns the newest commit.
	Finish() (newest hash, err error)

	// Discard abandons the objects unless Finish has been called. No ref points to them.
	Discard()
}

// refLock holds the locks of HEAD and a branch.
type refLock interface {
	Move() error  // moves the branch, writes the reflogs and releases the locks
	Close() error // releases the locks that are still held
}

// gitProgram is the engine that runs the git program.
type gitProgram struct {
	*repository
	objects process // git cat-file
	diffs   process // git diff-tree
}
