package gitlog

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"mailtree/maildir/gitlog/embedded"
	"mailtree/maildir/tree"
)

// builtIn is the engine for machines without the git program. It maintains no index, because only the git program
// uses one. If the server finds the git program at a later start, the other engine creates the index (isMisplaced).
type builtIn struct {
	*repository
	objects *embedded.Repository
}

func (b *builtIn) Close() { _ = b.objects.Close() }

func (b *builtIn) read(kind, name string) ([]byte, error) { return b.objects.Read(kind, name) }

func (b *builtIn) resolve(prefix string) (hash, error) {
	return b.objects.Resolve(strings.ToLower(prefix))
}

func (b *builtIn) eachCommit(tip hash, which commits, fn func(*commit) error) error {
	if tip.IsZero() {
		return nil
	}
	n := 0
	return b.objects.EachCommit(tip, which.path, func(c *embedded.Commit) error {
		if err := b.ctx.Err(); err != nil {
			return err
		}
		if !which.until.IsZero() && c.Made.After(which.until) || which.roots && len(c.Parents) > 0 {
			return nil
		}
		if n++; which.most > 0 && n > which.most {
			return fs.SkipAll
		}
		return fn(&commit{name: c.Hash, parents: c.Parents, made: c.Made, author: c.Author, message: c.Message})
	})
}

func (b *builtIn) follows(commit, older hash) (found bool, err error) {
	err = b.objects.EachCommit(commit, "", func(c *embedded.Commit) error {
		if found = c.Hash == older; found {
			return fs.SkipAll
		}
		return b.ctx.Err()
	})
	return found, err
}

func (b *builtIn) changesOf(from, to string) (all []*change, err error) {
	changes, err := b.objects.Changes(plumbing.NewHash(from), plumbing.NewHash(to), "")
	for _, c := range changes {
		all = append(all, &change{path: c.Path, old: c.Old, new: c.New})
	}
	return all, err
}

func (b *builtIn) changedIn(c *commit) ([]*change, error) {
	all, err := b.changesOf(c.sides())
	for _, parent := range c.parents[min(1, len(c.parents)):] {
		others, failed := b.changesOf(parent.String(), c.name.String())
		err = errors.Join(err, failed)
		from := map[string]bool{}
		for _, other := range others {
			from[other.path] = true
		}
		all = slices.DeleteFunc(all, func(c *change) bool { return !from[c.path] })
	}
	return all, err
}

func (b *builtIn) patch(from, to, path string) (string, error) {
	return b.objects.Patch(plumbing.NewHash(from), plumbing.NewHash(to), path)
}

func (b *builtIn) filesBelow(commit hash, folder string, each func(path, blob string)) error {
	all, err := b.objects.Changes(hash{}, commit, folder)
	for _, c := range all {
		each(c.Path, c.New.Hash.String())
	}
	return err
}

// status compares the files with the last commit, because there is no index. It has to read every tracked file.
func (b *builtIn) status(w *tree.Tree, wanted map[string]bool, each func(path string, staged, untracked bool)) error {
	at, err := b.head()
	if err != nil {
		return err
	}
	tracked := map[string]entry{}
	var paths []string
	for path := range wanted {
		paths = append(paths, path)
		all, err := b.objects.Changes(hash{}, at.commit, path)
		if err != nil {
			return err
		}
		for _, c := range all {
			tracked[c.Path] = c.New
		}
	}
	p := &plan{repo: b.repository, files: w}
	for path, e := range tracked {
		c := &change{path: path, old: e}
		if err := b.ctx.Err(); err != nil {
			return err
		}
		if err := p.loadOne(c); err != nil {
			return err
		}
		if c.differs() {
			each(path, false, false)
		}
	}
	exclude, err := readSmall(b.path("info/exclude"))
	if err := tree.IgnoreGone(err); err != nil {
		return err
	}
	isTracked := func(path string) bool { _, ok := tracked[path]; return ok }
	return embedded.Untracked(b.ctx, w, exclude, paths, isTracked, func(path string) { each(path, false, true) })
}

// person implements engine. Unlike the git program, it ignores includes in the configuration.
func (b *builtIn) person() (string, error) {
	home, _ := os.UserHomeDir()
	global := []string{filepath.Join(cmp.Or(os.Getenv("XDG_CONFIG_HOME"), home+"/.config"), "git/config"), filepath.Join(home, ".gitconfig")}
	if named, ok := os.LookupEnv("GIT_CONFIG_GLOBAL"); ok {
		global = []string{named}
	}
	var name, mail string
	for _, file := range append(global, b.path("config")) { // the last value takes precedence
		text, err := readSmall(file)
		if transient(err) {
			return "", err
		}
		if c, err := parseConfig(text); err == nil {
			name, mail = cmp.Or(c.Section("user").Option("name"), name), cmp.Or(c.Section("user").Option("email"), mail)
		}
	}
	if identityPart(name) == "" {
		return "", nil
	}
	return identity(name, mail), nil
}

func (b *builtIn) checkIndex() (indexState, error) { return b.seeIndex() }

func (b *builtIn) makeIndex(string, hash, []*change) (none hash, err error) { return none, nil }

func (b *builtIn) placeIndex() error { return tree.IgnoreGone(os.Remove(b.path("index"))) }

// builtInObjects writes the objects of a round. After its context has ended, it writes no more objects and returns an
// error.
type builtInObjects struct {
	*embedded.Writer
	ctx  context.Context
	repo *repository
	base hash
}

func (b *builtIn) newObjects(base hash) objects {
	return builtInObjects{b.objects.Write(base), b.ctx, b.repository, base}
}

func (o builtInObjects) entries(paths ...string) (map[string]entry, error) {
	return o.repo.entries(o.base, paths...)
}

func (o builtInObjects) blob(size int64, in io.Reader) (hash, error) {
	if err := o.ctx.Err(); err != nil {
		return hash{}, err
	}
	h, err := o.Blob(size, in)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = errChanging
	}
	return h, err
}

func (o builtInObjects) commit(c commitFor, makes []version) error {
	if err := o.ctx.Err(); err != nil {
		return err
	}
	is := map[string]entry{}
	for _, v := range makes {
		is[v.path] = v.is
	}
	return o.Commit(embedded.NewCommit{Author: c.Author + " " + gitTime(c.Written), Committer: c.Committer + " " + gitTime(c.Made),
		Message: c.Message, Merges: c.Merges, Makes: is})
}
