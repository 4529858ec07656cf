package backup

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"mailtree/maildir/hook"
	"mailtree/maildir/storedir"
	"mailtree/maildir/tree"
)

// Project is a project of a running server.
type Project struct {
	Slug string

	// KeepPacks prevents the server from repacking the project's Git objects until done is called.
	KeepPacks func(ctx context.Context) (done func(), err error)
	// Still calls fn between two operations of the project, and waits until fn has returned. While fn runs, the server
	// does not change any of the project's files.
	Still func(ctx context.Context, fn func() error) error
}

// Write writes a backup of the store at root. It returns any error from the writer, ctx or the file system.
func Write(ctx context.Context, to io.Writer, root string, h Header, projects []Project) error {
	z, err := gzip.NewWriterLevel(to, gzip.BestSpeed) // Git's objects are compressed already
	if err != nil {
		return err
	}
	w := &archive{root: root, out: z, tar: tar.NewWriter(z)}
	h.Format, h.Store = Version, root
	if err := w.json(headerName, h); err != nil {
		return err
	}
	var end End
	for _, p := range projects {
		gone, err := w.copyProject(ctx, p)
		if err != nil {
			return fmt.Errorf("project %s: %w", p.Slug, err)
		}
		end.Removed = append(end.Removed, gone...)
	}
	if err := w.ownFiles(ctx); err != nil {
		return err
	}
	if err := w.json(endName, end); err != nil {
		return err
	}
	return errors.Join(w.tar.Close(), z.Close())
}

// archive is a backup that is being written.
type archive struct {
	root string
	out  io.Writer // receives the tar archive
	tar  *tar.Writer
}

func (w *archive) json(name string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	err = w.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o600, Size: int64(len(data))})
	if err != nil {
		return err
	}
	_, err = w.tar.Write(data)
	return err
}

// settled is the age at which a stamp becomes reliable: any later change to the file is certain to alter the stamp.
const settled = time.Second

// stamp is the state of a file. If the stamp is unchanged, so is the file.
type stamp struct {
	size, mtime, ctime int64
	inode              uint64
	mode               fs.FileMode
}

func stampOf(fi fs.FileInfo) stamp {
	st := tree.StatOfInfo(fi)
	return stamp{st.Size, st.MTime, st.CTime, st.Inode, st.Mode}
}

// copyProject writes both copies of a project. It returns the paths that were in the first copy but no longer existed
// when the second was made.
func (w *archive) copyProject(ctx context.Context, p Project) (gone []string, err error) {
	done, err := p.KeepPacks(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	dir := path.Join(storedir.ProjectsDir, p.Slug)
	copied := map[string]stamp{}
	if err := w.changes(ctx, w.tar, dir, nil, copied); err != nil {
		return nil, err
	}
	second, err := os.CreateTemp(w.root, ".backup-") // a slow reader of the backup must not block the project
	if err != nil {
		return nil, err
	}
	defer second.Close()
	if err := os.Remove(second.Name()); err != nil {
		return nil, err
	}
	err = p.Still(ctx, func() error {
		before := copied
		copied = map[string]stamp{}
		tw := tar.NewWriter(second)
		if err := w.changes(ctx, tw, dir, before, copied); err != nil {
			return err
		}
		for name := range before {
			if _, is := copied[name]; !is {
				gone = append(gone, name)
			}
		}
		slices.Sort(gone)
		return tw.Flush()
	})
	if err != nil {
		return nil, err
	}
	if err := w.tar.Flush(); err != nil {
		return nil, err
	}
	if _, err := second.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	_, err = io.Copy(w.out, second) // second contains no end-of-archive marker, so w.tar can append more entries
	return gone, err
}

// changes writes the files in a project that differ from their stamps in before, or all files if before is nil. It adds
// all stamps to copied. It writes Git's objects last, because Git's other files refer to them.
func (w *archive) changes(ctx context.Context, tw *tar.Writer, dir string, before, copied map[string]stamp) error {
	objects := path.Join(dir, storedir.RepoDir, ".git", "objects")
	if err := w.folder(ctx, tw, dir, objects, before, copied); err != nil {
		return err
	}
	return w.folder(ctx, tw, objects, "", before, copied)
}

// folder is like changes, but writes only dir, which is a file or folder, and omits the folder skip.
func (w *archive) folder(ctx context.Context, tw *tar.Writer, dir, skip string, before, copied map[string]stamp) error {
	return filepath.WalkDir(filepath.Join(w.root, dir), func(full string, d fs.DirEntry, err error) error {
		if err == nil {
			err = ctx.Err()
		}
		rel, rerr := filepath.Rel(w.root, full)
		name := filepath.ToSlash(rel)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil || rerr != nil:
			return errors.Join(err, rerr)
		case name == skip, omitted(name, d):
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		return w.file(tw, full, name, before, copied)
	})
}

// omitted reports whether a backup omits a file or folder of a project. A backup omits staged files (which the
// journal does not need between two operations), other programs' locks, and Git's incomplete objects.
func omitted(name string, d fs.DirEntry) bool {
	_, below, _ := strings.Cut(name, "/"+storedir.RepoDir+"/")
	inGit := strings.HasPrefix(below, ".git/")
	return below == tree.TmpDir || inGit && strings.HasSuffix(below, ".lock") ||
		strings.HasPrefix(below, ".git/objects/") && strings.HasPrefix(d.Name(), "tmp_")
}

// mayBeLink reports whether a path in a store may be a symbolic link. Only files and folders that a user created in a
// project's tree, and Git's own files, may be links.
func mayBeLink(name string) bool {
	parts := strings.Split(name, "/")
	return len(parts) > 3 && parts[0] == storedir.ProjectsDir && parts[2] == storedir.RepoDir && parts[3] != path.Dir(tree.TmpDir) &&
		(parts[3] != ".git" || len(parts) > 4)
}

// file writes one entry, unless before contains the file's current stamp. It skips a file that no longer exists, and
// anything that is not a regular file, folder or link.
func (w *archive) file(tw *tar.Writer, full, name string, before, copied map[string]stamp) error {
	fi, err := os.Lstat(full)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	is := stampOf(fi)
	switch {
	case before != nil && before[name] == is, fi.IsDir() && before != nil && before[name].mode == is.mode:
		copied[name] = is
		return nil
	case fi.Mode()&fs.ModeSymlink != 0:
		if !mayBeLink(name) {
			return fmt.Errorf("%s is a symbolic link, and backups do not follow links: replace the link with the file or "+
				"folder itself", full)
		}
		to, err := os.Readlink(full)
		if err != nil {
			return ignoreGone(err)
		}
		copied[name] = is
		return tw.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: to, Mode: 0o777})
	case fi.IsDir():
		copied[name] = is
		return tw.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: int64(fi.Mode().Perm())})
	case !fi.Mode().IsRegular():
		return nil
	}
	f, err := os.OpenFile(full, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return ignoreGone(err)
	}
	defer f.Close()
	if fi, err = f.Stat(); err != nil || !fi.Mode().IsRegular() {
		return err
	}
	copied[name] = stampOf(fi)
	if before == nil && time.Since(time.Unix(0, copied[name].ctime)) < settled {
		copied[name] = stamp{} // the next change might leave the stamp unchanged
	}
	err = tw.WriteHeader(&tar.Header{
		Typeflag: tar.TypeReg,
		Name:     name,
		Mode:     int64(fi.Mode().Perm()),
		Size:     fi.Size(),
		ModTime:  fi.ModTime(),
		Format:   tar.FormatPAX, // stores times in nanoseconds
	})
	if err != nil {
		return err
	}
	n, err := io.Copy(tw, io.LimitReader(f, fi.Size()))
	if err == nil && n < fi.Size() { // the file is now shorter: pad with zeros
		_, err = io.CopyN(tw, zeros{}, fi.Size()-n)
	}
	return err
}

func ignoreGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// zeros is an endless source of zero bytes.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}

// ownFiles writes the store's own files. It writes the records of hook runs last.
func (w *archive) ownFiles(ctx context.Context) error {
	entries, err := os.ReadDir(w.root)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if name := e.Name(); storedir.Lasting(name) {
			if err := w.folder(ctx, w.tar, name, "", nil, map[string]stamp{}); err != nil {
				return err
			}
		}
	}
	return w.folder(ctx, w.tar, hook.LogDir, "", nil, map[string]stamp{})
}
