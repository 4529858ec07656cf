package gitlog

import (
	"bytes"
	"context"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"mailtree/maildir/gitlog/object"
	"mailtree/maildir/history"
)

// lookBack is among how many of the newest commits Authored looks: each costs a read of an object.
const lookBack = 300

// Authored implements history.Log. It follows first parents, and takes no part in committing.
func (l *Log) Authored(ctx context.Context, agent string, n int) ([]history.Commit, error) {
	repo := newRepository(l.cfg.Dir, newMemory())
	defer repo.Close()
	at, err := repo.head()
	if err != nil {
		return nil, err
	}
	var found []history.Commit
	next := at.commit
	for looked := 0; !next.IsZero() && looked < lookBack && len(found) < n; looked++ {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		data, err := repo.Read(object.KindCommit, next)
		if err != nil {
			return found, err
		}
		head, message, _ := bytes.Cut(data, []byte("\n\n"))
		parent, author := commitHeader(string(head))
		if strings.HasPrefix(author, l.agent(agent)+" ") {
			subject, _, _ := bytes.Cut(message, []byte("\n"))
			found = append(found, history.Commit{
				Hash:    next.String(),
				At:      repo.When(next),
				Subject: oneLine(string(subject), subjectBytes),
			})
		}
		next = parent
	}
	return found, nil
}

// commitHeader reads the first parent, zero where there is none, and the author with the time.
func commitHeader(head string) (parent hash, author string) {
	for line := range strings.Lines(head) {
		line = strings.TrimSuffix(line, "\n")
		if hex, ok := strings.CutPrefix(line, "parent "); ok && parent.IsZero() {
			parent = plumbing.NewHash(hex)
		}
		if who, ok := strings.CutPrefix(line, "author "); ok {
			author = who
		}
	}
	return parent, author
}
