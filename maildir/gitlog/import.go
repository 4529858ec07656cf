package gitlog

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"mailtree/maildir/tree"
)

// nextRef is a ref that points to the newest commit of a round before the branch moves there, so that `git prune`
// does not remove the commit. The next round moves nextRef again.
const nextRef = "refs/mailtree/next"

// importer passes the objects of a round to `git fast-import`, which writes them to one pack and then moves nextRef.
// importer starts the program when the first object is written.
type importer struct {
	repo *repository
	base hash

	cmd  *exec.Cmd // nil if the program has not been started or has ended
	pipe io.Closer
	in   *bufio.Writer
	out  *bufio.Reader
	said strings.Builder
	sent bool      // a commit was sent to the program
	from time.Time // when the program was started
}

func (g *gitProgram) newObjects(base hash) objects { return &importer{repo: g.repository, base: base} }

// start starts the program if it is not running.
func (i *importer) start() error {
	if i.cmd != nil {
		return nil
	}
	program, err := i.repo.program()
	if err != nil {
		return err
	}
	// Only our fast-import writes nextRef, and only one server uses the store. Therefore, any lock that exists here was
	// left behind by a killed program.
	if err := tree.IgnoreGone(os.Remove(i.repo.path(nextRef + ".lock"))); err != nil {
		return err
	}
	c := gitCommand(i.repo.ctx, program, i.repo.git, "-c", "core.fsync=all", "-c", "fastimport.unpackLimit=0",
		"-c", "core.bigFileThreshold=1m", "fast-import", "--quiet", "--done", "--force", "--date-format=raw")
	c.Env = append(c.Env, "GIT_NO_REPLACE_OBJECTS=1") // our other commands do not see the replacements either
	c.Stderr = &i.said
	pipe, err := c.StdinPipe()
	if err != nil {
		return err
	}
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		return err
	}
	i.out = bufio.NewReader(out)
	i.from = time.Now().Truncate(time.Second)
	i.cmd, i.pipe, i.in = c, pipe, bufio.NewWriterSize(pipe, 64<<10)
	return nil
}

// fewPaths is the maximum number of paths to look up with fast-import, which reads the folders again for each path.
const fewPaths = 64

// entries implements objects. The program that writes the objects also looks up a few paths, so that no other program
// has to be started.
func (i *importer) entries(paths ...string) (map[string]entry, error) {
	if i.base.IsZero() || len(paths) == 0 || len(paths) > fewPaths {
		return i.repo.entries(i.base, paths...)
	}
	at := map[string]entry{}
	for _, path := range paths {
		e, err := i.lookUp(path)
		if err != nil {
			return nil, fmt.Errorf("look up %s: %w", oneLine(path, 200), err)
		}
		if e.Mode != 0 {
			at[path] = e
		}
	}
	return at, nil
}

func (i *importer) lookUp(path string) (e entry, err error) {
	if err := i.start(); err != nil {
		return e, err
	}
	line := ""
	fmt.Fprintf(i.in, "ls %s %s\n", i.base, quotePath(path))
	if err = i.in.Flush(); err == nil {
		line, err = i.out.ReadString('\n')
	}
	if err != nil {
		return e, i.endProgram(err)
	}
	about, _, _ := strings.Cut(line, "\t") // "MODE KIND HASH", or "missing PATH"
	switch f := strings.Fields(about); {
	case strings.HasPrefix(line, "missing "):
		return e, nil
	case len(f) == 3:
		return anyEntry(f[0], f[2]), nil
	}
	return e, fmt.Errorf("unexpected output from git fast-import: %q", line)
}

func (i *importer) blob(size int64, in io.Reader) (hash, error) {
	sum := blobSum(size)
	if err := i.start(); err != nil {
		return hash{}, err
	}
	fmt.Fprintf(i.in, "blob\ndata %d\n", size)
	n, err := io.Copy(io.MultiWriter(i.in, sum), io.LimitReader(in, size))
	if n < size { // the program expects size bytes
		if _, err := io.CopyN(i.in, zeros{}, size-n); err != nil {
			return hash{}, err
		}
		err = cmp.Or(err, errChanging)
	}
	i.in.WriteByte('\n')
	return hash(sum.Sum(nil)), err
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

func (i *importer) commit(c commitFor, makes []version) error {
	if err := i.start(); err != nil {
		return err
	}
	fmt.Fprintf(i.in, "commit %s\nauthor %s %s\ncommitter %s %s\ndata %d\n%s\n", nextRef,
		c.Author, gitTime(c.Written), c.Committer, gitTime(c.Made), len(c.Message), c.Message)
	if !i.sent && !i.base.IsZero() {
		fmt.Fprintf(i.in, "from %s\n", i.base)
	}
	i.sent = true
	for _, parent := range c.Merges {
		fmt.Fprintf(i.in, "merge %s\n", parent)
	}
	for _, v := range makes {
		if v.is.Mode == 0 {
			fmt.Fprintf(i.in, "D %s\n", quotePath(v.path))
		}
	}
	for _, v := range makes {
		if v.is.Mode != 0 {
			fmt.Fprintf(i.in, "M %o %s %s\n", v.is.Mode, v.is.Hash, quotePath(v.path))
		}
	}
	return nil
}

var quoted = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// quotePath quotes a path as fast-import expects it.
func quotePath(path string) string { return `"` + quoted.Replace(path) + `"` }

func (i *importer) Finish() (newest hash, err error) {
	i.in.WriteString("done\n")
	if err = i.endProgram(i.in.Flush()); err != nil {
		return hash{}, err
	}
	newest, err = i.repo.ref(nextRef)
	if err == nil && newest.IsZero() {
		err = errors.New("git fast-import created no commit")
	}
	return newest, err
}

// Discard ends the program if it is still running.
func (i *importer) Discard() {
	if i.cmd != nil {
		_ = i.endProgram(nil)
	}
}

// removeKept removes the .keep file that a terminated fast-import leaves next to its pack. Otherwise, another
// fast-import could not write the same pack again.
func (i *importer) removeKept() {
	names, _ := filepath.Glob(i.repo.path("objects/pack/pack-*.keep"))
	for _, name := range names {
		fi, err := os.Lstat(name)
		if b, _ := readSmall(name); err == nil && !fi.ModTime().Before(i.from) && string(b) == "fast-import" {
			_ = os.Remove(name)
		}
	}
}

func (i *importer) endProgram(err error) error {
	c := i.cmd
	i.cmd = nil
	err = errors.Join(err, i.pipe.Close())
	if failed := c.Wait(); failed != nil {
		_ = os.Remove(i.repo.path("fast_import_crash_" + strconv.Itoa(c.Process.Pid)))
		i.removeKept()
		err = fmt.Errorf("git fast-import: %w: %s", failed, oneLine(i.said.String(), 500))
	}
	return err
}
