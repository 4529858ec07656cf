// Package object reads Git's objects: blobs, trees and commits in .git/objects.
//
// A Store reads them, and walks and compares trees; what it has read once it keeps in a Cache, which
// never gets stale because a name stands for a content. Reading looks into the packs itself
// (packSet), and goes through go-git for what it does not find there; both open the packs anew after
// a miss, because a person's gc may replace every pack at any time. No function waits for what
// somebody has put in the place of a file (SpecialError).
package object

import (
	"crypto/sha1"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
)

// Hash names an object; the zero Hash none.
type Hash = plumbing.Hash

// Kind of an object, as pack files number them.
type Kind uint8

// The kinds that a Writer takes.
const (
	KindCommit Kind = 1
	KindTree   Kind = 2
	KindBlob   Kind = 3
)

// String is the kind as Git names it.
func (k Kind) String() string {
	return [...]string{KindCommit: "commit", KindTree: "tree", KindBlob: "blob"}[k]
}

// Header is what Git hashes before the content of an object.
func Header(k Kind, size int64) []byte {
	b := append([]byte(k.String()), ' ')
	return append(strconv.AppendInt(b, size, 10), 0)
}

// HashOf is the name of an object. Git's own SHA-1 also looks for collisions, which is what makes
// it slow.
func HashOf(k Kind, data []byte) Hash {
	h := sha1.New()
	h.Write(Header(k, int64(len(data))))
	h.Write(data)
	return Hash(h.Sum(nil))
}

// Commit is a commit object to be made. Author and Committer are identities "Name <mail>".
type Commit struct {
	Author, Committer string
	Written, Made     time.Time
	Message           string
}

// Reflog is what a reflog line says of the commit, after the two hashes.
func (c Commit) Reflog(initial bool) string {
	what := "commit"
	if initial {
		what = "commit (initial)"
	}
	subject, _, _ := strings.Cut(c.Message, "\n")
	return fmt.Sprintf("%s %s\t%s: %s", c.Committer, GitTime(c.Made), what, subject)
}

// GitTime is a time as commits and reflogs write it. Git knows none before 1970.
func GitTime(t time.Time) string {
	return strconv.FormatInt(max(t.Unix(), 0), 10) + t.Format(" -0700")
}
