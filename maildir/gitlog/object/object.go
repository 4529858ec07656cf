// Package object reads and writes Git's objects: blobs, trees and commits in .git/objects.
//
// A Writer collects the objects of a commit and puts them into place, a few as loose files, many as
// one pack; nothing is visible to Git before Finish. A Store reads them, and walks and compares
// trees; what it has read once it keeps in a Cache, which never gets stale because a name stands
// for a content.
//
// Writing follows Git's own protocol: an object is durable before it has its name, and one that is
// there already is touched, so that a prune that runs beside us keeps it. Packs are of whole
// objects, without deltas. Reading looks into the packs itself (packSet), and goes through
// go-git for what it does not find there; both open the packs anew after a miss, because a person's
// gc may replace every pack at any time. No function waits for what somebody has put in
// the place of a file (SpecialError).
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

// header is what Git hashes before the content.
func header(k Kind, size int64) []byte {
	b := append([]byte(k.String()), ' ')
	return append(strconv.AppendInt(b, size, 10), 0)
}

// HashOf is the name of an object. Git's own SHA-1 also looks for collisions, which is what makes
// it slow.
func HashOf(k Kind, data []byte) Hash {
	h := sha1.New()
	h.Write(header(k, int64(len(data))))
	h.Write(data)
	return Hash(h.Sum(nil))
}

// Commit is a commit object to be made. Author and Committer are identities "Name <mail>".
type Commit struct {
	Tree, Parent      Hash // Parent is zero in the first commit
	Author, Committer string
	Written, Made     time.Time
	Message           string
}

// Encode returns the content of the object.
func (c Commit) Encode() []byte {
	b := fmt.Appendf(nil, "tree %s\n", c.Tree)
	if !c.Parent.IsZero() {
		b = fmt.Appendf(b, "parent %s\n", c.Parent)
	}
	b = fmt.Appendf(b, "author %s %s\n", c.Author, gitTime(c.Written))
	b = fmt.Appendf(b, "committer %s %s\n", c.Committer, gitTime(c.Made))
	return append(append(b, '\n'), c.Message...)
}

// Reflog is what a reflog line says of the commit, after the two hashes.
func (c Commit) Reflog() string {
	what := "commit"
	if c.Parent.IsZero() {
		what = "commit (initial)"
	}
	subject, _, _ := strings.Cut(c.Message, "\n")
	return fmt.Sprintf("%s %s\t%s: %s", c.Committer, gitTime(c.Made), what, subject)
}

// gitTime is a time as commits and reflogs write it. Git knows none before 1970.
func gitTime(t time.Time) string {
	return strconv.FormatInt(max(t.Unix(), 0), 10) + t.Format(" -0700")
}
