package gitlog

import (
	"crypto/sha1"
	"errors"
	"fmt"
	hashing "hash"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"mailtree/maildir/gitlog/embedded"
)

// hash is the name of an object. The zero hash means that there is no object.
type hash = plumbing.Hash

// Modes in tree objects. The mode is 0 if there is no entry at a path.
const (
	modeFile = 0o100644
	modeExec = 0o100755
	modeLink = 0o120000
)

// entry is an entry of a tree object. The zero entry means that there is no entry at a path.
type entry = embedded.Entry

// blobHash returns the name of a blob. It is much faster than Git's SHA-1 implementation, which also detects
// collisions.
func blobHash(data []byte) hash {
	sum := blobSum(int64(len(data)))
	sum.Write(data)
	return hash(sum.Sum(nil))
}

// blobSum returns a hash that computes the name of a blob from the size bytes that the caller writes to it.
func blobSum(size int64) hashing.Hash {
	s := sha1.New()
	fmt.Fprintf(s, "blob %d\x00", size)
	return s
}

// maxObject is the maximum size, in bytes, of an object that is read into memory.
const maxObject = 1 << 28

var errNoObject = embedded.ErrNoObject

func (g *gitProgram) read(kind, name string) ([]byte, error) {
	if strings.ContainsAny(name, "\r\n") {
		return g.readStepwise(kind, name)
	}
	if g.objects.cmd == nil {
		c, err := g.command(g.ctx, "cat-file", "--batch")
		if err != nil {
			return nil, err
		}
		if g.objects, err = startProcess(c); err != nil {
			return nil, err
		}
	}
	data, err := g.objects.readObject(kind, name)
	if err != nil && !errors.Is(err, errNoObject) {
		_ = g.objects.close()
	}
	if err != nil {
		err = fmt.Errorf("cannot read %s %s: %w", kind, name, err)
	}
	return data, err
}

// readStepwise reads COMMIT:PATH if the path contains a line break. Such a path cannot be sent to git cat-file, because
// each request is a line, and only Git 2.38 or newer can separate requests with NUL. Therefore, readStepwise finds the
// object's hash in the tree object of its folder.
func (g *gitProgram) readStepwise(kind, name string) ([]byte, error) {
	commit, path, _ := strings.Cut(name, ":")
	dir, base := splitPath(path)
	folder, err := g.read("tree", commit+":"+dir)
	if err != nil {
		return nil, err
	}
	var found entry
	err = embedded.EachEntry(folder, func(name []byte, e entry) {
		if string(name) == base {
			found = e
		}
	})
	if err == nil && found.Mode == 0 {
		err = errNoObject
	}
	if err != nil {
		return nil, err
	}
	return g.read(kind, found.Hash.String())
}

// readObject sends a request for an object to git cat-file and reads the response.
func (o *process) readObject(kind, name string) ([]byte, error) {
	if _, err := io.WriteString(o.stdin, name+"\n"); err != nil {
		return nil, err
	}
	line, err := o.stdout.ReadString('\n')
	if err != nil {
		return nil, err
	}
	f := strings.Fields(line)
	if line == name+" missing\n" || len(f) != 3 {
		return nil, errNoObject
	}
	size, err := strconv.Atoi(f[2])
	if err != nil || size > maxObject {
		return nil, fmt.Errorf("it has %s bytes", f[2])
	}
	data := make([]byte, size+1)
	if _, err := io.ReadFull(o.stdout, data); err != nil {
		return nil, err
	}
	if f[1] != kind {
		return nil, fmt.Errorf("%w: it is a %s", errNoObject, f[1])
	}
	return data[:size:size], nil
}

// Close ends the commands that are still running. Later calls start them again.
func (g *gitProgram) Close() {
	_ = g.objects.close()
	_ = g.diffs.close()
}

var emptyTree = plumbing.NewHash("4b825dc642cb6eb9a060e54bf8d69288fbee4904")

// unixTime parses seconds since 1970. It returns the zero time for any other text.
func unixTime(text string) time.Time {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.Unix(n, 0).UTC()
}

// entries returns a commit's entries at paths. Paths without an entry are omitted. Each tree object is read only once.
// The commit may be the zero hash. entries returns the same errors as read.
func (r *repository) entries(commit hash, paths ...string) (at map[string]entry, err error) {
	at = map[string]entry{}
	if commit.IsZero() {
		return at, nil
	}
	in := map[string]map[string]bool{}
	for _, path := range paths {
		dir, name := splitPath(path)
		if in[dir] == nil {
			in[dir] = map[string]bool{}
		}
		in[dir][name] = true
	}
	for dir, names := range in {
		data, err := r.read("tree", commit.String()+":"+dir)
		if err != nil && !errors.Is(err, errNoObject) {
			return nil, err
		}
		err = embedded.EachEntry(data, func(name []byte, e entry) {
			if names[string(name)] {
				at[joined(dir, string(name))] = e
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return at, nil
}

// splitPath splits a path into its folder ("" for the root) and its name in that folder.
func splitPath(path string) (dir, name string) {
	i := strings.LastIndexByte(path, '/')
	return path[:max(i, 0)], path[i+1:]
}

// joined returns the path of name in a folder; folder is "" for the root.
func joined(folder, name string) string {
	if folder == "" {
		return name
	}
	return folder + "/" + name
}

func (g *gitProgram) changesOf(from, to string) ([]*change, error) {
	return g.rawChanges(nil, "diff-tree", "-r", from, to)
}

// rawChanges runs a git command that prints changes in raw format, and returns the changes at the paths for which
// wanted returns true. If wanted is nil, it returns all changes.
func (r *repository) rawChanges(wanted func(path []byte) bool, args ...string) (changes []*change, err error) {
	var meta []byte
	args = slices.Insert(args, 1, "--raw", "-z", "--no-renames", "--no-abbrev")
	err = r.stream(func(record []byte) (err error) {
		if len(meta) == 0 { // the next record is the path
			meta = append(meta, record...)
			return nil
		}
		if wanted == nil || wanted(record) {
			var c *change
			if c, err = readChange(string(meta), string(record)); c != nil {
				changes = append(changes, c)
			}
		}
		meta = meta[:0]
		return err
	}, args...)
	return changes, err
}

// readChange parses a change in raw format. It returns nil if the change does not concern a file. The format lists the
// modes and hashes of all parents, and then the new mode and hash. Of the parents, readChange uses only the first.
func readChange(meta, path string) (*change, error) {
	f := strings.Fields(strings.TrimLeft(meta, ":"))
	parents := strings.Count(meta[:len(meta)-len(strings.TrimLeft(meta, ":"))], ":")
	if parents == 0 || len(f) != 2*parents+3 {
		return nil, fmt.Errorf("unexpected change in the output from git: %q", meta)
	}
	c := &change{path: path, old: fileEntry(f[0], f[parents+1]), new: fileEntry(f[parents], f[2*parents+1])}
	if !c.differs() {
		return nil, nil
	}
	return c, nil
}

// fileEntry returns the entry of a file, or the zero entry for any other mode.
func fileEntry(mode, name string) entry {
	if e := anyEntry(mode, name); e.IsFile() {
		return e
	}
	return entry{}
}

// anyEntry returns the entry for a mode and a hash in the form that git commands print.
func anyEntry(mode, name string) entry {
	n, _ := strconv.ParseUint(mode, 8, 32)
	return entry{Mode: uint32(n), Hash: plumbing.NewHash(name)}
}

// commitFor describes a commit to create. Author and Committer have the form "Name <mail>".
type commitFor struct {
	Author, Committer string
	Written, Made     time.Time
	Message           string
	Merges            []string // additional parents of the commit
}

// reflog returns the text of the reflog entry for the commit.
func (c commitFor) reflog() string {
	subject, _, _ := strings.Cut(c.Message, "\n")
	return "commit: " + subject
}

// gitTime formats a time for commits and reflogs. Git does not support times before 1970.
func gitTime(t time.Time) string {
	return strconv.FormatInt(max(t.Unix(), 0), 10) + t.Format(" -0700")
}
