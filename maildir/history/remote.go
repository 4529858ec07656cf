package history

import (
	"context"
	"errors"
	"time"

	"mailtree/maildir/merge"
)

// Remote is the copy of a tree's history that the machines of a mail share: the branch of the same name in
// the repository that Git calls origin, and beside it the list of the machines' claims. Fetch, Push,
// FetchClaims and PushClaims alone reach other machines, and alone use the user's configuration of Git. The
// others look at what was fetched last.
type Remote interface {
	// Fetch fetches the shared branch and the list of claims. It reports whether the branch lacks commits that
	// it had when it was fetched or pushed last: somebody has pushed with force. It returns ErrNoRemote if no
	// origin is configured, and otherwise an error in Git's words.
	Fetch(ctx context.Context) (rewritten bool, err error)

	// Push pushes the branch, without force. It returns ErrBehind if the shared branch has commits that the
	// branch lacks, and otherwise the errors of Fetch.
	Push(ctx context.Context) error

	// Compare compares the branch with the shared one. It returns ErrForeign if they have no commit in common,
	// and ErrTooMany.
	Compare(ctx context.Context) (*MergeInput, error)

	// Touched returns, for the files that the commits from base to tip changed, the time of the last of these
	// commits. It returns ErrTooMany.
	Touched(ctx context.Context, base, tip string) (map[string]time.Time, error)

	// Fits returns ErrTooMany if files, given by their hashes, have more bytes together than are taken at once.
	Fits(ctx context.Context, hashes []string) error

	// Blobs calls do with a function that returns the content of a file by its hash, or by COMMIT:PATH; ErrNoFile
	// if there is none. It returns the error of do.
	Blobs(ctx context.Context, do func(read func(name string) ([]byte, error)) error) error

	// SharedClaims returns the list of claims as it was fetched or pushed last, and as the tree has it. The caller
	// must not change their files.
	SharedClaims(ctx context.Context) (there, here Claims, err error)

	// FetchClaims fetches the list of claims alone. Errors are those of Fetch.
	FetchClaims(ctx context.Context) error

	// WriteClaims makes a list of files that Git has, and of fresh ones, which it adds to files.
	WriteClaims(ctx context.Context, files map[string]string, fresh map[string][]byte) (Claims, error)

	// PushClaims makes is the shared list if that is still was; "" for none. It returns ErrBehind if it is another
	// by now, ErrDeclined if the host refuses the list, and ErrNoContact if nothing was sent. After any other
	// error the list may be either.
	PushClaims(ctx context.Context, was, is string) error

	// KeepClaims notes which list the tree has; "" for none.
	KeepClaims(ctx context.Context, name string) error

	// Origin returns the address of the shared repository without a password; "" if none is configured.
	Origin() string
}

// Errors of Remote.
var (
	ErrNoRemote = errors.New("the mail's folder has no Git remote called origin: run `git remote add origin URL` " +
		"there")
	ErrBehind    = errors.New("another machine pushed first")
	ErrForeign   = errors.New("the shared repository contains other mail: the two histories have no commit in common")
	ErrNoContact = errors.New("the shared repository cannot be reached")
	ErrDeclined  = errors.New("the host of the shared repository rejects refs below refs/mailtree/, through which " +
		"machines share claims")
	ErrNoFile  = errors.New("there is no such file")
	ErrTooMany = errors.New("more files or bytes have changed there than the server fetches at once")
)

// MergeInput is how a branch and the shared branch stand to each other.
type MergeInput struct {
	Ours, Theirs, Base string // commits; "": there is none
	Ahead, Behind      int    // commits that only the one or the other has
	Own                bool   // the branch has changed files that cross: there is something to push
	Files              []merge.File
}

// Claims is a list of the claims of all machines.
type Claims struct {
	Name  string            // that Git gives it; "": there is none
	Files map[string]string // Git's name of the content, by the path of the claim's file
}
