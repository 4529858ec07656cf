package gitlog

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/sha1"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"mailtree/maildir/tree"
)

// indexState identifies a version of .git/index, so that a later check can detect that the file has been replaced.
type indexState struct {
	exists  bool
	ino     uint64
	size    int64
	mtime   time.Time
	links   uint64 // number of hard links
	version uint32
	count   int  // number of entries
	sum     hash // the checksum at the end of the file; zeros if Git is configured to omit it
}

// sameIndex reports whether s and t describe the same file. It returns true if both describe a missing file.
func (s indexState) sameIndex(t indexState) bool {
	return s.exists == t.exists && (!s.exists || s.sum == t.sum && s.ino == t.ino && s.size == t.size && s.mtime.Equal(t.mtime))
}

// seeIndex reads the header and the checksum of .git/index. It does not block and does not follow links.
func (r *repository) seeIndex() (indexState, error) {
	f, s, err := openIndex(r.path("index"))
	if f != nil {
		f.Close()
	}
	return s, err
}

const maxIndex = 2 << 30 // maximum size, in bytes, of an index, enough for about fifteen million files

// openIndex opens an index and reads its header and its checksum. If there is no index, it returns a nil file and no
// error.
func openIndex(path string) (*os.File, indexState, error) {
	f, st, err := tree.OpenPlain(path, os.O_RDONLY)
	if err != nil {
		return nil, indexState{}, tree.IgnoreGone(err)
	}
	s, err := lookAt(f)
	if err == nil && st.Size > maxIndex {
		err = &tree.SizeError{Size: st.Size, Limit: maxIndex}
	}
	if err != nil {
		f.Close()
	}
	return f, s, err
}

func lookAt(f *os.File) (indexState, error) {
	fi, err := f.Stat()
	if err != nil {
		return indexState{}, err
	}
	st := tree.StatOfInfo(fi)
	s := indexState{exists: true, ino: st.Inode, size: st.Size, mtime: fi.ModTime(), links: uint64(fi.Sys().(*syscall.Stat_t).Nlink)}
	var head [12]byte
	if _, err := f.ReadAt(head[:], 0); err != nil && !errors.Is(err, io.EOF) {
		return s, err
	}
	s.version = binary.BigEndian.Uint32(head[4:])
	s.count = int(binary.BigEndian.Uint32(head[8:]))
	if st.Size < int64(len(s.sum)) {
		return s, nil
	}
	_, err = f.ReadAt(s.sum[:], st.Size-int64(len(s.sum)))
	return s, err
}

func damagedIndex(why error) *hold {
	h := waiting("The Git index of the mail repository cannot be read (%s). Remove .git/index in the mail folder: the server "+
		"recreates it from the last commit.", oneLine(why.Error(), 200))
	h.cause = why
	return h
}

// checkIndex verifies the checksum of an index that another program wrote. Git itself writes a new checksum without
// verifying the old one.
func (g *gitProgram) checkIndex() (indexState, error) {
	f, s, err := openIndex(g.path("index"))
	if f == nil || err != nil {
		return s, err
	}
	defer f.Close()
	if s.sameIndex(g.mem.level.index) {
		return s, nil
	}
	sum := sha1.New()
	if _, err := io.Copy(sum, io.LimitReader(f, s.size-int64(len(s.sum)))); err != nil {
		return s, err
	}
	if !s.sum.IsZero() && hash(sum.Sum(nil)) != s.sum {
		return s, damagedIndex(errors.New("its checksum is wrong"))
	}
	conflicts, err := g.run(nil, nil, "ls-files", "-z", "--unmerged")
	if errors.As(err, new(*exec.ExitError)) && errors.As(err, new(*gitError)) && strings.Contains(err.Error(), "fatal:") {
		return s, damagedIndex(err)
	}
	if err != nil {
		return s, err
	}
	if len(conflicts) > 0 {
		return s, waiting("The Git index of the mail repository has unresolved conflicts. New mail is safe but not committed. " +
			"Resolve the conflicts with git add and git commit, or discard them with git reset.")
	}
	return s, nil
}

// placeIndex implements engine.
func (g *gitProgram) placeIndex() error { return os.Rename(g.path(indexStage), g.path("index")) }

// makeIndex implements engine. If there is no index, it starts with the entries of the commit at.
func (g *gitProgram) makeIndex(file string, at hash, changes []*change) (sum hash, err error) {
	env := []string{"GIT_INDEX_FILE=" + file}
	if err := g.nameIndex(file); err != nil {
		return sum, err
	}
	if _, err := os.Lstat(file); err != nil && !at.IsZero() {
		if _, err := g.run(nil, env, "read-tree", at.String()); err != nil {
			return sum, err
		}
	}
	var gone, info bytes.Buffer
	for _, c := range changes {
		to := &gone // removals come first, because a file may be replaced by a folder
		if c.new.Mode != 0 {
			to = &info
		}
		fmt.Fprintf(to, "%o %s\t%s\x00", c.new.Mode, c.new.Hash, c.path)
	}
	if _, err := g.run(io.MultiReader(&gone, &info), env, "update-index", "-z", "--index-info"); err != nil {
		return sum, err
	}
	return g.giveStats(file, changes)
}

// giveStats adds stat data to an index that Git wrote, for the files that are the same as in the commit. Git's
// `update-index --index-info` writes no stat data, so git status would have to read each of these files. giveStats does
// not change a version 4 index. It returns the index's checksum.
func (r *repository) giveStats(file string, changes []*change) (sum hash, err error) {
	of := map[string]*change{}
	for _, c := range changes {
		if c.seen.Inode != 0 && c.new.IsFile() {
			of[c.path] = c
		}
	}
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		return sum, err
	}
	defer f.Close()
	s, err := lookAt(f)
	if err != nil || len(of) == 0 || s.version > 3 || s.links > 1 { // with several links, Git wrote no new file
		return s.sum, err
	}
	done := sha1.New()
	end := s.size - int64(len(sum))
	in := bufio.NewReaderSize(io.NewSectionReader(f, 0, end), 64<<10)
	head, at := 12, 0 // offsets in the file
	for range s.count + 1 {
		part, err := in.Peek(maxEntry)
		if len(part) < head {
			return sum, cmp.Or(err, io.ErrUnexpectedEOF)
		}
		size := head
		if at > 0 {
			name := head + int(part[60]>>6&1)*2 // skip the extended flags if the entry has them
			length := bytes.IndexByte(part[name:], 0)
			if c := of[string(part[name:name+max(length, 0)])]; c != nil && hash(part[40:60]) == c.new.Hash && c.putStat(r.dir, part) {
				if _, err := f.WriteAt(part[:head], int64(at)); err != nil {
					return sum, err
				}
			}
			size = (name + length + 8) &^ 7
		}
		size = min(size, len(part))
		done.Write(part[:size])
		_, _ = in.Discard(size)
		head, at = 62, at+size
	}
	if _, err := io.Copy(done, in); err != nil || s.sum.IsZero() {
		return s.sum, err
	}
	_, err = f.WriteAt(done.Sum(sum[:0]), end)
	return sum, err
}

// maxEntry is a number of bytes that is larger than any index entry.
const maxEntry = 8 << 10

// putStat writes the file's stat data to its index entry if the file is the same as in the commit. It reports whether
// it wrote the data.
func (c *change) putStat(dir string, entry []byte) bool {
	fi, err := os.Lstat(filepath.Join(dir, c.path))
	if err != nil || tree.StatOfInfo(fi) != c.seen {
		return false
	}
	st := fi.Sys().(*syscall.Stat_t)
	for i, n := range []int64{c.seen.CTime / 1e9, c.seen.CTime % 1e9, c.seen.MTime / 1e9, c.seen.MTime % 1e9, int64(st.Dev), int64(st.Ino)} {
		binary.BigEndian.PutUint32(entry[4*i:], uint32(n))
	}
	for i, n := range []uint32{st.Uid, st.Gid, uint32(st.Size)} { // these fields follow the mode
		binary.BigEndian.PutUint32(entry[28+4*i:], n)
	}
	return true
}

// nameIndex creates file as a hard link to .git/index. Git replaces an index by renaming, so a command that updates
// file does not change .git/index. If there is no index, nameIndex creates no file.
func (r *repository) nameIndex(file string) error {
	for _, old := range []string{file, file + ".lock"} {
		if err := tree.IgnoreGone(os.Remove(old)); err != nil {
			return err
		}
	}
	return tree.IgnoreGone(os.Link(r.path("index"), file))
}

// staged returns the index entries that differ from a commit, at the paths for which wanted returns true. It needs
// the git program.
func (r *repository) staged(at hash, wanted func(path []byte) bool) (map[string]entry, error) {
	found := map[string]entry{}
	tree := at.String()
	if at.IsZero() {
		tree = emptyTree.String()
	}
	changes, err := r.rawChanges(wanted, "diff-index", "--cached", "--ignore-submodules", tree)
	for _, c := range changes {
		found[c.path] = c.new
	}
	return found, err
}
