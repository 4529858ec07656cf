package history

import (
	"context"
	"errors"
	"time"

	"mailtree/maildir/merge"
)

// Remote is the shared repository, through which a project's machines exchange a tree's history and the list of their
// claims. The shared branch is the branch with the same name in the repository that Git calls origin. Only Fetch, Push,
// FetchClaims and PushClaims contact the shared repository and use the user's Git configuration. The other methods use
// the most recently fetched data.
type Remote interface {
	// Fetch fetches the shared branch and the list of claims. If the shared branch lacks commits that it had at the
	// last fetch or push, somebody has force-pushed, and rewritten is true. Fetch returns ErrNoRemote if no origin is
	// configured. Any other error quotes Git's message.
	Fetch(ctx context.Context) (rewritten bool, err error)

	// Push pushes the branch without force. It returns ErrBehind if the shared branch has commits that the local branch
	// lacks. Otherwise it returns the same errors as Fetch.
	Push(ctx context.Context) error

	// Compare compares the local branch with the shared branch. It returns ErrForeign if they have no commit in common,
	// and ErrTooMany if too many files differ.
	Compare(ctx context.Context) (*MergeInput, error)

	// Touched returns the files that were changed by the commits from base to tip, each with the time of the last
	// commit that changed it. It returns ErrTooMany if the commits change too many files.
	Touched(ctx context.Context, base, tip string) (map[string]time.Time, error)

	// Fits returns ErrTooMany if the total size of the files with the given hashes is too large for a merge.
	Fits(ctx context.Context, hashes []string) error

	// Blobs calls do with a function that reads a file's content, given its hash or COMMIT:PATH. That function
	// returns ErrNoFile if there is no such file. Blobs returns any error from do.
	Blobs(ctx context.Context, do func(read func(name string) ([]byte, error)) error) error

	// SharedClaims returns two lists of claims. The first, there, is the list that was last fetched or pushed. The
	// second, here, is the list that KeepClaims last recorded. The caller must not change their Files.
	SharedClaims(ctx context.Context) (there, here Claims, err error)

	// FetchClaims fetches only the list of claims. It returns the same errors as Fetch.
	FetchClaims(ctx context.Context) error

	// WriteClaims stores a list of claims in Git. The argument files contains files that Git already has, and fresh
	// contains new files. WriteClaims also adds the new files to the map files.
	WriteClaims(ctx context.Context, files map[string]string, fresh map[string][]byte) (Claims, error)

	// PushClaims replaces the shared list if nobody else has changed it. The arguments are the names of the expected
	// list (was) and of the new list (is). An empty name means no list. PushClaims returns ErrBehind if the shared list
	// has changed, ErrDeclined if the host refuses the list, and ErrNoContact if nothing was sent. After any other
	// error, the shared list may or may not have been replaced.
	PushClaims(ctx context.Context, was, is string) error

	// KeepClaims records the name of the list that the tree now matches, or "" for none.
	KeepClaims(ctx context.Context, name string) error

	// Ready returns ErrNoRemote if no origin is configured, and a refusal.ErrUnavailable if no git program can contact
	// the shared repository.
	Ready() error

	// Origin returns the URL of the shared repository, without a password, or "" if no URL is configured.
	Origin() string
}

// These are the errors that Remote returns.
var (
	ErrNoRemote = errors.New("the mail folder has no Git remote called origin: run `git remote add origin URL` " +
		"there")
	ErrBehind    = errors.New("another machine pushed first")
	ErrForeign   = errors.New("the shared repository and the mail folder have no commit in common, so their mail cannot be merged")
	ErrNoContact = errors.New("the shared repository cannot be reached")
	ErrDeclined  = errors.New("the host of the shared repository rejects refs under refs/mailtree/, which machines " +
		"use to share claims")
	ErrNoFile  = errors.New("there is no such file")
	ErrTooMany = errors.New("the shared repository contains too many changed files, or too much data, for the server to process at once")
)

// MergeInput is the comparison of the local branch with the shared branch.
type MergeInput struct {
	Ours, Theirs, Base string // commit hashes; empty if there is no commit
	Ahead, Behind      int    // number of commits that only Ours or only Theirs contains
	Own                bool   // the local branch changed synchronized files, so there is something to push
	Files              []merge.File
}

// Claims is a list of all machines' claims.
type Claims struct {
	Name  string            // Git's object name for the list; empty if there is no list
	Files map[string]string // Git's object name for each claim's file, by path
}
