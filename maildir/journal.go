package maildir

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
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// The journal says, durably before the first rename of a group, what the group is about to do; a record is
// kept until the group's operations are in a commit. After a crash it makes each operation whole or absent
// and hands those without a commit to the history again (Spec: 5, I3, I6). One line per record: an HMAC of the
// JSON under the store's key, a blank, the JSON. A torn last line is a record that was never durable; a line with
// another HMAC is none of ours: the file lies in a work tree, and a `git pull` could bring one (I8).

const journalFile = runDir + "/journal"

// journalLimit is when a journal that never runs empty is written anew with what is outstanding only.
const journalLimit = 4 << 20

type journal struct {
	tree *Tree
	key  []byte
	file *os.File
	node uint64 // inode of file: somebody may remove or replace it
	size int64
	open map[uint64][]byte // records not yet committed
}

type journalRecord struct {
	Group uint64      `json:"group"`
	Ops   []journalOp `json:"ops,omitempty"`
	Drop  []int       `json:"drop,omitempty"` // operations of that group that failed: to be undone
}

type journalOp struct {
	Verb    string         `json:"verb"`
	Agent   string         `json:"agent,omitempty"`
	ID      string         `json:"id,omitempty"`
	IDs     []string       `json:"ids,omitempty"` // of an operation on several messages
	Summary string         `json:"summary,omitempty"`
	At      time.Time      `json:"at"`
	Files   []journalEntry `json:"files"`
}

type journalEntry struct {
	Path   string `json:"path"`
	Action action `json:"action"`
	Sum    string `json:"sha256,omitempty"`
	Staged string `json:"staged"`
}

func openJournal(t *Tree, key []byte) (*journal, error) {
	j := &journal{tree: t, key: key, open: map[uint64][]byte{}}
	return j, j.reopen(0)
}

// reopen opens the file at the journal's place, making it where it is missing.
func (j *journal) reopen(flags int) error {
	if err := j.tree.makeDir(tmpDir); err != nil {
		return err
	}
	defer j.tree.closeFolders()
	f, err := j.tree.root.OpenFile(journalFile, os.O_RDWR|os.O_CREATE|os.O_APPEND|syscall.O_NOFOLLOW|syscall.O_NONBLOCK|flags, 0o600)
	if err != nil {
		return err
	}
	fi, err := f.Stat()
	if err == nil && !fi.Mode().IsRegular() {
		err = fmt.Errorf("%s is %s: remove it", journalFile, notRegular(fi.Mode()).Reason)
	}
	if err != nil {
		f.Close()
		return err
	}
	if j.file != nil {
		j.file.Close()
	}
	j.file, j.size, j.node = f, fi.Size(), fileStat(fi).Inode
	return j.endLine()
}

// endLine ends a torn last line, so that the next record has a line of its own.
func (j *journal) endLine() error {
	last := []byte{'\n'}
	if j.size > 0 {
		if _, err := j.file.ReadAt(last, j.size-1); err != nil {
			return err
		}
	}
	if last[0] == '\n' {
		return nil
	}
	n, err := j.file.WriteString("\n")
	j.size += int64(n)
	return err
}

// present makes sure that the file is still the one at the journal's place; where somebody removed it, what is
// outstanding is written again.
func (j *journal) present() error {
	if st, err := j.tree.Stat(journalFile); err == nil && st.Inode == j.node {
		return nil
	}
	if err := j.reopen(os.O_TRUNC); err != nil {
		return err
	}
	for _, line := range j.open {
		n, err := j.file.Write(line)
		j.size += int64(n)
		if err != nil {
			return err
		}
	}
	return nil
}

func (j *journal) close() { j.file.Close() }

// append adds a record; the caller makes it durable. On error the file is cut back to where it was.
func (j *journal) append(r journalRecord) error {
	if err := j.present(); err != nil {
		return err
	}
	js, err := json.Marshal(r)
	if err != nil {
		return err
	}
	line := fmt.Appendf(nil, "%s %s\n", journalMAC(j.key, js), js)
	n, err := j.file.Write(line)
	if err != nil {
		if n > 0 {
			j.file.Truncate(j.size)
		}
		return err
	}
	j.size += int64(n)
	if len(r.Ops) > 0 {
		j.open[r.Group] = line
	}
	return nil
}

// done forgets groups that are committed, or that failed as a whole, and shortens the file when it pays.
func (j *journal) done(groups ...uint64) {
	for _, g := range groups {
		delete(j.open, g)
	}
	if j.size == 0 {
		return
	}
	if len(j.open) == 0 {
		if err := j.file.Truncate(0); err == nil {
			j.size = 0
		}
		return
	}
	if j.size > journalLimit && j.outstanding() < j.size/2 {
		j.rewrite()
	}
}

func (j *journal) outstanding() (n int64) {
	for _, l := range j.open {
		n += int64(len(l))
	}
	return n
}

// rewrite puts a journal of only the outstanding records in the place of the present one. An error leaves the old one.
func (j *journal) rewrite() {
	const fresh = journalFile + ".new"
	f, err := j.tree.root.OpenFile(fresh, os.O_RDWR|os.O_CREATE|os.O_TRUNC|os.O_APPEND, 0o600)
	if err != nil {
		return
	}
	var size int64
	for _, l := range j.open {
		n, werr := f.Write(l)
		size += int64(n)
		err = errors.Join(err, werr)
	}
	if err = errors.Join(err, f.Sync()); err == nil {
		err = j.tree.root.Rename(fresh, journalFile)
	}
	if err != nil {
		f.Close()
		return
	}
	fi, err := f.Stat()
	if err != nil {
		f.Close()
		return
	}
	j.file.Close()
	j.file, j.size, j.node = f, size, fileStat(fi).Inode
}

func journalMAC(key, js []byte) string { return makeSeal(key, append([]byte("journal\n"), js...)) }

// readJournal returns the records of this store in order.
func readJournal(r io.Reader, key []byte) []journalRecord {
	var all []journalRecord
	b := bufio.NewReader(r)
	for {
		line, err := b.ReadBytes('\n')
		if err != nil {
			return all
		}
		mac, js, ok := bytes.Cut(bytes.TrimSuffix(line, []byte("\n")), []byte(" "))
		if !ok || !hmac.Equal(mac, []byte(journalMAC(key, js))) {
			continue
		}
		var rec journalRecord
		if json.Unmarshal(js, &rec) == nil && rec.sane() {
			all = append(all, rec)
		}
	}
}

// sane reports whether every path of the record is one that the server writes.
func (r journalRecord) sane() bool {
	for _, op := range r.Ops {
		for _, f := range op.Files {
			if !filepath.IsLocal(f.Path) || Locate(f.Path).Kind == KindIgnored || f.Staged == "" || strings.ContainsAny(f.Staged, "/.") {
				return false
			}
		}
	}
	return true
}

// recoverTree finishes or drops what a crash left behind: each operation of the journal is afterwards whole or
// absent, and tmp is empty. It returns the operations that are whole, for the history to commit those it has not.
func (t *Tree) recoverTree(key []byte, log *slog.Logger) ([]Op, error) {
	if err := t.makeDir(tmpDir); err != nil {
		return nil, err
	}
	records, err := t.loadJournal(key)
	if err != nil {
		return nil, err
	}
	dropped := map[uint64]map[int]bool{}
	for _, r := range records {
		for _, n := range r.Drop {
			if dropped[r.Group] == nil {
				dropped[r.Group] = map[int]bool{}
			}
			dropped[r.Group][n] = true
		}
	}
	var ops []Op
	var touched []string
	for _, r := range records {
		for n, op := range r.Ops {
			whole, err := t.recoverOp(op, dropped[r.Group][n])
			if err != nil {
				return nil, fmt.Errorf("finish %s of an interrupted run: %w", op.Verb, err)
			}
			if whole {
				ops = append(ops, t.recovered(op)...)
			}
			log.Info("operation of an interrupted run", "verb", op.Verb, "agent", op.Agent, "id", op.ID, "whole", whole)
			for _, f := range op.Files {
				touched = append(touched, f.Path)
			}
		}
	}
	if len(touched) > 0 {
		if err := t.syncAll(touched); err != nil {
			return nil, err
		}
	}
	t.closeFolders()
	return ops, t.emptyTmp()
}

// recovered is the operation as the history is told of it again.
func (t *Tree) recovered(op journalOp) []Op {
	o := Op{Verb: op.Verb, Agent: op.Agent, ID: op.ID, Summary: op.Summary, At: op.At, Recovered: true}
	for _, f := range op.Files {
		o.Paths = append(o.Paths, f.Path)
		_, err := t.Stat(f.Path)
		if f.Action == replace && t.holds(f.Path, f.Sum) || f.Action == remove && errors.Is(err, fs.ErrNotExist) {
			o.Revised = append(o.Revised, f.Path)
		}
	}
	return o.each(op.IDs)
}

func (t *Tree) loadJournal(key []byte) ([]journalRecord, error) {
	f, st, err := t.open(journalFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if !st.Mode.IsRegular() {
		return nil, notRegular(st.Mode)
	}
	return readJournal(f, key), nil
}

// recoverOp finishes one operation when every file of it that is not in its place is intact in staging, and
// drops it when one is not: renames begin only once all are durable. A file in its place with other bytes has
// been changed by somebody since: that is theirs.
func (t *Tree) recoverOp(op journalOp, drop bool) (whole bool, err error) {
	if drop {
		for _, f := range op.Files {
			if f.Action == create && t.holds(f.Path, f.Sum) {
				if err := ignoreGone(t.root.Remove(f.Path)); err != nil {
					return false, err
				}
			}
		}
		return false, nil
	}
	var ready []write
	placed, lost, damaged := 0, 0, 0
	for _, f := range op.Files {
		staged := tmpDir + "/" + f.Staged
		_, serr := t.Stat(staged)
		_, derr := t.Stat(f.Path)
		switch {
		case f.Action == remove:
			if t.holds(f.Path, f.Sum) && serr != nil {
				ready = append(ready, write{path: f.Path, action: remove, staged: f.Staged})
			} else {
				placed++
			}
		case t.holds(staged, f.Sum):
			ready = append(ready, write{path: f.Path, action: f.Action, staged: f.Staged})
		case derr == nil: // in its place, perhaps changed by somebody since
			placed++
		case serr != nil:
			lost++
		default:
			damaged++
		}
	}
	if damaged > 0 || lost > 0 && placed == 0 { // not all of it became durable, so nothing of it was renamed
		return false, nil
	}
	for i := range ready {
		if err := t.makeDir(pathDir(ready[i].path)); err != nil {
			return false, err
		}
		if err := t.publish(&ready[i]); err != nil && !errors.Is(err, fs.ErrExist) {
			return false, err
		}
	}
	return true, nil
}

// holds reports whether the file at p has that SHA-256.
func (t *Tree) holds(p, sum string) bool {
	data, _, err := t.Read(p, t.maxFile+MaxHeader)
	return err == nil && hexSum(data) == sum
}

func (t *Tree) emptyTmp() error {
	d, err := t.root.Open(tmpDir)
	if err != nil {
		return err
	}
	names, err := d.Readdirnames(-1)
	d.Close()
	for _, n := range names {
		err = errors.Join(err, ignoreGone(t.root.RemoveAll(tmpDir+"/"+n)))
	}
	return err
}

func hexSum(data []byte) string {
	s := sha256.Sum256(data)
	return hex.EncodeToString(s[:])
}

func pathDir(p string) string {
	if i := strings.LastIndexByte(p, '/'); i >= 0 {
		return p[:i]
	}
	return "."
}
