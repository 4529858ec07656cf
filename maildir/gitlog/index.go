package gitlog

import (
	"bytes"
	"crypto/sha1"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"golang.org/x/sys/unix"
)

// seen is what tells whether .git/index was exchanged since we looked at it.
type seen struct {
	exists bool
	ino    uint64
	size   int64
	mtime  time.Time
	mode   fs.FileMode
	count  int  // of its entries
	sum    hash // the checksum at its end; zeros where Git was told to skip it
}

// sameIndex reports whether both are the same file, or both none.
func (s seen) sameIndex(t seen) bool {
	return s.exists == t.exists && (!s.exists || s.sum == t.sum && s.ino == t.ino && s.size == t.size && s.mtime.Equal(t.mtime))
}

// seeIndex looks at .git/index without reading all of it. It waits for nothing and follows no link.
// Errors: a *hold.
func (r *repository) seeIndex() (seen, error) {
	f, s, err := openIndex(r.path("index"))
	if f != nil {
		f.Close()
	}
	return s, err
}

const maxIndex = 2 << 30 // bytes of an index: some fifteen million files

func openIndex(path string) (*os.File, seen, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, seen{}, nil
	case errors.Is(err, unix.ELOOP), errors.Is(err, unix.ENXIO):
		return nil, seen{}, specialIndex()
	case err != nil:
		return nil, seen{}, err
	}
	s, err := lookAt(f)
	if err != nil {
		f.Close()
		return nil, s, err
	}
	return f, s, nil
}

func lookAt(f *os.File) (seen, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return seen{}, err
	}
	secs, nanos := st.Mtim.Unix()
	s := seen{exists: true, ino: st.Ino, size: st.Size, mtime: time.Unix(secs, nanos), mode: fs.FileMode(st.Mode) & 0o777}
	if st.Mode&unix.S_IFMT != unix.S_IFREG || st.Size > maxIndex {
		return s, specialIndex()
	}
	var head [12]byte
	if _, err := f.ReadAt(head[:], 0); err != nil && !errors.Is(err, io.EOF) {
		return s, err
	}
	s.count = int(binary.BigEndian.Uint32(head[8:]))
	if st.Size < int64(len(s.sum)) {
		return s, nil
	}
	_, err := f.ReadAt(s.sum[:], st.Size-int64(len(s.sum)))
	return s, err
}

func specialIndex() *hold {
	return waiting("The mail's .git/index is not a regular file, or far too large. Remove it: it is made anew from the last commit.")
}

func damagedIndex(why error) *hold {
	h := waiting("The mail's Git index cannot be read (%s). "+
		"Remove .git/index in the mail's folder: it is made anew from the last commit.", oneLine(why.Error(), 200))
	h.cause = why
	return h
}

// checkIndex looks whether an index that somebody else has written is whole and has no conflicts: Git
// writes a new checksum without having compared the old one. Errors: a *hold.
func (r *repository) checkIndex() (seen, error) {
	f, s, err := openIndex(r.path("index"))
	if f == nil || err != nil {
		return s, err
	}
	defer f.Close()
	if s.sameIndex(r.mem.sound) {
		return s, nil
	}
	sum := sha1.New()
	n, err := io.Copy(sum, io.LimitReader(f, s.size-int64(len(s.sum))))
	if err != nil {
		return s, err
	}
	if !s.sum.IsZero() && (n < 12 || !bytes.Equal(sum.Sum(nil), s.sum[:])) {
		return s, damagedIndex(errors.New("its checksum is wrong"))
	}
	conflicts, err := r.run(nil, nil, "ls-files", "-z", "--unmerged")
	if errors.As(err, new(*exec.ExitError)) && errors.As(err, new(*gitError)) && strings.Contains(err.Error(), "fatal:") {
		return s, damagedIndex(err)
	}
	if err != nil {
		return s, err
	}
	if len(conflicts) > 0 {
		return s, waiting("The mail's Git index has conflicts that are not resolved: new mail is safe but not committed. " +
			"Resolve them with git add and git commit, or drop them with git reset.")
	}
	r.mem.sound = s
	return s, nil
}

// fewPaths is up to how many paths are refreshed by name: Git compares each with each entry.
const fewPaths = 100

// makeIndex makes at file what an index becomes with the changes made: the entries of an index that is
// missing are those of the commit at. Files that are as committed get their stat data, so that git
// status need not read them. It returns the checksum.
func (r *repository) makeIndex(file string, at hash, changes []*change) (sum hash, err error) {
	env := []string{"GIT_INDEX_FILE=" + file}
	if err := r.copyIndex(file); err != nil {
		return sum, err
	}
	if _, err := os.Lstat(file); err != nil && !at.IsZero() {
		if _, err := r.run(nil, env, "read-tree", at.String()); err != nil {
			return sum, err
		}
	}
	var info, paths bytes.Buffer
	for _, c := range changes {
		if c.new.Mode == 0 {
			fmt.Fprintf(&info, "0 %s\t%s\x00", hash{}, c.path)
		}
	}
	n := 0
	for _, c := range changes {
		if c.new.Mode != 0 {
			fmt.Fprintf(&info, "%o %s\t%s\x00", c.new.Mode, c.new.Hash, c.path)
			paths.WriteString(c.path + "\x00")
			n++
		}
	}
	if _, err := r.run(&info, env, "update-index", "-z", "--index-info"); err != nil {
		return sum, err
	}
	switch {
	case n > fewPaths:
		_, err = r.run(nil, env, "update-index", "-q", "--refresh")
	case n > 0:
		_, err = r.run(&paths, append(env, "GIT_LITERAL_PATHSPECS=1"), "add", "--refresh", "--pathspec-from-file=-", "--pathspec-file-nul")
	}
	if failed := (*gitError)(nil); errors.As(err, &failed) && failed.said == "" {
		err = nil // some file is another by now
	}
	if err != nil {
		return sum, err
	}
	f, s, err := openIndex(file)
	if err == nil && f == nil {
		err = errors.New("git has made no index")
	}
	if f != nil {
		f.Close()
	}
	return s.sum, err
}

// copyIndex copies .git/index to a file of ours, with its time, by which Git tells which entries may be
// of an older content. Where there is no index, there is no file.
func (r *repository) copyIndex(file string) error {
	for _, old := range []string{file, file + ".lock"} {
		if err := ignoreGone(os.Remove(old)); err != nil {
			return err
		}
	}
	from, s, err := openIndex(r.path("index"))
	if from == nil || err != nil {
		return err
	}
	defer from.Close()
	to, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, s.mode|0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	return errors.Join(err, to.Close(), os.Chtimes(file, s.mtime, s.mtime))
}

// staged tells what the index has where that is not what a commit has, of the wanted paths.
func (r *repository) staged(at hash, wanted func(path []byte) bool) (map[string]entry, error) {
	found := map[string]entry{}
	var meta []byte
	tree := at.String()
	if at.IsZero() {
		tree = emptyTree.String()
	}
	err := r.stream(r.ctx, func(record []byte) error {
		if len(meta) == 0 { // ":OLDMODE NEWMODE OLDHASH NEWHASH STATUS", and the path comes next
			meta = append(meta, record...)
			return nil
		}
		if wanted(record) {
			f := strings.Fields(string(meta))
			if len(f) != 5 {
				return fmt.Errorf("git diff-index says %q", meta)
			}
			mode, err := strconv.ParseUint(f[1], 8, 32)
			if err != nil {
				return err
			}
			found[string(record)] = entry{uint32(mode), plumbing.NewHash(f[3])}
		}
		meta = meta[:0]
		return nil
	}, nil, "diff-index", "--cached", "--raw", "-z", "--no-renames", "--no-abbrev", "--ignore-submodules", tree)
	return found, err
}

// sparse tells which paths of the index are meant to be missing on disk.
func (r *repository) sparse() (map[string]bool, error) {
	found := map[string]bool{}
	err := r.stream(r.ctx, func(record []byte) error {
		if path, ok := bytes.CutPrefix(record, []byte("S ")); ok {
			found[string(path)] = true
		}
		return nil
	}, nil, "ls-files", "-z", "-t")
	return found, err
}
