package attachment

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"mailtree/maildir/format"
	"mailtree/maildir/markdown"
	"mailtree/maildir/media"
	"mailtree/maildir/refusal"
	"mailtree/maildir/repo"
	"mailtree/maildir/tree"
)

// What one message may bring along, by default, in bytes.
const (
	MaxFile  = 10 << 20 // one file
	MaxTotal = 25 << 20 // all files together
)

// MaxStored is the most that Settings.MaxFile may be: a larger file of attachments is none that a
// server made.
const MaxStored = 32 << 20

// maxFiles is how many files one message may bring along.
const maxFiles = 50

// Settings are a store's for what its messages bring along. The zero value is the default.
type Settings struct {
	MaxFile   int64       // bytes of one file; 0: MaxFile
	MaxTotal  int64       // bytes of all files that one message brings along; 0: MaxTotal
	Images    ImagePolicy // what becomes of images in bodies; "": ImagesAuto
	MaxInline int         // bytes of an image that is put into a body; 0: MaxInline, below 0: none
	Roots     []string    // folders that files may be read from, beside the tree and the project's work tree
	// CodePhoto makes WebP of a JPEG image with some loss; nil: photographs stay as they are. Its
	// error says why it cannot.
	CodePhoto func(ctx context.Context, jpeg []byte) ([]byte, error)
}

// Intake gathers what the messages of one store bring along. Safe for concurrent use.
type Intake struct {
	Settings
	reading    chan struct{} // tokens of those who hold files in memory
	converting chan struct{} // full while an image is converted
}

// NewIntake returns the intake of a store.
func NewIntake(s Settings) *Intake {
	s.MaxFile = cmp.Or(s.MaxFile, MaxFile)
	s.MaxTotal = cmp.Or(s.MaxTotal, MaxTotal)
	s.Images = cmp.Or(s.Images, ImagesAuto)
	s.MaxInline = cmp.Or(s.MaxInline, MaxInline)
	return &Intake{s, make(chan struct{}, 2), make(chan struct{}, 1)}
}

// Request is what a sender asks to have sent along.
type Request struct {
	Names    []string // of files: absolute, or below a root
	Body     string
	TextOnly bool    // the body is no markdown
	Images   *Images // what becomes of the images of the body; nil: they stay as they are

	Tree     *tree.Tree // of the project
	CodeBase string     // the project's, absolute; read where it is the top of a work tree; "": none
	WorkDir  string     // absolute folder that the sender works in; "" or any other: the main work tree
	OwnedBy  *int       // the uid of a sender to whom the store's rights are not lent; nil: they are
}

// Brought is what a message brings along.
type Brought struct {
	Files []File
	Body  string           // which names the copies of images that it showed
	Notes []*refusal.Error // what was done otherwise than asked
}

// gathering is what a message brings along, while it is read.
type gathering struct {
	in     *Intake
	r      *Request
	linked string // the linked work tree that the sender works in; "" for none
	bytes  int64  // that the message brings along so far
	pixels int    // that were converted so far
	files  []File
	notes  []*refusal.Error
}

// Gather reads the files of a request, and the images of its body where it asks for that. Errors:
// ErrNotFound, ErrTooLarge, ErrInvalid, ErrConflict where a file of attachments is not what its name
// says, ErrUnavailable.
func (in *Intake) Gather(ctx context.Context, r Request) (*Brought, error) {
	if len(r.Names) > maxFiles {
		return nil, refusal.Over(refusal.TooManyAttachments, refusal.Attachments, len(r.Names), maxFiles)
	}
	images := r.Images != nil && !r.TextOnly && markdown.MayHaveImages(r.Body)
	if len(r.Names) == 0 && !images {
		return &Brought{Body: r.Body}, nil
	}
	in.reading <- struct{}{}
	defer func() { <-in.reading }()
	linked, err := repo.LinkedWorkTree(r.WorkDir, r.CodeBase)
	if err != nil {
		return nil, refusal.Disk(err)
	}
	g := &gathering{in: in, r: &r, linked: linked}
	for _, name := range r.Names {
		if err := g.attach(ctx, name); err != nil {
			return nil, err
		}
	}
	if images {
		r.Body = g.bodyImages(ctx)
	}
	return &Brought{g.files, r.Body, g.notes}, nil
}

// attach gathers a file that the sender names. A name that is no file's may be a list of names: models
// write one string for a list.
func (g *gathering) attach(ctx context.Context, name string) error {
	data, base, err := g.readAttachment(name)
	if list := listedNames(name); len(list) > 0 && errors.Is(err, refusal.ErrNotFound) {
		for _, one := range list {
			if err := g.attach(ctx, one); err != nil {
				return err
			}
		}
		return nil
	}
	if err == nil && len(g.files) == maxFiles {
		err = refusal.Over(refusal.TooManyAttachments, refusal.Attachments, maxFiles+1, maxFiles)
	}
	if err != nil {
		return err
	}
	f, shown := media.New(base, data), shortURI(name)
	g.noteOdd(refusal.Attachments, shown, f)
	if g.r.Images != nil && g.r.Images.Convert == ConvertAll {
		g.toWebP(ctx, refusal.Attachments, shown, f)
	}
	g.files = append(g.files, newFile(base, f))
	return nil
}

// readAttachment reads what an attachment names: a file, or the data of a URI. base is "" for data.
func (g *gathering) readAttachment(name string) (data []byte, base string, err error) {
	if !isDataURI(name) {
		return g.readNamed(refusal.Attachments, name)
	}
	data, err = dataURI(refusal.Attachments, name)
	if err == nil {
		err = g.count(refusal.Attachments, shortURI(name), int64(len(data)))
	}
	return data, "", err
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

// readNamed reads a file that a field of the request names, and returns the last element of its
// path. It looks in the roots, in their order. Errors: ErrNotFound, ErrTooLarge, ErrInvalid,
// ErrConflict where a file of attachments is not what its name says.
func (g *gathering) readNamed(field refusal.Field, name string) (data []byte, base string, err error) {
	e := &refusal.Error{
		What: refusal.NotFound("The attachment {name} {arg} was not found, or is not where attachments may be read from: the project's " +
			"code base (the top of a Git work tree), the mail tree, or {folders of attachments}; no hidden folders, no links."),
		Field: field,
		Name:  name,
	}
	if name == "" || strings.ContainsRune(name, 0) {
		e.What = refusal.Invalid("The attachment {name} {arg} has an empty or invalid name: give a path.")
		return nil, "", e
	}
	for _, root := range g.roots(filepath.IsAbs(name)) {
		rel := name
		if filepath.IsAbs(name) {
			rel, _ = filepath.Rel(root, name) // "" where that cannot be
		}
		rel = filepath.ToSlash(filepath.Clean(rel))
		inTree := root == g.r.Tree.Dir()
		hidden := strings.Contains("/"+rel, "/.") // or the root itself
		if hidden || !filepath.IsLocal(rel) || inTree && (g.r.OwnedBy != nil || strings.HasPrefix(rel, format.AgentsDir+"/")) {
			continue
		}
		data, err := g.readBelow(root, rel)
		sum := format.AttachmentSum(rel)
		switch over := new(tree.SizeError); {
		case os.IsNotExist(err) || errors.Is(err, syscall.ENAMETOOLONG):
			continue
		case errors.As(err, &over):
			return nil, "", g.count(field, name, over.Size)
		case err != nil:
			e.What, e.Why = refusal.AttachmentUnusable, tree.PlainFileError(err)
			return nil, "", e
		case inTree && sum != "" && sum != sha1Of(data):
			e.What, e.Why = refusal.AttachmentAltered, otherBytes
			return nil, "", e
		}
		return data, filepath.Base(rel), g.count(field, name, int64(len(data)))
	}
	if g.r.OwnedBy != nil {
		e.What, e.Limit = refusal.NotFound("The attachment {name} {arg} cannot be read for you, since the server lends its rights to "+
			"no other user: you can attach files of your own only, of at most {limit} MiB, in the project's code base (the top of "+
			"a Git work tree) or {folders of attachments}; no hidden folders, no links. Put the text into the body, or have the "+
			"user who runs the server send the file."), int(g.in.MaxFile>>20)
	}
	return nil, "", e
}

// roots are the folders to look in: first the code base, then the configured ones, then the tree
// itself. To who works in a linked work tree that is the code base; of the main one, which may have
// other files of the same names, only absolute names are theirs.
func (g *gathering) roots(absolute bool) []string {
	var roots []string
	if g.linked != "" {
		roots = append(roots, g.linked)
	}
	if g.r.CodeBase != "" && (g.linked == "" || absolute) {
		if _, err := os.Lstat(filepath.Join(g.r.CodeBase, ".git")); err == nil {
			roots = append(roots, g.r.CodeBase)
		}
	}
	return append(append(roots, g.in.Roots...), g.r.Tree.Dir())
}

// readBelow reads a file that lies below a root. What is another's than Request.OwnedBy, or is then
// too large, is as if it were not there.
func (g *gathering) readBelow(root, rel string) ([]byte, error) {
	t, err := tree.Open(root, 0)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	limit := min(g.in.MaxTotal-g.bytes, g.in.MaxFile)
	if g.r.OwnedBy != nil {
		return t.ReadOwned(rel, limit, *g.r.OwnedBy)
	}
	data, _, err := t.Read(rel, limit)
	return data, err
}

// count counts the bytes of a file that the message brings along. Errors: ErrTooLarge, and then
// nothing is counted.
func (g *gathering) count(field refusal.Field, name string, size int64) error {
	var e *refusal.Error
	switch most := g.in.MaxFile; {
	case size > most:
		e = refusal.Over(refusal.TooLarge("The file {name} {arg} has {count} bytes, over the limit of {limit} for one file."),
			field, int(size), int(most))
	case size > g.in.MaxTotal-g.bytes:
		e = refusal.Over(refusal.TooLarge("The file {name} {arg} has {count} bytes, and with it this message would bring along more "+
			"than the limit of {limit} bytes: send it in another one."), field, int(size), int(g.in.MaxTotal))
	default:
		g.bytes += size
		return nil
	}
	e.Name = name
	return e
}

// noteOdd notes that a file is not stored as its name says.
func (g *gathering) noteOdd(field refusal.Field, name string, f *media.File) {
	if f.Odd != "" {
		g.note(refusal.Note("The attachment {name} {arg} is not stored as its name says: {why}."), field, name, f.Odd)
	}
}

func (g *gathering) note(what refusal.What, field refusal.Field, name, why string) {
	g.notes = append(g.notes, &refusal.Error{
		What:  what,
		Field: field,
		Name:  name,
		Why:   why,
	})
}
