package gitlog

import (
	"context"
	"io/fs"

	"mailtree/maildir/history"
)

// lookBack is the number of newest commits that Authored reads.
const lookBack = 300

// Authored implements history.Log. It does not commit waiting operations first.
func (l *Log) Authored(ctx context.Context, agent string, n int) ([]history.Commit, error) {
	repo := l.newRepository(ctx, newMemory())
	defer repo.Close()
	at, err := repo.head()
	if err != nil {
		return nil, err
	}
	var found []history.Commit
	err = repo.eachCommit(at.commit, commits{most: lookBack}, func(c *commit) error {
		if c.author == l.agent(agent) {
			found = append(found, c.told())
		}
		if len(found) == n {
			return fs.SkipAll
		}
		return nil
	})
	return found, err
}
