package gitlog

import (
	"crypto/sha1"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
)

// hash names an object; the zero hash none.
type hash = plumbing.Hash

// kind of an object, as pack files number them.
type kind uint8

const (
	commitObject kind = 1
	treeObject   kind = 2
	blobObject   kind = 3
)

func (k kind) String() string {
	return [...]string{commitObject: "commit", treeObject: "tree", blobObject: "blob"}[k]
}

// objectHeader is what Git hashes before the content.
func objectHeader(k kind, size int64) []byte {
	b := append([]byte(k.String()), ' ')
	return append(strconv.AppendInt(b, size, 10), 0)
}

// objectHash is the name of an object. Git's own SHA-1 also looks for collisions, which is what makes it slow.
func objectHash(k kind, data []byte) hash {
	h := sha1.New()
	h.Write(objectHeader(k, int64(len(data))))
	h.Write(data)
	return hash(h.Sum(nil))
}

// commit is a commit object to be made. author and committer are identities "Name <mail>".
type commit struct {
	tree, parent      hash // parent is zero in the first commit
	author, committer string
	written, made     time.Time
	message           string
}

func (c commit) encode() []byte {
	b := fmt.Appendf(nil, "tree %s\n", c.tree)
	if !c.parent.IsZero() {
		b = fmt.Appendf(b, "parent %s\n", c.parent)
	}
	b = fmt.Appendf(b, "author %s %s\n", c.author, gitTime(c.written))
	b = fmt.Appendf(b, "committer %s %s\n", c.committer, gitTime(c.made))
	return append(append(b, '\n'), c.message...)
}

// reflogText is what a reflog line says of a commit, after the two hashes.
func reflogText(c commit) string {
	what := "commit"
	if c.parent.IsZero() {
		what = "commit (initial)"
	}
	subject, _, _ := strings.Cut(c.message, "\n")
	return fmt.Sprintf("%s %s\t%s: %s", c.committer, gitTime(c.made), what, subject)
}

// gitTime is a time as commits and reflogs write it. Git knows none before 1970.
func gitTime(t time.Time) string {
	return strconv.FormatInt(max(t.Unix(), 0), 10) + t.Format(" -0700")
}
