package gitlog

import (
	"io"
	"time"

	"mailtree/maildir/tree"
)

// engine reads and writes a repository. The rest of the package decides what to read and write, and when. There are
// two engines: gitProgram runs the git program, and builtIn works without it. A Log uses the same engine until it is
// closed. Each engine can use a repository that the other engine has written.
type engine interface {
	// read returns the content of an object of the given kind. The argument name is an object's hash, or COMMIT:PATH.
	// The caller must not change the content. The error wraps errNoObject if there is no such object.
	read(kind, name string) ([]byte, error)

	// resolve returns the commit whose name begins with prefix. The error wraps errNoObject if there is no such
	// commit, and embedded.ErrAmbiguous if there are several.
	resolve(prefix string) (hash, error)

	// eachCommit calls fn for a commit and its ancestors in the order of git log, newest first. If fn returns
	// fs.SkipAll, eachCommit stops and returns nil.
	eachCommit(tip hash, which commits, fn func(*commit) error) error

	// follows reports whether commit descends from older, or is the same commit.
	follows(commit, older hash) (bool, error)

	// changesOf returns the files that differ between two commits or trees.
	changesOf(from, to string) ([]*change, error)

	// changedIn returns the files that a commit changed. For a merge, it returns the files that differ from all
	// parents.
	changedIn(c *commit) ([]*change, error)

	// patch returns the changed lines of a file in the form that git diff shows.
	patch(from, to, path string) (string, error)

	// filesBelow calls each for the files below a folder of a commit, sorted by path.
	filesBelow(commit hash, folder string, each func(path, blob string)) error

	// status calls each with every path at which the work tree differs from the last commit, if the path is at or below
	// a wanted path. This includes untracked files that are not ignored. status may also call each with other paths. If
	// staged is set, the file is the same as in the index.
	status(w *tree.Tree, wanted map[string]bool, each func(path string, staged, untracked bool)) error

	// person returns the author that Git would use for a user's commit here, or "" if none is configured.
	person() (string, error)

	// newObjects returns a writer for the objects of a round. The parent of the round's first commit is base. The
	// caller must call Discard.
	newObjects(base hash) objects

	// checkIndex returns the state of the index. The error is a *hold if the index is damaged or has conflicts that a
	// user must resolve.
	checkIndex() (indexState, error)

	// makeIndex writes the next index, which is the current index with the changes, to file. It returns the checksum
	// of the next index, or zeros if the engine uses no index.
	makeIndex(file string, at hash, changes []*change) (hash, error)

	// placeIndex moves the next index into place, or removes the index if the engine uses none.
	placeIndex() error

	// Close closes the engine's open files and programs. The engine can still be used afterwards.
	Close()
}

// commits selects commits for eachCommit.
type commits struct {
	most  int       // maximum number of commits; 0 for all
	until time.Time // only commits made at or before this time; zero for all
	roots bool      // only commits without parents
	path  string    // only commits that changed files at or below the path; "" for all
}

// objects writes the objects of a round.
type objects interface {
	// entries returns the base commit's entries at paths, like repository.entries. It must be called before commit is
	// called for the first time.
	entries(paths ...string) (map[string]entry, error)

	// blob writes size bytes from in as a blob and returns the blob's name. If in contains fewer bytes, the error
	// wraps errChanging or the error from in, and no commit may refer to the blob.
	blob(size int64, in io.Reader) (hash, error)

	// commit writes a commit. Its first parent is the previous commit, and the commits in c.Merges are its other
	// parents.
	commit(c commitFor, makes []version) error

	// Finish makes all objects durable and returns the newest commit.
	Finish() (newest hash, err error)

	// Discard abandons the objects, which no ref refers to. It does nothing if Finish has been called.
	Discard()
}

// gitProgram is the engine that runs the git program.
type gitProgram struct {
	*repository
	objects process // git cat-file
	diffs   process // git diff-tree
}
