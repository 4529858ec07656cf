package maildir

import (
	"bytes"
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"io/fs"
	"mime"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"mailtree/maildir/format"
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

// What one message may bring along.
const (
	maxAttachment     = 32 << 20 // bytes
	maxAllAttachments = 64 << 20 // bytes
	maxAttachments    = 50
)

// readAttachments reads the files that a sender names. Only files below the tree, a configured attachment root, or
// the project's own code base where that is the top of a Git work tree, or of one linked to it; never through links or
// hidden names (Invariant I8). Where d.by is somebody else than the user of the store, only files outside the tree that are
// that user's own: the store's rights are not lent. Errors: ErrNotFound, ErrDenied, ErrTooLarge, ErrInvalid,
// ErrConflict where a file of attachments is not what its name says.
func (p *Project) readAttachments(d *Draft) ([]attachmentFile, error) {
	if len(d.Attachments) > maxAttachments {
		return nil, over(refusal.TooManyAttachments, refusal.Attachments, len(d.Attachments), maxAttachments)
	}
	if len(d.Attachments) == 0 {
		return nil, nil
	}
	p.store.attaching <- struct{}{} // a few at a time, for they are held in memory
	defer func() { <-p.store.attaching }()
	var out []attachmentFile
	left := int64(maxAllAttachments)
	linked, err := repo.LinkedWorkTree(d.WorkDir, p.human)
	if err != nil {
		return nil, refusal.Disk(err)
	}
	for _, n := range d.Attachments {
		f, err := p.readAttachment(n, linked, left, d.by)
		if err != nil {
			return nil, err
		}
		left -= f.Bytes
		out = append(out, *f)
	}
	return out, nil
}

func (p *Project) readAttachment(name, linked string, left int64, by *Caller) (*attachmentFile, error) {
	if name == "" || strings.ContainsRune(name, 0) {
		return nil, &Error{What: refusal.AttachmentUnnamed, Field: refusal.Attachments, Name: name}
	}
	guest := by != nil && p.store.guest(*by)
	for _, root := range p.attachmentRoots(linked, filepath.IsAbs(name)) {
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
		data, err := read(root, rel, min(left, maxAttachment))
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			return nil, &Error{
				What:  refusal.AttachmentUnusable,
				Field: refusal.Attachments,
				Name:  name,
				Why:   tree.PlainFileError(err),
			}
		}
		f := newAttachment(filepath.Base(rel), data)
		if sum := format.AttachmentSum(rel); root == p.tree.Dir() && sum != "" && sum != f.SHA1 {
			return nil, &Error{
				What:  refusal.AttachmentAltered,
				Field: refusal.Attachments,
				Name:  name,
				Why:   otherBytes,
			}
		}
		return f, nil
	}
	if guest {
		return nil, &Error{
			What:  refusal.AttachmentNotForGuest,
			Field: refusal.Attachments,
			Name:  name,
			Limit: maxAttachment >> 20,
		}
	}
	return nil, &Error{What: refusal.UnknownAttachment, Field: refusal.Attachments, Name: name}
}

// attachmentRoots are the folders to look in: first the code base, then the configured ones, then the tree itself. To who
// works in a linked work tree that is the code base; of the main one, which may have other files of the same names, only
// absolute names are theirs.
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

// readOwned reads a file of that user's; what is another's, or is too large, is as if it were not there.
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

// planAttachment plans the file of an attachment; none where the tree has it. What is there by that name is
// compared with it, byte for byte: two contents can be made to share a SHA-1. A message whose
// attachment would be something else is refused, and what is in the way stays: a person may have
// put it there, and other mail may name it. Errors: writer.ErrBusy where an operation under way writes the
// file, which may be taken back; ErrConflict.
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

// CheckAttachments reads every file below attachments that is named by its content, and calls bad
// with the path of each that is not what its name says, and why: other bytes, too large for an
// attachment, no file, not readable. It holds little of a file in memory at a time. It returns how
// many are as they should be. Errors: ctx's.
func CheckAttachments(t *tree.Tree, ctx context.Context, bad func(path, why string)) (good int, err error) {
	check := func(p string, err error) {
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			bad(p, tree.PlainFileError(err))
		}
	}
	shards, err := t.List(format.AttachmentsDir)
	check(format.AttachmentsDir, err)
	for _, shard := range shards {
		dir := format.AttachmentsDir + "/" + shard.Name()
		if len(shard.Name()) != 2 {
			continue
		}
		files, err := t.List(dir)
		check(dir, err)
		for _, f := range files {
			p := dir + "/" + f.Name()
			want := format.AttachmentSum(p)
			if want == "" {
				continue
			}
			if ctx.Err() != nil {
				return good, context.Cause(ctx)
			}
			switch sum, err := t.SHA1(p, maxAttachment); {
			case err != nil:
				check(p, err)
			case sum != want:
				bad(p, otherBytes)
			default:
				good++
			}
		}
	}
	return good, nil
}

// newAlternative is the HTML of a body as an attachment.
func newAlternative(html string) *attachmentFile {
	f := newAttachment("body.html", []byte(html))
	f.Type, f.MediaType = format.Alternative, "text/html"
	return f
}

func newAttachment(name string, data []byte) *attachmentFile {
	sum := sha1.Sum(data)
	hex := hex.EncodeToString(sum[:])
	ext := strings.ToLower(filepath.Ext(name))
	if len(ext) > 16 || strings.ContainsFunc(ext, func(r rune) bool { return r != '.' && (r < 'a' || r > 'z') && (r < '0' || r > '9') }) {
		ext = ""
	}
	media := mime.TypeByExtension(ext)
	if media == "" {
		media = http.DetectContentType(data)
	}
	media, _, _ = strings.Cut(media, ";")
	return &attachmentFile{format.Attachment{Type: "file", MediaType: media, Path: format.AttachmentPath(hex, ext), Bytes: int64(len(data)), SHA1: hex, Name: format.Cut(name, 255)}, data}
}
