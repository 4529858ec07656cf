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

// Default limits for the files of one message, in bytes.
const (
	MaxFile  = 10 << 20 // for one file
	MaxTotal = 25 << 20 // for all files together
)

// MaxStored is the upper limit for Settings.MaxFile. No server stores a larger attachment.
const MaxStored = 32 << 20

// maxFiles is the maximum number of files in one message.
const maxFiles = 50

// Settings contains a store's settings for attachments. The zero value selects the defaults.
type Settings struct {
	MaxFile   int64       // maximum size of a file, in bytes; 0 means MaxFile
	MaxTotal  int64       // maximum total size of a message's files, in bytes; 0 means MaxTotal
	Images    ImagePolicy // where images in bodies are stored; empty means ImagesAuto
	MaxInline int         // maximum size of an image in a body, in bytes; 0 means MaxInline, negative means no images
	Roots     []string    // folders that files may be read from, in addition to the tree and the working tree
	// CodePhoto converts a JPEG image to WebP with some loss. Its error says why the conversion failed. If CodePhoto is
	// nil, photographs are kept unchanged.
	CodePhoto func(ctx context.Context, jpeg []byte) ([]byte, error)
}

// Intake gathers the attachments of one store's messages. It is safe for concurrent use.
type Intake struct {
	Settings
	reading    chan struct{} // holds one token for each call that has files in memory
	converting chan struct{} // full while an image is being converted
}

// NewIntake returns the Intake of a store.
func NewIntake(s Settings) *Intake {
	s.MaxFile = cmp.Or(s.MaxFile, MaxFile)
	s.MaxTotal = cmp.Or(s.MaxTotal, MaxTotal)
	s.Images = cmp.Or(s.Images, ImagesAuto)
	s.MaxInline = cmp.Or(s.MaxInline, MaxInline)
	return &Intake{s, make(chan struct{}, 2), make(chan struct{}, 1)}
}

// Request describes the attachments that a sender requests for a message.
type Request struct {
	Names    []string // file names: absolute, or relative to a root
	Files    []File   // additional files, in memory
	Body     string
	TextOnly bool    // the body is not markdown
	Images   *Images // how to handle the images in the body; nil leaves them unchanged

	Tree     *tree.Tree   // the project's tree
	CodeBase string       // absolute path of the code base, or empty; its files are never read unless it is the top of a working tree
	WorkDir  string       // absolute path of the folder in which the sender works; ignored if outside the code base
	Places   repo.Folders // other folders that contain the code base
	OwnedBy  *int         // uid of a sender who may read only their own files; nil for other senders
}

// Brought contains a message's attachments and its body after Gather has read the files.
type Brought struct {
	Files []File
	Body  string           // the message's body, with references to the stored copies of its images
	Notes []*refusal.Error // report how the result differs from the request
}

// gathering is the state of one Gather call.
type gathering struct {
	in     *Intake
	r      *Request
	linked string // linked worktree, or other additional folder of the code base, in which the sender works; empty if there is none
	within string // folder in which the sender works, relative to linked or to the code base; empty if there is none
	bytes  int64  // bytes read so far for the message
	pixels int    // pixels converted so far
	files  []File
	notes  []*refusal.Error
}

// Gather reads the files in a request and, if requested, the images in its body. It may return ErrNotFound,
// ErrTooLarge, ErrInvalid, ErrUnavailable, or ErrConflict if the content of a file in the attachments folder does not
// match its name.
func (in *Intake) Gather(ctx context.Context, r Request) (*Brought, error) {
	if n := len(r.Names) + len(r.Files); n > maxFiles {
		return nil, refusal.Over(refusal.TooManyAttachments, refusal.Attachments, n, maxFiles)
	}
	images := r.Images != nil && !r.TextOnly && markdown.MayHaveImages(r.Body)
	if len(r.Names) == 0 && len(r.Files) == 0 && !images {
		return &Brought{Body: r.Body}, nil
	}
	in.reading <- struct{}{}
	defer func() { <-in.reading }()
	g := &gathering{in: in, r: &r}
	if err := g.locate(); err != nil {
		return nil, refusal.Disk(err)
	}
	for _, f := range r.Files {
		if err := g.count(refusal.Attachments, f.Name, f.Bytes); err != nil {
			return nil, err
		}
		g.files = append(g.files, f)
	}
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

// attach adds a file that the sender names. If no such file exists, attach treats the name as a list of names, because
// models sometimes write a list as a single string.
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

// readAttachment reads an attachment, which is a file or a data URI. base is the name of the file. For a data URI, base
// is the name in the URI, or "" if the URI contains none.
func (g *gathering) readAttachment(name string) (data []byte, base string, err error) {
	if !isDataURI(name) {
		return g.readNamed(refusal.Attachments, name)
	}
	data, err = dataURI(refusal.Attachments, name)
	if err == nil {
		err = g.count(refusal.Attachments, shortURI(name), int64(len(data)))
	}
	return data, nameInURI(name), err
}

// listedNames splits a list of names at its commas and line breaks or, if it has neither, at its semicolons. It omits
// blank names. It returns nil if the list has no separator.
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

// readNamed reads a file that a field of the request names. It looks up a relative name first in the folder in which
// the sender works, and then in the roots, in order. base is the last element of the file's path. It may return
// ErrNotFound, ErrTooLarge, ErrInvalid, or ErrConflict if the content of a file in the attachments folder does not
// match its name.
func (g *gathering) readNamed(field refusal.Field, name string) (data []byte, base string, err error) {
	e := &refusal.Error{
		What: refusal.NotFound("The attachment {name} {arg} was not found, or the server is not allowed to read it. The server " +
			"reads attachments from the project's code base (if it is the top of a Git working tree), the mail tree, and " +
			"{folders of attachments}. It does not read hidden files or folders, and it does not follow links."),
		Field: field,
		Name:  name,
	}
	if name == "" || strings.ContainsRune(name, 0) {
		e.What = refusal.Invalid("The attachment path {name} {arg} is empty or contains a NUL character: specify the path of a file.")
		return nil, "", e
	}
	if at := filepath.Join(g.within, name); g.within != "" && !filepath.IsAbs(name) && exists(at) {
		name = at
	}
	at, other, err := g.otherFolder(name)
	if err != nil {
		return nil, "", err
	}
	for _, root := range g.roots(filepath.IsAbs(at), other) {
		rel := at
		if filepath.IsAbs(at) {
			rel, _ = filepath.Rel(root, at) // rel is empty if at cannot be expressed relative to root
		}
		rel = filepath.ToSlash(filepath.Clean(rel))
		inTree := root == g.r.Tree.Dir()
		hidden := strings.Contains("/"+rel, "/.") // also true for the root itself (".")
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
		e.What, e.Limit = refusal.NotFound("The attachment {name} {arg} was not found, or you are not allowed "+
			"to attach it. You can attach only files that you own, of at most {limit} MiB, in the project's code base "+
			"(if it is the top of a Git working tree) or {folders of attachments}. Hidden files, hidden folders and links "+
			"are not allowed. Put the file's text into the body, or ask the user who runs the server to send the file."), int(g.in.MaxFile>>20)
	}
	return nil, "", e
}

// locate sets linked and within to the folders in which the sender works. It returns an error only for a machine fault.
func (g *gathering) locate() (err error) {
	if !filepath.IsAbs(g.r.WorkDir) || g.r.CodeBase == "" {
		return nil
	}
	if g.linked, err = g.r.Places.Around(g.r.WorkDir, g.r.CodeBase); err != nil {
		return err
	}
	dir, err := repo.WithoutLinks(filepath.Clean(g.r.WorkDir))
	if strings.HasPrefix(dir, cmp.Or(g.linked, g.r.CodeBase)+"/") {
		g.within = dir
	}
	return err
}

func exists(file string) bool {
	_, err := os.Lstat(file)
	return err == nil
}

// otherFolder checks whether a name refers to a file in another folder of the code base, such as a linked worktree that
// the sender does not work in. If so, it returns the file's absolute path and the top of that folder. Otherwise it
// returns the name unchanged and "".
func (g *gathering) otherFolder(name string) (at, top string, err error) {
	at = name
	if !filepath.IsAbs(name) {
		at = filepath.Join(cmp.Or(g.linked, g.r.CodeBase), name)
	}
	top, err = g.r.Places.Around(filepath.Dir(at), g.r.CodeBase)
	if err != nil {
		return "", "", refusal.Disk(err)
	}
	if top == "" || top == g.linked {
		return name, "", nil
	}
	return at, top, nil
}

// roots returns the folders to search. The order is: the other folder of the code base that contains the named file (if
// any), the code base, the configured folders, and the tree. If the sender works in a linked worktree or similar
// folder, that folder is searched instead of the code base. The main working tree may contain different files with the
// same names, so it is then searched only for absolute names.
func (g *gathering) roots(absolute bool, other string) []string {
	var roots []string
	for _, linked := range []string{other, g.linked} {
		if linked != "" {
			roots = append(roots, linked)
		}
	}
	if g.r.CodeBase != "" && (g.linked == "" || absolute) {
		if _, err := os.Lstat(filepath.Join(g.r.CodeBase, ".git")); err == nil {
			roots = append(roots, g.r.CodeBase)
		}
	}
	return append(append(roots, g.in.Roots...), g.r.Tree.Dir())
}

// readBelow reads a file below a root. If Request.OwnedBy is set, a file is treated as missing if it belongs to another
// user or is too large.
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

// count adds a file's size to the message's total. If the total would exceed a limit, count returns ErrTooLarge and
// adds nothing.
func (g *gathering) count(field refusal.Field, name string, size int64) error {
	var e *refusal.Error
	switch most := g.in.MaxFile; {
	case size > most:
		e = refusal.Over(refusal.TooLarge("The file {name} {arg} is {count} bytes long, over the limit of {limit} for one file."),
			field, int(size), int(most))
	case size > g.in.MaxTotal-g.bytes:
		e = refusal.Over(refusal.TooLarge("The file {name} {arg} is {count} bytes long and would take this message's "+
			"attachments over the limit of {limit} bytes: send it in another message."), field, int(size), int(g.in.MaxTotal))
	default:
		g.bytes += size
		return nil
	}
	e.Name = name
	return e
}

// noteOdd adds a note if a file's content does not match its name.
func (g *gathering) noteOdd(field refusal.Field, name string, f *media.File) {
	if f.Odd != "" {
		g.note(refusal.Note("The attachment {name} {arg} is stored with a different type than its name suggests: {why}."), field, name, f.Odd)
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
