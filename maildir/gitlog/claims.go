package gitlog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"mailtree/maildir/format"
	"mailtree/maildir/history"
	"mailtree/maildir/merge"
)

// Machines share their list of claims as a Git tree that contains one file per claim. A ref points to the tree.
// format.ListedClaim returns the name of a claim's file.

// SharedClaims implements history.Remote.
func (l *Log) SharedClaims(ctx context.Context) (there, here history.Claims, err error) {
	repo, err := l.openRepository(ctx, newMemory())
	if err != nil {
		return there, here, unavailable(err)
	}
	if there, err = l.claimsAt(repo, claimsRef); err == nil {
		here, err = l.claimsAt(repo, claimedRef)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lists = [2]history.Claims{there, here}
	return there, here, err
}

// claimsAt returns the list of claims that a ref points to.
func (l *Log) claimsAt(repo *repository, ref string) (c history.Claims, err error) {
	at, err := repo.ownRef(ref)
	if err != nil || at.IsZero() {
		return c, err
	}
	l.mu.Lock()
	known := l.lists
	l.mu.Unlock()
	for _, c := range known {
		if c.Name == at.String() {
			return c, nil
		}
	}
	return repo.readClaims(at)
}

// readClaims reads a list of claims. It skips entries that are not claims.
func (r *repository) readClaims(at hash) (c history.Claims, err error) {
	c = history.Claims{Name: at.String(), Files: map[string]string{}}
	err = r.stream(func(record []byte) error {
		about, name, _ := strings.Cut(string(record), "\t")
		var mode uint32
		var kind, blob string
		if _, err := fmt.Sscanf(about, "%o %s %s", &mode, &kind, &blob); err != nil {
			return fmt.Errorf("unexpected output from git ls-tree: %q", record)
		}
		path, is := format.ClaimOfListed(name)
		if !is || mode != merge.Plain {
			return nil
		}
		if c.Files[path] = blob; len(c.Files) > mostCrossed {
			return history.ErrTooMany
		}
		return nil
	}, "ls-tree", "-z", c.Name, "--")
	if err != nil {
		return history.Claims{}, err
	}
	return c, nil
}

// FetchClaims implements history.Remote.
func (l *Log) FetchClaims(ctx context.Context) error {
	repo, program, err := l.reach(ctx)
	if err != nil {
		return err
	}
	if _, err = repo.ownRef(claimsRef); err != nil {
		return err
	}
	l.step("fetch claims")
	if err = repo.fetch(program, "", false, true); lacks(err, claimsRef) {
		return repo.setRef(claimsRef, hash{})
	}
	return err
}

// WriteClaims implements history.Remote.
func (l *Log) WriteClaims(ctx context.Context, files map[string]string, fresh map[string][]byte) (c history.Claims, err error) {
	repo, err := l.openRepository(ctx, newMemory())
	if err != nil {
		return c, unavailable(err)
	}
	c.Files = files
	var blobs bytes.Buffer
	for path, data := range fresh {
		fmt.Fprintf(&blobs, "blob\ndata %d\n%s\n", len(data), data)
		files[path] = blobHash(data).String()
	}
	blobs.WriteString("done\n")
	if len(fresh) > 0 {
		if err = repo.plainly(blobs.Bytes(), "fast-import", "--quiet", "--done"); err != nil {
			return c, err
		}
	}
	blobOf := map[string]string{}
	for path, blob := range files {
		blobOf[format.ListedClaim(path)] = blob
	}
	var list []byte
	for _, name := range slices.Sorted(maps.Keys(blobOf)) {
		h := plumbing.NewHash(blobOf[name])
		list = fmt.Appendf(list, "%o %s\x00%s", merge.Plain, name, h[:])
	}
	// git mktree does not make the tree durable, and neither does git hash-object before Git 2.36.
	if c.Name, err = repo.plain(list, "hash-object", "-t", "tree", "-w", "--stdin"); err == nil {
		err = syncAll(repo.git, "objects/"+c.Name[:2]+"/"+c.Name[2:])
	}
	if err != nil {
		return c, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lists[1] = c // cached for the next read
	return c, nil
}

// PushClaims implements history.Remote.
func (l *Log) PushClaims(ctx context.Context, was, is string) error {
	repo, program, err := l.reach(ctx)
	if err != nil {
		return err
	}
	l.step("push claims")
	_, err = repo.runRemote(ctx, program, "push", "--quiet", "--no-verify", "--force-with-lease="+claimsRef+":"+was, "--", remoteName,
		is+":"+claimsRef)
	var e *gitError
	switch {
	case errors.As(err, &e) && isBehind(e.said):
		return fmt.Errorf("%w: %w", history.ErrBehind, err)
	case errors.As(err, &e) && isDeclined(e.said):
		return fmt.Errorf("%w: %w", history.ErrDeclined, err)
	case err != nil:
		return err
	}
	return repo.setRef(claimsRef, plumbing.NewHash(is))
}

// KeepClaims implements history.Remote.
func (l *Log) KeepClaims(ctx context.Context, name string) error {
	repo, err := l.openRepository(ctx, newMemory())
	if err != nil {
		return unavailable(err)
	}
	return repo.setRef(claimedRef, plumbing.NewHash(name))
}
