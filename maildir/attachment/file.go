package attachment

import (
	"bytes"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"mailtree/maildir/format"
	"mailtree/maildir/media"
	"mailtree/maildir/refusal"
	"mailtree/maildir/tree"
	"mailtree/maildir/writer"
)

// File is an attachment in memory.
type File struct {
	format.Attachment
	data  []byte
	there tree.FileStat // the file's state in the tree; zero if the tree does not contain the file
}

// Alternative returns an attachment that contains the HTML version of a message's body.
func Alternative(html string) File {
	f := newFile("body.html", &media.File{Data: []byte(html), Type: "text/html", Ext: ".html"})
	f.Type = format.Alternative
	return f
}

// Named returns a File for a file that came with an email. It detects the type from the file's content, and ignores the
// type that the sender stated.
func Named(name string, data []byte) File { return newFile(name, media.New(name, data)) }

// Email returns the raw text of an email as an attachment.
func Email(raw []byte) File {
	return newFile("message.eml", &media.File{Data: raw, Type: "message/rfc822", Ext: ".eml"})
}

// newFile returns a File with the file name that the sender gave. If the data comes from a data URI without a name,
// name is "".
func newFile(name string, f *media.File) File {
	sum := sha1Of(f.Data)
	switch {
	case name == "" && !strings.HasPrefix(f.Type, "image/"):
		name = "file" + f.Ext
	case name == "":
		name = "image" + f.Ext
	case f.Type == media.WebP:
		name = strings.TrimSuffix(name, filepath.Ext(name)) + f.Ext
	}
	return File{
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

// Copied returns a message's attachment, read from the tree of another project. The result is nil if that tree does not
// contain the file, or contains different bytes under its name. Copied returns an error only for a machine fault
// (tree.FaultOf).
func Copied(a format.Attachment, from *tree.Tree) (*File, error) {
	if a.SHA1 == "" || format.AttachmentSum(a.Path) != a.SHA1 {
		return nil, nil
	}
	data, _, err := from.Read(a.Path, MaxStored)
	if err != nil || sha1Of(data) != a.SHA1 {
		return nil, tree.MachineFault(err)
	}
	return &File{Attachment: a, data: data}, nil
}

func sha1Of(data []byte) string {
	sum := sha1.Sum(data)
	return hex.EncodeToString(sum[:])
}

// otherBytes is the reason given for refusing a file that a user changed or added in the attachments folder.
const otherBytes = "its content does not match the hash in its name"

// Look checks whether the tree contains the file. Look must be called before the message is planned, because it reads
// the file. It may return ErrUnavailable, or ErrConflict if the tree contains something different under the file's
// name.
func (f *File) Look(t *tree.Tree) error {
	st, err := t.Stat(f.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	same := false
	if err == nil {
		same, err = t.SameBytes(f.Path, f.data)
	}
	why := otherBytes
	switch {
	case same:
		f.there = st
		return nil
	case tree.FaultOf(err) == tree.FaultMachine:
		return err
	case err != nil:
		why = tree.PlainFileError(err)
	}
	return &refusal.Error{
		What: refusal.Conflict("The attachment {name} {arg} cannot be stored because of the file {=other} in the " +
			"mail tree: {why}. Nothing was sent. Move that file elsewhere {list of such files}, and send the message again."),
		Field: refusal.Attachments,
		Name:  f.Name,
		Other: f.Path,
		Why:   why,
	}
}

// Plan adds the file to tx, an operation in g. It adds nothing if the tree already contains the file. It returns any
// error from Look.
func (f *File) Plan(tx *writer.Tx, g *writer.Group, t *tree.Tree) error {
	if slices.ContainsFunc(tx.Writes, func(w *tree.Write) bool { return w.Path == f.Path && bytes.Equal(w.Data, f.data) }) {
		return nil // the message attaches the same file twice
	}
	switch st, err := g.Stat(f.Path); {
	case errors.Is(err, fs.ErrNotExist):
		tx.Create(f.Path, f.data)
		return nil
	case err == nil && st == f.there:
		return nil
	}
	return f.Look(t) // another program has created or changed the file since Look was called
}
