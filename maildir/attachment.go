package maildir

import (
	"bytes"
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"mailtree/maildir/format"
	"mailtree/maildir/media"
	"mailtree/maildir/refusal"
	"mailtree/maildir/repo"
	"mailtree/maildir/tree"
	"mailtree/maildir/writer"
)

// attachmentFile is an attachment whose bytes were read.
type attachmentFile struct {
	format.Attachment
	data []byte
}

// What one message may bring along, by default, in bytes.
const (
	MaxAttachment = 10 << 20 // one file
	MaxAttached   = 25 << 20 // all files together
)

// MaxStored is the most that Config.MaxAttachment may be: a larger file of attachments is none that
// a server made.
const MaxStored = 32 << 20

// maxAttachments is how many files one message may bring along.
const maxAttachments = 50

// gathering is what a draft brings along, while it is read.
type gathering struct {
	p      *Project
	d      *Draft
	linked string // the linked work tree that the sender works in; "" for none
	left   int64  // bytes that the message may still bring along
	pixels int    // that may still be converted
	files  []attachmentFile
	notes  []*Error // what was done otherwise than asked
}

// gather reads the files that a sender names, and the images of the body where the draft asks for
// that: then it rewrites the body. It returns the files and what was done otherwise than asked.
// Errors: ErrNotFound, ErrDenied, ErrTooLarge, ErrInvalid, ErrConflict where a file of attachments is
// not what its name says. An image of the body that cannot be read is a note, and no error.
func (p *Project) gather(ctx context.Context, d *Draft) ([]attachmentFile, []*Error, error) {
	if len(d.Attachments) > maxAttachments {
		return nil, nil, refusal.Over(refusal.TooManyAttachments, refusal.Attachments, len(d.Attachments), maxAttachments)
	}
	if len(d.Attachments) == 0 && !d.mayHaveImages() {
		return nil, nil, nil
	}
	p.store.attaching <- struct{}{} // a few at a time, for they are held in memory
	defer func() { <-p.store.attaching }()
	linked, err := repo.LinkedWorkTree(d.WorkDir, p.human)
	if err != nil {
		return nil, nil, refusal.Disk(err)
	}
	g := &gathering{p: p, d: d, linked: linked, left: p.store.cfg.MaxAttached, pixels: maxConverted}
	for _, name := range d.Attachments {
		if err := g.attach(ctx, name); err != nil {
			return nil, nil, err
		}
	}
	if d.mayHaveImages() {
		d.Body = g.bodyImages(ctx)
	}
	return g.files, g.notes, nil
}

// attach takes a file that the sender names. A name that is no file's may be a list of names: models
// write one string for a list.
func (g *gathering) attach(ctx context.Context, name string) error {
	data, base, err := g.readAttachment(refusal.Attachments, name)
	if list := listedNames(name); len(list) > 0 && errors.Is(err, ErrNotFound) {
		for _, one := range list {
			if err := g.attach(ctx, one); err != nil {
				return err
			}
		}
		return nil
	}
	if err == nil && len(g.files) == maxAttachments {
		err = refusal.Over(refusal.TooManyAttachments, refusal.Attachments, maxAttachments+1, maxAttachments)
	}
	if err != nil {
		return err
	}
	f := media.New(base, data)
	g.noteOdd(refusal.Attachments, name, f)
	if g.d.Images != nil && g.d.Images.Convert == ConvertAll {
		g.toWebP(ctx, refusal.Attachments, name, f)
	}
	g.files = append(g.files, *newAttachment(base, f))
	return nil
}

// listedNames cuts a list of names at its commas and line ends, or where it has none at its
// semicolons, and leaves out what is blank. Without any of these it is no list: nil.
func listedNames(list string) (names []string) {
	separators := ",\r\n"
	if !strings.ContainsAny(list, separators) {
		separators = ";"
	}
	if !strings.ContainsAny(list, separators) {
		return nil
	}
	for _, name := range strings.FieldsFunc(list, func(r rune) bool { return strings.ContainsRune(separators, r) }) {
		if name = strings.TrimSpace(name); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// readAttachment reads a file that a field of the draft names, and returns the last element of its
// path. Only files below the tree, a configured attachment root, or the project's own code base
// where that is the top of a Git work tree, or of one linked to it; never through links or hidden
// names (Invariant I8). Where d.by is somebody else than the user of the store, only files outside
// the tree that are that user's own: the store's rights are not lent.
func (g *gathering) readAttachment(field refusal.Field, name string) (data []byte, base string, err error) {
	p, by := g.p, g.d.by
	if name == "" || strings.ContainsRune(name, 0) {
		return nil, "", &Error{What: refusal.AttachmentUnnamed, Field: field, Name: name}
	}
	guest := by != nil && p.store.guest(*by)
	for _, root := range p.attachmentRoots(g.linked, filepath.IsAbs(name)) {
		rel := name
		if filepath.IsAbs(name) {
			r, err := filepath.Rel(root, filepath.Clean(name))
			if err != nil {
				continue
			}
			rel = r
		}
		rel = filepath.ToSlash(filepath.Clean(rel))
		if guest && root == p.tree.Dir() {
			continue
		}
		if rel == "." || !filepath.IsLocal(rel) || hiddenElement(rel) || root == p.tree.Dir() && strings.HasPrefix(rel, format.AgentsDir+"/") {
			continue // what lies below agents is theirs: an outbox copy names bcc recipients
		}
		read := readBelow
		if guest {
			read = func(root, rel string, limit int64) ([]byte, error) { return readOwned(root, rel, limit, by.UID) }
		}
		data, err := read(root, rel, min(g.left, p.store.cfg.MaxAttachment))
		if os.IsNotExist(err) || errors.Is(err, syscall.ENAMETOOLONG) {
			continue
		}
		if over := new(tree.SizeError); errors.As(err, &over) {
			return nil, "", g.take(field, name, over.Size)
		}
		if err != nil {
			return nil, "", &Error{
				What:  refusal.AttachmentUnusable,
				Field: field,
				Name:  name,
				Why:   tree.PlainFileError(err),
			}
		}
		if sum := format.AttachmentSum(rel); root == p.tree.Dir() && sum != "" && sum != sha1Of(data) {
			return nil, "", &Error{
				What:  refusal.AttachmentAltered,
				Field: field,
				Name:  name,
				Why:   otherBytes,
			}
		}
		return data, filepath.Base(rel), g.take(field, name, int64(len(data)))
	}
	if guest {
		return nil, "", &Error{
			What:  refusal.AttachmentNotForGuest,
			Field: field,
			Name:  name,
			Limit: int(p.store.cfg.MaxAttachment >> 20),
		}
	}
	return nil, "", &Error{What: refusal.UnknownAttachment, Field: field, Name: name}
}

// take counts the bytes of a file that the message brings along. Errors: ErrTooLarge, and then
// nothing is counted.
func (g *gathering) take(field refusal.Field, name string, size int64) error {
	var e *Error
	switch most := g.p.store.cfg.MaxAttachment; {
	case size > most:
		e = refusal.Over(refusal.FileTooLarge, field, int(size), int(most))
	case size > g.left:
		e = refusal.Over(refusal.FilesTooLarge, field, int(size), int(g.p.store.cfg.MaxAttached))
	default:
		g.left -= size
		return nil
	}
	e.Name = name
	return e
}

// noteOdd notes that a file is not stored as its name says.
func (g *gathering) noteOdd(field refusal.Field, name string, f *media.File) {
	if f.Odd != "" {
		g.notes = append(g.notes, &Error{
			What:  refusal.AttachmentOdd,
			Field: field,
			Name:  name,
			Why:   f.Odd,
		})
	}
}

// attachmentRoots are the folders to look in: first the code base, then the configured ones, then
// the tree itself. To who works in a linked work tree that is the code base; of the main one, which
// may have other files of the same names, only absolute names are theirs.
func (p *Project) attachmentRoots(linked string, absolute bool) []string {
	var roots []string
	if linked != "" {
		roots = append(roots, linked)
	}
	if p.human != "" && (linked == "" || absolute) {
		if _, err := os.Lstat(filepath.Join(p.human, ".git")); err == nil {
			roots = append(roots, p.human)
		}
	}
	return append(append(roots, p.store.cfg.AttachmentRoots...), p.tree.Dir())
}

func hiddenElement(rel string) bool {
	for e := range strings.SplitSeq(rel, "/") {
		if strings.HasPrefix(e, ".") {
			return true
		}
	}
	return false
}

func readBelow(root, rel string, limit int64) ([]byte, error) {
	t, err := tree.Open(root, 0)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	data, _, err := t.Read(rel, limit)
	return data, err
}

// readOwned reads a file of that user's; what is another's, or is too large, is as if it were not
// there.
func readOwned(root, rel string, limit int64, uid int) ([]byte, error) {
	t, err := tree.Open(root, 0)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	return t.ReadOwned(rel, limit, uid)
}

// otherBytes is what is wrong with a file in attachments that somebody changed or put there.
const otherBytes = "other bytes than its name says"

// planAttachment plans the file of an attachment; none where the tree has it. What is there by that
// name is compared with it, byte for byte: two contents can be made to share a SHA-1. A message
// whose attachment would be something else is refused, and what is in the way stays: a person may
// have put it there, and other mail may name it. Errors: writer.ErrBusy where an operation under
// way writes the file, which may be taken back; ErrConflict.
func (p *Project) planAttachment(tx *writer.Tx, f *attachmentFile) error {
	if slices.ContainsFunc(tx.Writes, func(w *tree.Write) bool { return w.Path == f.Path && bytes.Equal(w.Data, f.data) }) {
		return nil // attached twice
	}
	if p.writer.Holders(writer.Path, f.Path) > 0 {
		return writer.ErrBusy
	}
	same, err := p.tree.SameBytes(f.Path, f.data)
	why := otherBytes
	switch {
	case same:
		return nil
	case errors.Is(err, fs.ErrNotExist):
		tx.Create(f.Path, f.data)
		return nil
	case err != nil && tree.FaultOf(err) == tree.FaultMachine:
		return err
	case err != nil:
		why = tree.PlainFileError(err)
	}
	return &Error{
		What:  refusal.AttachmentBlocked,
		Field: refusal.Attachments,
		Name:  f.Name,
		Other: f.Path,
		Why:   why,
	}
}

// newAlternative is the HTML of a body as an attachment.
func newAlternative(html string) *attachmentFile {
	f := newAttachment("body.html", &media.File{Data: []byte(html), Type: "text/html", Ext: ".html"})
	f.Type = format.Alternative
	return f
}

// newAttachment is a file that its sender calls name; "" for an image of a data URI.
func newAttachment(name string, f *media.File) *attachmentFile {
	sum := sha1Of(f.Data)
	switch {
	case name == "":
		name = "image" + f.Ext
	case f.Type == media.WebP:
		name = strings.TrimSuffix(name, filepath.Ext(name)) + f.Ext
	}
	return &attachmentFile{
		Attachment: format.Attachment{
			Type:      "file",
			MediaType: f.Type,
			Path:      format.AttachmentPath(sum, f.Ext),
			Bytes:     int64(len(f.Data)),
			SHA1:      sum,
			Name:      format.Cut(name, 255),
		},
		data: f.Data,
	}
}

func sha1Of(data []byte) string {
	sum := sha1.Sum(data)
	return hex.EncodeToString(sum[:])
}
