package writer

import (
	"bufio"
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"mailtree/maildir/format"
	"mailtree/maildir/tree"
)

// The journal records what a group is about to do. The record is durable before the group's first rename, and is kept
// until the group's operations have been committed. After a crash, recovery uses the journal to either complete or
// drop each operation. It passes the completed operations, which may not have been committed yet, to the history
// again (invariants I3 and I6; docs/explanation/durability.md, "Three notes that the server reads at startup").
//
// Each record is one line: an HMAC of the JSON under the store's key, a space, the JSON, a space, and one flag for each
// operation. To undo an operation, the writer overwrites the operation's flag, which works even on a full disk. An
// incomplete last line is a record that never became durable. A line with a wrong HMAC was not written by this store,
// and is ignored. There may be such a line because the file is in a working tree, and a `git pull` could add lines to
// it (I8).

// journalLimit is a size in bytes. If the journal is larger, and less than half of it consists of outstanding records,
// it is rewritten with only these records. This matters only if the journal never becomes empty.
const journalLimit = 4 << 20

// journal is the journal of one tree. It opens its file for each use, so that an idle project keeps no descriptor
// open. It is safe for concurrent use.
type journal struct {
	tree *tree.Tree
	key  []byte

	mu   sync.Mutex
	node uint64 // the file's inode, to detect that the file was removed or replaced
	size int64
	open map[uint64]*openRecord // records not yet committed, by group
}

type openRecord struct {
	line  []byte
	flags int   // offset of the flags in line
	at    int64 // offset of line in the file
}

// The flags for an operation.
const (
	valid   = '.'
	dropped = '-'
)

type journalRecord struct {
	Group uint64      `json:"group"`
	Ops   []journalOp `json:"ops,omitempty"`
	Done  []uint64    `json:"done,omitempty"` // groups that have been committed or undone, and need no recovery
	flags string      // one flag for each operation
}

type journalOp struct {
	Verb    string         `json:"verb"`
	Agent   string         `json:"agent,omitempty"`
	ID      string         `json:"id,omitempty"`
	Marks   string         `json:"marks,omitempty"`
	IDs     []string       `json:"ids,omitempty"` // ids of the messages if there are several
	Door    string         `json:"door,omitempty"`
	Step    string         `json:"step,omitempty"`
	Summary string         `json:"summary,omitempty"`
	Merges  Merge          `json:"merge,omitzero"`
	At      time.Time      `json:"at"`
	Files   []journalEntry `json:"files"`
}

type journalEntry struct {
	Path   string      `json:"path"`
	Action tree.Action `json:"action"`
	Sum    string      `json:"sha256,omitempty"`
	Staged string      `json:"staged"`
	Was    string      `json:"was,omitempty"` // for a replacement: SHA-256 of the old file
}

func openJournal(t *tree.Tree, key []byte) (*journal, error) {
	j := &journal{tree: t, key: key, open: map[uint64]*openRecord{}}
	return j, j.begin()
}

// begin opens the journal file, and creates it if it is missing.
func (j *journal) begin() error {
	c := j.tree.Changer(0)
	defer c.Close()
	if err := c.MakeDir(tree.TmpDir); err != nil {
		return err
	}
	f, st, err := j.openAt(os.O_CREATE)
	if err != nil {
		return err
	}
	defer f.Close()
	j.size, j.node = st.Size, st.Inode
	return j.endLine(f)
}

// openAt opens the journal file. The caller must close it.
func (j *journal) openAt(flags int) (*os.File, tree.FileStat, error) {
	f, st, err := j.tree.OpenFile(format.JournalFile, os.O_RDWR|flags)
	if why := (*tree.FormatError)(nil); errors.As(err, &why) {
		err = fmt.Errorf("%s is %w: remove it", format.JournalFile, why)
	}
	return f, st, err
}

// openPresent opens the journal file. If the file was removed or replaced, openPresent first writes the outstanding
// records to a new file. The caller must close the file.
func (j *journal) openPresent() (*os.File, error) {
	f, st, err := j.openAt(0)
	if err == nil && st.Inode == j.node {
		return f, nil
	}
	var behind *tree.FormatError
	switch {
	case err == nil:
		f.Close()
	case !errors.Is(err, fs.ErrNotExist) && !errors.As(err, &behind):
		return nil, err // the file exists, but cannot be opened
	}
	c := j.tree.Changer(0)
	defer c.Close()
	if err := c.MakeDir(tree.TmpDir); err != nil {
		return nil, err
	}
	if err := j.rewrite(); err != nil {
		return nil, err
	}
	if f, st, err = j.openAt(0); err == nil && st.Inode != j.node {
		f.Close()
		err = fmt.Errorf("%s has just been replaced", format.JournalFile)
	}
	return f, err
}

// endLine completes an incomplete last line, so that the next record starts on a new line.
func (j *journal) endLine(f *os.File) error {
	last := []byte{'\n'}
	if j.size > 0 {
		if _, err := f.ReadAt(last, j.size-1); err != nil {
			return err
		}
	}
	if last[0] == '\n' {
		return nil
	}
	_, err := j.write(f, []byte("\n"))
	return err
}

// write appends data to the file, and returns the offset of the data. After an error, it truncates the file to its old
// size.
func (j *journal) write(f *os.File, data []byte) (at int64, err error) {
	at = j.size
	n, err := f.WriteAt(data, at)
	if err != nil {
		if n > 0 {
			f.Truncate(at)
		}
		return at, err
	}
	j.size += int64(n)
	return at, nil
}

// append adds a record, which the caller must make durable. After an error, the file is truncated to its old size.
func (j *journal) append(r journalRecord) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.add(r)
}

func (j *journal) add(r journalRecord) error {
	defer j.tree.Hold()()
	f, err := j.openPresent()
	if err != nil {
		return err
	}
	defer f.Close()
	o, err := j.record(r)
	if err != nil {
		return err
	}
	if o.at, err = j.write(f, o.line); err == nil && len(r.Ops) > 0 {
		j.open[r.Group] = o
	}
	return err
}

// dropOps durably marks some operations of a group as about to be undone. The argument places contains the indexes of
// these operations in the group's record.
func (j *journal) dropOps(group uint64, places []int) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	o := j.open[group]
	if o == nil { // the journal has no record of the group
		return nil
	}
	for _, n := range places {
		o.line[o.flags+n] = dropped
	}
	defer j.tree.Hold()()
	f, err := j.openPresent()
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.WriteAt(o.line[o.flags:], o.at+int64(o.flags)); err != nil {
		return err
	}
	return f.Sync()
}

// done removes groups that have been committed or have failed completely. It shortens the file if that is worth the
// cost. The change is not durable, which is safe because recovering such a group again changes nothing.
func (j *journal) done(groups ...uint64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, g := range groups {
		delete(j.open, g)
	}
	switch {
	case j.size == 0:
	case len(j.open) == 0:
		j.empty()
	case j.size > journalLimit && j.outstanding() < j.size/2:
		j.rewrite()
	case len(groups) > 0:
		j.add(journalRecord{Done: groups})
	}
}

// empty truncates the file. The caller must make sure that all records in the file are done. If the file cannot be
// opened, empty does nothing.
func (j *journal) empty() {
	defer j.tree.Hold()()
	f, err := j.openPresent()
	if err != nil {
		return
	}
	defer f.Close()
	if f.Truncate(0) == nil {
		j.size = 0
	}
}

// restart durably replaces the journal's content with records.
func (j *journal) restart(records []journalRecord) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	clear(j.open)
	for _, r := range records {
		var err error
		if j.open[r.Group], err = j.record(r); err != nil {
			return err
		}
	}
	if j.size == 0 {
		return nil
	}
	return j.rewrite()
}

func (j *journal) record(r journalRecord) (*openRecord, error) {
	js, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	line := fmt.Appendf(nil, "%s %s ", journalMAC(j.key, js), js)
	o := &openRecord{flags: len(line)}
	o.line = append(append(line, bytes.Repeat([]byte{valid}, len(r.Ops))...), '\n')
	return o, nil
}

func (j *journal) outstanding() (n int64) {
	for _, o := range j.open {
		n += int64(len(o.line))
	}
	return n
}

// rewrite durably replaces the journal with a file that contains only the outstanding records, sorted by group. After
// an error, either the old file is still in place, or the new file may not be durable.
func (j *journal) rewrite() error {
	const fresh = format.JournalFile + ".new"
	defer j.tree.Hold()()
	f, _, err := j.tree.OpenFile(fresh, os.O_RDWR|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return err
	}
	var size int64
	at := map[uint64]int64{}
	for _, g := range slices.Sorted(maps.Keys(j.open)) {
		at[g] = size
		n, werr := f.Write(j.open[g].line)
		size += int64(n)
		err = errors.Join(err, werr)
	}
	if err = errors.Join(err, f.Sync()); err == nil {
		err = j.tree.Rename(fresh, format.JournalFile)
	}
	var fi fs.FileInfo
	if err == nil {
		fi, err = f.Stat()
	}
	f.Close()
	if err != nil {
		return err
	}
	j.size, j.node = size, tree.StatOfInfo(fi).Inode
	for g, o := range j.open {
		o.at = at[g]
	}
	return j.tree.SyncFolder(format.RunDir)
}

// journalMAC returns the HMAC that proves that the record js was written by this store.
func journalMAC(key, js []byte) string {
	h := hmac.New(sha256.New, key)
	h.Write([]byte("mailtree journal\n"))
	h.Write(js)
	return hex.EncodeToString(h.Sum(nil))
}

// readJournal returns the records that this store wrote, in order.
func readJournal(r io.Reader, key []byte) []journalRecord {
	var all []journalRecord
	b := bufio.NewReader(r)
	for {
		line, err := b.ReadBytes('\n')
		if err != nil {
			return all
		}
		mac, rest, ok := bytes.Cut(bytes.TrimSuffix(line, []byte("\n")), []byte(" "))
		last := bytes.LastIndexByte(rest, ' ')
		if !ok || last < 0 {
			continue
		}
		js, flags := rest[:last], rest[last+1:]
		if !hmac.Equal(mac, []byte(journalMAC(key, js))) {
			continue
		}
		var rec journalRecord
		if json.Unmarshal(js, &rec) == nil && rec.sane() && len(flags) == len(rec.Ops) {
			rec.flags = string(flags)
			all = append(all, rec)
		}
	}
}

// sane reports whether all paths in the record are paths that the server may write to.
func (r journalRecord) sane() bool {
	for _, op := range r.Ops {
		for _, f := range op.Files {
			ours := filepath.IsLocal(f.Path) && (tracked(f.Path) || path.Dir(f.Path) == format.QueueDir)
			if !ours || f.Staged == "" || strings.ContainsAny(f.Staged, "/.") {
				return false
			}
		}
	}
	return true
}
