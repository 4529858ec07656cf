package attachment

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"mailtree/maildir/format"
	"mailtree/maildir/media"
	"mailtree/maildir/refusal"
	"mailtree/maildir/tree"
)

// Stored is a file of the tree that mail brought along.
type Stored struct {
	Path      string // in the tree
	MediaType string
	Data      []byte
}

// Read reads the file of a project's tree whose bytes have that SHA-1, in hex. project is how a
// refusal calls the project. Errors: ErrNotFound; ErrTooLarge where the file has more than limit
// bytes; ErrConflict where the bytes are not what its name says.
func Read(t *tree.Tree, project, sum string, limit int64) (*Stored, error) {
	path, err := Find(t, sum)
	if err != nil {
		return nil, err
	}
	if path == "" {
		return nil, unusable(project, sum)
	}
	data, stat, err := t.Read(path, limit)
	if err := check(t, project, path, sum, sha1Of(data), stat, limit, err); err != nil {
		return nil, err
	}
	return &Stored{Path: path, MediaType: media.New(path, data).Type, Data: data}, nil
}

// Opened is a file of the tree that mail brought along, to be read piece by piece and closed.
type Opened struct {
	io.ReadCloser
	Path string // in the tree
	Size int64
}

// Open opens the file that Read reads, and holds little of it in memory. Errors: as of Read.
func Open(t *tree.Tree, project, sum string, limit int64) (*Opened, error) {
	path, err := Find(t, sum)
	if err != nil {
		return nil, err
	}
	if path == "" {
		return nil, unusable(project, sum)
	}
	is, hashed := t.SHA1(path, limit)
	file, stat, err := t.Open(path)
	if err := check(t, project, path, sum, is, stat, limit, errors.Join(err, hashed)); err != nil {
		if file != nil {
			file.Close()
		}
		return nil, err
	}
	return &Opened{file, path, stat.Size}, nil
}

// unusable is the refusal of a file that is not there.
func unusable(project, sum string) *refusal.Error {
	return &refusal.Error{
		What:  refusal.NotFound("No attachment {name} in project {=other}: give the sha1 of one that a message names."),
		Field: refusal.Attachments,
		Name:  sum,
		Other: project,
	}
}

// check refuses a file that is too large, cannot be read, or holds other bytes than its name says: is
// is their SHA-1.
func check(t *tree.Tree, project, path, sum, is string, stat tree.FileStat, limit int64, err error) error {
	e := unusable(project, sum)
	switch {
	case stat.Size > limit:
		e.What, e.Other, e.Counts, e.Limit = refusal.TooLarge("The attachment {name} has {count} bytes, over the limit of {limit} for "+
			"one answer: read the file {=other}."), filepath.Join(t.Dir(), path), []int{int(stat.Size)}, int(limit)
	case err != nil:
		e.What, e.Why = refusal.AttachmentUnusable, tree.PlainFileError(err)
	case is != strings.ToLower(sum):
		e.What, e.Why = refusal.AttachmentAltered, otherBytes
	default:
		return nil
	}
	return e
}

// Find finds the path of the file whose bytes have that SHA-1, in hex; "" where there is none.
// Errors: ErrUnavailable where the folder cannot be read.
func Find(t *tree.Tree, sum string) (string, error) {
	sum = strings.ToLower(sum)
	if len(sum) < 2 || format.AttachmentSum(format.AttachmentPath(sum, "")) == "" {
		return "", nil
	}
	dir := filepath.Dir(format.AttachmentPath(sum, ""))
	files, err := t.List(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", &refusal.Error{What: refusal.PathUnread, Other: dir, Why: tree.PlainFileError(err)}
	}
	for _, f := range files {
		if file := dir + "/" + f.Name(); format.AttachmentSum(file) == sum {
			return file, nil
		}
	}
	return "", nil
}

// walkStored calls fn with every file below attachments that is named by its content, or with the
// path of a folder that cannot be read and why. Errors: ctx's.
func walkStored(ctx context.Context, t *tree.Tree, fn func(path string, err error)) error {
	list := func(dir string) []fs.DirEntry {
		entries, err := t.List(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			fn(dir, err)
		}
		return entries
	}
	for _, shard := range list(format.AttachmentsDir) {
		dir := format.AttachmentsDir + "/" + shard.Name()
		if len(shard.Name()) != 2 {
			continue
		}
		for _, f := range list(dir) {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if p := dir + "/" + f.Name(); format.AttachmentSum(p) != "" {
				fn(p, nil)
			}
		}
	}
	return nil
}

// Check reads every file below attachments that is named by its content, and calls bad
// with the path of each that is not what its name says, and why: other bytes, too large for an
// attachment, no file, not readable. It holds little of a file in memory at a time. It returns how
// many are as they should be. Errors: ctx's.
func Check(ctx context.Context, t *tree.Tree, bad func(path, why string)) (good int, err error) {
	err = walkStored(ctx, t, func(p string, err error) {
		sum := ""
		if err == nil {
			sum, err = t.SHA1(p, MaxStored)
		}
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			bad(p, tree.PlainFileError(err))
		case sum != format.AttachmentSum(p):
			bad(p, otherBytes)
		default:
			good++
		}
	})
	return good, err
}

// sums matches what may be the SHA-1 of an attachment.
var sums = regexp.MustCompile(`[0-9a-f]{40}`)

// Unnamed lists the files below attachments whose names stand in no other file of the
// tree: no message, no copy of one and no draft, valid or not. It changes nothing. While a server
// runs, a file of a message that is just being sent may be among them. Errors: ctx's; of a file or
// folder that cannot be read, since it may name any.
func Unnamed(ctx context.Context, t *tree.Tree) ([]string, error) {
	var stored []string
	var unread error
	if err := walkStored(ctx, t, func(p string, err error) {
		stored, unread = append(stored, p), errors.Join(unread, err)
	}); err != nil || unread != nil {
		return nil, errors.Join(err, unread)
	}
	named := map[string]bool{}
	err := t.Walk(ctx, "", func(p string, d fs.DirEntry) error {
		if k := format.Locate(p).Kind; k == format.KindAttachment || k == format.KindIgnored || !d.Type().IsRegular() {
			return nil
		}
		data, _, err := t.Read(p, t.MaxFile())
		for _, sum := range sums.FindAll(data, -1) {
			named[string(sum)] = true
		}
		return err
	})
	stored = slices.DeleteFunc(stored, func(p string) bool { return named[format.AttachmentSum(p)] })
	return stored, err
}
