package gitlog

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
)

// ownCommit is a commit of ours that a git command may still take away. Of its paths nothing is kept: they are read from the
// trees when they are wanted.
type ownCommit struct {
	old, new hash // its parent, itself
	at       time.Time
	ops      int  // operations in it; an edit or a repair is one
	mail     bool // they are the server's, not edits of others
	past     bool // it was found to stand healTime after it was made: see evident
}

const (
	keepTime = 10 * healTime // so long a commit is kept, for the slowest command of a person
	maxOwn   = 50            // so many commits are kept, or read from the history at the start
	maxWalk  = 4 * maxOwn    // and so many of anybody's are read for that
)

// keepOwn remembers a commit, the newest where they are too many.
func (m *memory) keepOwn(c ownCommit) {
	m.own = append(m.own, c)
	if n := len(m.own) - maxOwn; n > 0 {
		m.own = slices.Clone(m.own[n:])
	}
}

// forget lets go of the commits that are old enough, after they were found to stand.
func (m *memory) forget(now time.Time) {
	m.own = slices.DeleteFunc(m.own, func(c ownCommit) bool { return now.Sub(c.at) >= keepTime })
	for i := range m.own {
		m.own[i].past = m.own[i].past || now.Sub(m.own[i].at) >= healTime
	}
}

// history are our last commits as the branch tells them, oldest first: what a run that was killed had kept, and what
// one could not mend. An error is transient.
func (r *repository) history(c hash) (all []ownCommit, err error) {
	for range maxWalk {
		if c.IsZero() || len(all) == maxOwn {
			break
		}
		data, err := r.read(plumbing.CommitObject, c)
		if transient(err) {
			return nil, err
		}
		if err != nil {
			break // a shallow clone ends here
		}
		one, ours := parseOwn(string(data))
		if one.new = c; ours {
			all = append(all, one)
		}
		c = one.old
	}
	slices.Reverse(all)
	return all, nil
}

// parseOwn reads a commit object.
func parseOwn(data string) (c ownCommit, ours bool) {
	c.past = true
	head, message, _ := strings.Cut(data, "\n\n")
	for line := range strings.SplitSeq(head, "\n") {
		key, value, _ := strings.Cut(line, " ")
		switch {
		case key == "parent" && c.old.IsZero():
			c.old = plumbing.NewHash(value)
		case key == "committer":
			ours = strings.HasPrefix(value, serverName+" <")
			if f := strings.Fields(value); len(f) > 2 {
				sec, _ := strconv.ParseInt(f[len(f)-2], 10, 64)
				c.at = time.Unix(sec, 0)
			}
		}
	}
	if now := time.Now(); c.at.After(now) {
		c.at = now // else it would be kept for long
	}
	message = strings.TrimRight(message, "\n")
	for line := range strings.SplitSeq(message[strings.LastIndex(message, "\n\n")+1:], "\n") {
		if verb, ok := strings.CutPrefix(line, "Mail-Op: "); ok {
			c.ops++
			c.mail = c.mail || verb != "edit" && verb != "repair"
		}
	}
	return c, ours
}
