package clients

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/rogpeppe/go-internal/diff"

	"mailtree/clients/edit"
	"mailtree/maildir/tree"
)

// maxFile is the maximum size in bytes of a file that this package edits. Claude Code's file can reach several
// megabytes, because it contains histories.
const maxFile = 64 << 20

// These errors concern a file. Each is wrapped in an error that contains the file's name.
var (
	ErrReadOnly = errors.New("the file is read-only")
	ErrChanged  = errors.New("another program changed the file in the meantime")
	ErrOutside  = errors.New("the symbolic link points outside the code base")
	errNoFile   = errors.New("not a regular file")
	errTooLarge = fmt.Errorf("the file is larger than %d MiB", maxFile>>20)
)

// file is a client's file as it was when it was read.
type file struct {
	name string      // the path that the client uses
	path string      // the path after resolving links
	base string      // links must not point outside this folder; "" if they may point anywhere
	data []byte      // nil if there is no file
	mode fs.FileMode // if the file does not exist, the mode to create it with
	is   bool        // the file exists
}

// open reads a file, and follows links. If base is not "", it returns ErrOutside for a link that points outside base.
// If there is no file, it returns a file without data. A link to a missing file is an error.
func open(base, name string) (file, error) {
	f := file{name: name, path: name, base: base}
	if err := f.stayInside(); err != nil {
		return f, err
	}
	if _, err := os.Lstat(name); errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	var err error
	if f.path, err = filepath.EvalSymlinks(name); err != nil {
		return f, fmt.Errorf("%s: %w", name, errors.Unwrap(err))
	}
	fi, err := os.Stat(f.path)
	switch {
	case err != nil:
		return f, err
	case !fi.Mode().IsRegular():
		return f, fmt.Errorf("%s: %w", name, errNoFile)
	case fi.Size() > maxFile:
		return f, fmt.Errorf("%s: %w", name, errTooLarge)
	}
	f.mode, f.is = fi.Mode().Perm(), true
	f.data, err = os.ReadFile(f.path)
	return f, err
}

// stayInside returns an error if a link leads outside the file's base. Otherwise, a code base from someone else could
// link to any of the user's files. The error contains the link's target.
func (f *file) stayInside() error {
	if f.base == "" {
		return nil
	}
	missing := ""
	for at := f.name; ; at = filepath.Dir(at) {
		real, err := filepath.EvalSymlinks(at)
		if errors.Is(err, fs.ErrNotExist) && at != filepath.Dir(at) {
			if to, err := os.Readlink(at); err == nil { // a link to a missing file
				return fmt.Errorf("%s links to %s: %w", f.name, to, ErrOutside)
			}
			missing = filepath.Join(filepath.Base(at), missing)
			continue
		}
		if err != nil {
			return err
		}
		real = filepath.Join(real, missing)
		if below, err := filepath.Rel(f.base, real); err != nil || !filepath.IsLocal(below) {
			return fmt.Errorf("%s links to %s: %w", f.name, real, ErrOutside)
		}
		return nil
	}
}

// keptSuffix is the suffix for the name of a backup.
const keptSuffix = ".before-mailtree"

// Change is the new content of one file.
type Change struct {
	After []byte

	file    file
	top     string // if removing the file leaves folders below top empty, they are removed too
	git     string // the same as top, but for the backup
	kept    string // path of the backup
	backup  bool   // make a backup, because the file does not contain anything of ours yet
	exactly bool   // After equals the backup, which is no longer needed
	gone    bool   // nothing is left: remove the file
}

// File returns the path of the changed file, as the client uses it.
func (c *Change) File() string { return c.file.name }

// Backup returns the path of the backup, or "" if this change makes none.
func (c *Change) Backup() string {
	if !c.backup {
		return ""
	}
	return c.kept
}

// Kept returns the path of the backup, which contains the file as it was before the first setup. It returns "" if there
// is currently no backup.
func (c *Change) Kept() string {
	if !exists(c.kept) {
		return ""
	}
	return c.kept
}

// Gone reports whether the change removes the file.
func (c *Change) Gone() bool { return c.gone }

// restore completes a change that removes the part p. If nothing else in the file has changed since the setup, the
// change restores the backup and then deletes it. To check this, restore adds the part to the backup, and compares the
// result with the current file. If there is no backup and nothing is left, the change removes the file, unless the
// client reaches it through a link.
func (c *Change) restore(p part) {
	kept, err := open("", c.kept)
	if err == nil && kept.is {
		if bytes.Equal(c.After, kept.data) {
			c.exactly = true
		} else if again, err := p.put(kept.data); err == nil && bytes.Equal(again, c.file.data) {
			c.After, c.exactly = kept.data, true
		}
		return
	}
	c.gone = p.empty(c.After) && c.file.path == c.file.name
}

// Diff returns the change as a unified diff.
func (c *Change) Diff() []byte { return Diff(c.file.name, c.file.data, c.After) }

// Diff returns the change to a file as a unified diff. It is empty if nothing changes.
func Diff(name string, before, after []byte) []byte {
	old := name
	if len(before) == 0 { // a new file, in the form that Git uses
		old = "/dev/null"
	}
	return diff.Diff(old, before, name, after)
}

// Apply writes the change: first the backup, then the file. It replaces the file with a rename, and preserves the
// file's mode. If it returns ErrChanged or a write error, the file is unchanged.
func (c *Change) Apply() error {
	f := c.file
	if !f.is {
		if err := os.MkdirAll(filepath.Dir(f.path), 0o755); err != nil {
			return err
		}
	}
	if c.backup {
		if err := os.MkdirAll(filepath.Dir(c.kept), 0o755); err != nil {
			return err
		}
		if err := tree.ReplaceFile(c.kept, f.data, f.mode); err != nil {
			return err
		}
	}
	now, err := open(f.base, f.name)
	if err != nil {
		return err
	}
	if now.is != f.is || !bytes.Equal(now.data, f.data) {
		return fmt.Errorf("%s: %w", f.name, ErrChanged)
	}
	if c.gone {
		return removeUpTo(c.top, f.path)
	}
	if err := tree.ReplaceFile(f.path, c.After, f.mode); err != nil {
		return err
	}
	if c.exactly {
		return removeUpTo(c.git, c.kept)
	}
	return nil
}

// removeUpTo removes a file, and then each parent folder below top that becomes empty.
func removeUpTo(top, file string) error {
	if err := os.Remove(file); err != nil {
		return err
	}
	for dir := filepath.Dir(file); ; dir = filepath.Dir(dir) {
		below, err := filepath.Rel(top, dir)
		if err != nil || !filepath.IsLocal(below) || below == "." || os.Remove(dir) != nil {
			return nil
		}
	}
}

// base returns the folder that must contain the client's files after links are resolved. It returns "" for a user's own
// files, whose links may point anywhere.
func (s Setup) base() string {
	if s.Scope == Project {
		return s.Dir
	}
	return ""
}

// top returns the folder above all of the client's files. A setup creates and removes folders only below that folder.
func (s Setup) top() string {
	if s.Scope == Project {
		return s.Dir
	}
	if env := s.Client.user.env; env != "" && s.Env(env) != "" {
		return s.Env(env)
	}
	return s.Home
}

// kept returns the path of the backup for a file in a code base. The backup is in the Git folder, so that Git does not
// list it as untracked. If the backup must be next to the file, kept returns "".
func (s Setup) kept(file string) string {
	name, err := filepath.Rel(s.Dir, file)
	if s.Scope != Project || !exists(s.Git) || err != nil || !filepath.IsLocal(name) {
		return ""
	}
	return filepath.Join(s.Git, program, name+keptSuffix)
}

// fileError adds the path of the client's file to an error, and the line number if it is known. If err is nil, it
// returns nil.
func (c Client) fileError(file string, err error) error {
	var syntax *edit.SyntaxError
	var twice *edit.TwiceError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &syntax) && syntax.Refused != "":
		return &SyntaxError{file, syntax.Line, c.Title + " does not accept " + syntax.Refused}
	case errors.As(err, &syntax):
		return &SyntaxError{file, syntax.Line, syntax.Why}
	case errors.As(err, &twice):
		return &SyntaxError{file, twice.Line, fmt.Sprintf("%q appears twice", twice.Name)}
	}
	return fmt.Errorf("%s: %w", file, err)
}

// SyntaxError reports a syntax error in a client's file.
type SyntaxError struct {
	File string
	Line int // line number, starting at 1
	Why  string
}

func (e *SyntaxError) Error() string { return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Why) }
