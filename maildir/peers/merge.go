package peers

import (
	"cmp"
	"context"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"path"
	"slices"
	"time"

	"mailtree/maildir/attachment"
	"mailtree/maildir/format"
	"mailtree/maildir/history"
	"mailtree/maildir/merge"
	"mailtree/maildir/refusal"
	"mailtree/maildir/tree"
	"mailtree/maildir/writer"
)

const (
	syncFiles = 512     // maximum number of files in one operation, unless this would split a message's files
	syncBytes = 8 << 20 // maximum total size of the files in one operation, in bytes
	syncFew   = 128     // a merge with more files than this checks their total size first; attachment.MaxStored limits each file
)

// errFilesMoved means that a file differs from the branch because it has just been changed.
var errFilesMoved error = &refusal.Error{
	What: refusal.Unavailable("Files in the mail tree have changes that are not committed yet; try again."),
}

// mergeRemote merges the shared branch. If there is nothing to merge or push, it creates no commit. If it did, two
// machines would create merge commits for each other forever. It returns errFilesMoved, or errors from the history and
// the writer.
func (sy *Sync) mergeRemote(ctx context.Context, m *history.MergeInput) error {
	named, renamed, err := sy.settleNames(ctx, m)
	if err != nil {
		return err
	}
	if renamed {
		return errFilesMoved
	}
	ours, theirs, err := sy.raisedBy(ctx, m)
	if err != nil {
		return fmt.Errorf("cannot compare the project's formats on this and the other machines: %w", err)
	}
	later := laterOf(ctx, sy.mail.History, m)
	changes, stay := merge.Merge(m.Files, func(path string) bool {
		if path == format.ProjectFile && (ours || theirs) {
			return theirs
		}
		return named[path] || later.theirs(path)
	})
	if later.err != nil {
		return later.err
	}
	sy.note(func(s *SyncState) { s.Skipped = stay })
	if len(changes) == 0 && !m.Own {
		return nil
	}
	slices.SortFunc(changes, func(a, b merge.Change) int { // group each message's files, after profiles and attachments
		return cmp.Or(cmp.Compare(format.Locate(a.Path).ID, format.Locate(b.Path).ID), cmp.Compare(a.Path, b.Path))
	})
	if err := sy.inTheWay(changes); err != nil {
		return err
	}
	if len(changes) > syncFew {
		var hashes []string
		for _, c := range changes {
			hashes = append(hashes, c.Is.Hash)
		}
		if err := sy.mail.History.Fits(ctx, hashes); err != nil {
			return err
		}
	}
	tx := &writer.Tx{}
	for len(changes) > 0 {
		some, err := sy.readRemote(ctx, changes)
		if err != nil {
			return err
		}
		changes = changes[len(some):]
		tx = sy.applyRemote(some)
		tx.Merges = writer.Merge{Commit: m.Theirs, More: len(changes) > 0, Onto: m.Ours}
		if err := sy.mail.Writer.Do(ctx, tx); err != nil {
			return err
		}
	}
	if len(tx.Writes) == 0 { // all files are up to date, and only the history still lacks the merge
		merges := writer.Merge{Commit: m.Theirs, Onto: m.Ours}
		sy.mail.History.Record([]writer.Op{{Verb: "sync", Merges: merges, At: sy.mail.Store.Now(), Summary: "nothing new"}}, nil)
	}
	return sy.mail.History.Flush(ctx)
}

// inTheWay returns an error if there is a file at a path where the changes need a folder.
func (sy *Sync) inTheWay(changes []merge.Change) error {
	looked := map[string]bool{}
	for _, c := range changes {
		for dir := path.Dir(c.Path); c.Is.Mode != 0 && dir != "." && !looked[dir]; dir = path.Dir(dir) {
			looked[dir] = true
			if st, err := sy.mail.Tree.Stat(dir); err == nil && !st.Mode.IsDir() {
				return fmt.Errorf("%s is a file on this machine and a folder on the other: rename one of them", format.Printable(dir))
			}
		}
	}
	return nil
}

// later reports which side of a merge changed a file last.
type later struct {
	theirs func(path string) bool
	err    error
}

// laterOf returns the later for a merge. The first call of the later's function theirs reads the times of both sides'
// changes. If both sides changed a file in the same second, both machines treat the content with the greater hash as
// the later one.
func laterOf(ctx context.Context, h history.Log, m *history.MergeInput) *later {
	l := &later{}
	files := map[string]merge.File{}
	var ours, theirs map[string]time.Time
	l.theirs = func(path string) bool {
		if ours == nil {
			for _, f := range m.Files {
				files[f.Path] = f
			}
			var err error
			if ours, l.err = h.Touched(ctx, m.Base, m.Ours); l.err == nil {
				theirs, err = h.Touched(ctx, m.Base, m.Theirs)
			}
			l.err = cmp.Or(l.err, err)
		}
		if c := ours[path].Compare(theirs[path]); c != 0 {
			return c < 0
		}
		return files[path].Ours.Hash < files[path].Theirs.Hash
	}
	return l
}

// remoteFile is one change in a merge, with the file's content.
type remoteFile struct {
	merge.Change
	data []byte
}

// readRemote reads the contents of as many changes as fit into one operation. It never splits a message's files.
func (sy *Sync) readRemote(ctx context.Context, changes []merge.Change) (some []remoteFile, err error) {
	bytes := 0
	err = sy.mail.History.Blobs(ctx, func(read func(hash string) ([]byte, error)) (err error) {
		for _, c := range changes {
			f := remoteFile{Change: c}
			id := format.Locate(c.Path).ID
			if n := len(some); (n >= syncFiles || bytes >= syncBytes) && (id == "" || id != format.Locate(some[n-1].Path).ID) {
				return nil
			}
			if c.Is.Mode != 0 {
				if f.data, err = read(c.Is.Hash); err != nil {
					return fmt.Errorf("%s: %w", format.Printable(c.Path), err)
				}
			}
			bytes += len(f.data)
			some = append(some, f)
			switch whole := int64(bytes) - syncBytes; {
			case len(f.data) > sy.maxRemoteSize(c.Path):
				return fmt.Errorf("the other machine's %s is %d bytes long, which is more than this server "+
					"accepts", format.Printable(c.Path), len(f.data))
			case whole > sy.mail.Store.MaxFanout+4*sy.mail.Tree.MaxFile() || len(some) > syncFiles+8*format.MaxRecipients:
				return fmt.Errorf("message %s has more copies on the other machine than this server accepts", format.Printable(id))
			}
		}
		return nil
	})
	return some, err
}

// maxRemoteSize returns the maximum size, in bytes, of the file at a path.
func (sy *Sync) maxRemoteSize(path string) int {
	if format.Locate(path).Kind == format.KindAttachment {
		return attachment.MaxStored
	}
	return int(sy.mail.Tree.MaxFile() + format.MaxHeader)
}

// applyRemote returns the operation that applies a merge's changes. The operation's plan returns errFilesMoved if a
// file differs from the branch, even if the file has the merged content. In that case, a user's rebase or pull may
// have written the file, and may remove it again before the merge is committed.
func (sy *Sync) applyRemote(files []remoteFile) *writer.Tx {
	tx := &writer.Tx{Op: writer.Op{Verb: "sync", Summary: fmt.Sprintf("%d files from other machines", len(files))}, Alone: true}
	tx.Plan = func(g *writer.Group) error {
		for _, f := range files {
			now, err := sy.blobAt(f.Path)
			switch {
			case err != nil:
				return err
			case now == f.Is.Hash && f.Beside:
			case now != f.Was.Hash:
				return &refusal.Error{
					What: refusal.Unavailable("The other machines' version of {=other} was not merged, because the " +
						"file has uncommitted changes on this machine. The next sync will try again. If " +
						"the problem persists, commit the file with `git add` and `git commit`."),
					Other: f.Path,
					Err:   errFilesMoved,
				}
			case now == "":
				tx.Create(f.Path, f.data)
			case f.Is.Mode == 0:
				err = g.Remove(tx, f.Path)
			default:
				err = g.Replace(tx, f.Path, f.data)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	return tx
}

// blobAt returns Git's hash of the content of the file at path, or "" if the file does not exist.
func (sy *Sync) blobAt(path string) (string, error) {
	data, _, err := sy.mail.Tree.Read(path, int64(sy.maxRemoteSize(path)))
	if tree.FaultOf(err) == tree.FaultGone {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", format.Printable(path), err)
	}
	sum := sha1.New()
	fmt.Fprintf(sum, "blob %d\x00", len(data))
	sum.Write(data)
	return hex.EncodeToString(sum.Sum(nil)), nil
}
