package attachment

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"mailtree/maildir/format"
	"mailtree/maildir/lazy"
	"mailtree/maildir/media"
	"mailtree/maildir/refusal"
	"mailtree/maildir/tree"
)

// Stored is an attachment that was read from the tree.
type Stored struct {
	Path      string // path in the tree
	MediaType string
	Data      []byte
}

// Read reads the attachment with the given SHA-1 (in hex) from a project's tree. project is the project's name for
// error messages. Read returns ErrNotFound if there is no such attachment, ErrTooLarge if the file is longer than limit
// bytes, or ErrConflict if the file's content does not match its name.
func Read(t *tree.Tree, project, sum string, limit int64) (*Stored, error) {
	path, err := Find(t, sum)
	if err != nil {
		return nil, err
	}
	if path == "" {
		return nil, Missing(project, sum)
	}
	data, stat, err := t.Read(path, limit)
	if err := check(t, project, path, sum, sha1Of(data), stat, limit, err); err != nil {
		return nil, err
	}
	return &Stored{Path: path, MediaType: media.New(path, data).Type, Data: data}, nil
}

// Opened is an open attachment in the tree. The caller must close it after reading.
type Opened struct {
	io.ReadCloser
	Path string // path in the tree
	Size int64
}

// MediaType returns the attachment's media type. start contains the beginning of the attachment's content.
func (o *Opened) MediaType(start []byte) string { return media.New(o.Path, start).Type }

// Open is like Read, but it opens the file and keeps only a small part of it in memory. It returns any error from Read.
func Open(t *tree.Tree, project, sum string, limit int64) (*Opened, error) {
	path, err := Find(t, sum)
	if err != nil {
		return nil, err
	}
	if path == "" {
		return nil, Missing(project, sum)
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

// Missing returns the error for an attachment that does not exist. The error is an ErrNotFound.
func Missing(project, sum string) *refusal.Error {
	return &refusal.Error{
		What: refusal.NotFound("No attachment {name} in project {=other}: use the sha1 of an attachment listed " +
			"in a message."),
		Field: refusal.Attachments,
		Name:  sum,
		Other: project,
	}
}

// check returns an error if a file is too large, could not be read, or does not match its name. The parameter "is" is
// the SHA-1 of the file's content.
func check(t *tree.Tree, project, path, sum, is string, stat tree.FileStat, limit int64, err error) error {
	e := Missing(project, sum)
	switch {
	case stat.Size > limit:
		e.What, e.Other, e.Counts, e.Limit = refusal.TooLarge("The attachment {name} is {count} bytes long, over the limit "+
			"of {limit} for one response. Read the file {=other} instead."), filepath.Join(t.Dir(), path), []int{int(stat.Size)}, int(limit)
	case err != nil:
		e.What, e.Why = refusal.AttachmentUnusable, tree.PlainFileError(err)
	case is != strings.ToLower(sum):
		e.What, e.Why = refusal.AttachmentAltered, otherBytes
	default:
		return nil
	}
	return e
}

// Find returns the path of the attachment with the given SHA-1 (in hex), or "" if there is none. It returns
// ErrUnavailable if the folder cannot be read.
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

// walkStored calls fn with the path of every file in the attachments folder whose name is a SHA-1. If a folder cannot
// be read, it calls fn with the folder's path and the error. If ctx is canceled, it returns ctx's error.
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

// Check reads every file in the attachments folder whose name is a SHA-1. It keeps only a small part of a file in
// memory. Check calls bad with the path and the reason for each file that does not match its name, is too large for an
// attachment, is not a regular file, or cannot be read. It returns the number of good files. If ctx is canceled, it
// returns ctx's error.
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

// sums matches text that may be the SHA-1 of an attachment.
var sums = lazy.Regexp(`[0-9a-f]{40}`)

// Unnamed lists the stored attachments whose names do not appear in any other file in the tree, including invalid
// messages, copies and drafts. It changes nothing. While a server is running, the list may include a file of a message
// that is being sent. Unnamed returns ctx's error if ctx is canceled. It also returns an error if any file or folder
// cannot be read, because the unreadable file may name any attachment.
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
		for _, sum := range sums().FindAll(data, -1) {
			named[string(sum)] = true
		}
		return err
	})
	stored = slices.DeleteFunc(stored, func(p string) bool { return named[format.AttachmentSum(p)] })
	return stored, err
}
