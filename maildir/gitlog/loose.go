package gitlog

import (
	"compress/zlib"
	"crypto/sha1"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	packFrom  = 20      // more objects than this, or more bytes than packBytes, become one pack
	packBytes = 4 << 20 //
	largeFile = 1 << 20 // larger files are streamed into a loose object: memory stays bounded
)

// objects collects the objects of a commit and puts them into .git/objects: a few as loose files, many as one pack.
// Nothing is visible to Git before finish.
type objects struct {
	dir     string // .git/objects
	tmp     string // .git/mailtree-new: a prune would remove temporary files from objects, however new
	dry     bool   // only names are wanted
	have    map[hash]struct{}
	few     []object
	fresh   []object // the few, once they are written
	keep    string   // what protects our pack from a person's gc
	bytes   int
	pack    *pack
	ready   []rename // written below a temporary name
	deflate *zlib.Writer
	written int // loose objects, a pack being packWeight of them
}

type object struct {
	kind kind
	hash hash
	data []byte
}

type rename struct{ from, to string }

func newObjects(git string) *objects {
	return &objects{dir: filepath.Join(git, "objects"), tmp: filepath.Join(git, newFolder), have: map[hash]struct{}{}}
}

// add takes an object and keeps data.
func (o *objects) add(k kind, data []byte) (hash, error) {
	h := objectHash(k, data)
	if _, ok := o.have[h]; ok || o.dry {
		return h, nil
	}
	o.have[h] = struct{}{}
	if o.pack != nil {
		return h, o.pack.add(object{k, h, data})
	}
	o.few = append(o.few, object{k, h, data})
	o.bytes += len(data)
	if len(o.few) <= packFrom && o.bytes <= packBytes {
		return h, nil
	}
	return h, o.toPack()
}

// toPack turns the few into the beginning of a pack.
func (o *objects) toPack() (err error) {
	if o.pack, err = newPack(filepath.Join(o.dir, "pack"), o.tmp); err != nil {
		return err
	}
	for _, x := range o.few {
		if err := o.pack.add(x); err != nil {
			return err
		}
	}
	o.few, o.bytes = nil, 0
	return nil
}

var errChanging = errors.New("the file changes while it is read")

// addFile takes the blob of an open file of size bytes without holding it in memory: it goes into the pack, which a
// person's gc leaves alone. errChanging when the file has another size by now.
func (o *objects) addFile(f io.Reader, size int64) (hash, error) {
	if o.dry {
		sum := sha1.New()
		sum.Write(objectHeader(blobObject, size))
		return copied(sum, f, size, sum)
	}
	if o.pack == nil {
		if err := o.toPack(); err != nil {
			return hash{}, err
		}
	}
	h, err := o.pack.addFile(f, size, o.have)
	o.have[h] = struct{}{}
	return h, err
}

func copied(to io.Writer, from io.Reader, size int64, sum interface{ Sum([]byte) []byte }) (hash, error) {
	n, err := io.Copy(to, io.LimitReader(from, size))
	if err == nil && n != size {
		err = errChanging
	}
	return hash(sum.Sum(nil)), err
}

func (o *objects) loose(h hash) string {
	name := h.String()
	return filepath.Join(o.dir, name[:2], name[2:])
}

// zip is a deflater at the fastest level: deflate, not SHA-1, is what a commit costs (LIMITS.md).
func (o *objects) zip(w io.Writer) *zlib.Writer {
	if o.deflate == nil {
		o.deflate, _ = zlib.NewWriterLevel(w, zlib.BestSpeed)
	} else {
		o.deflate.Reset(w)
	}
	return o.deflate
}

// finishLoose makes every object durable and gives it its name. The names are durable after the next syncAll: the
// paths it returns are for that. After an error discard must be called.
func (o *objects) finishLoose() (names []string, err error) {
	for _, x := range o.few {
		if err := o.writeLoose(x); err != nil {
			return nil, err
		}
	}
	o.fresh, o.few, o.bytes = o.few, nil, 0
	if o.pack != nil {
		p := o.pack
		o.pack = nil
		ready, err := p.finishPack()
		o.ready = append(o.ready, ready...)
		if err != nil {
			return nil, err
		}
		keep := strings.TrimSuffix(ready[len(ready)-1].to, ".pack") + ".keep"
		if err := writeNew(keep, []byte(keepText), 0o444); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		o.keep = keep
	}
	written := make([]string, len(o.ready))
	for i, r := range o.ready {
		written[i] = r.from
	}
	if len(written) == 0 {
		return nil, nil
	}
	if err = syncAll(o.dir, written); err != nil {
		return nil, err
	}
	for i, r := range o.ready {
		err := os.Rename(r.from, r.to)
		if errors.Is(err, fs.ErrNotExist) { // a new folder, or one that a prune has just removed
			_ = os.MkdirAll(filepath.Dir(r.to), 0o777)
			err = os.Rename(r.from, r.to)
		}
		if err != nil {
			o.ready = o.ready[i:]
			return nil, err
		}
		names = append(names, filepath.Dir(r.to))
		if o.written++; strings.HasSuffix(r.to, ".pack") {
			o.written += packWeight - 2 // with its index
		}
	}
	o.ready = nil
	return append(names, o.dir), nil
}

func (o *objects) writeLoose(x object) error {
	to := o.loose(x.hash)
	if fi, err := os.Lstat(to); err == nil && fi.Mode().IsRegular() && fi.Size() > 0 {
		now := time.Now() // as Git does: a prune that runs beside us keeps what is fresh
		if os.Chtimes(to, now, now) == nil {
			return nil
		}
	}
	tmp, err := newTemp(o.tmp)
	if err != nil {
		return err
	}
	o.ready = append(o.ready, rename{tmp.Name(), to})
	z := o.zip(tmp)
	_, err = z.Write(objectHeader(x.kind, int64(len(x.data))))
	if err == nil {
		_, err = z.Write(x.data)
	}
	return errors.Join(err, z.Close(), tmp.Chmod(0o444), tmp.Close())
}

// keepText tells our .keep files from others. One protects a pack until the branch has moved; those that a kill
// leaves are removed by sweep.
const keepText = "a commit of the mailtree server is on its way\n"

// discard removes what has no name yet, and gives the pack free.
func (o *objects) discard() {
	if o.keep != "" {
		os.Remove(o.keep)
		o.keep = ""
	}
	if o.pack != nil {
		o.pack.discard()
		o.pack = nil
	}
	for _, r := range o.ready {
		os.Remove(r.from)
	}
	o.few, o.ready, o.have = nil, nil, map[hash]struct{}{}
}

// newTemp makes a temporary file, and the folder for it.
func newTemp(dir string) (*os.File, error) {
	f, err := os.CreateTemp(dir, "")
	if errors.Is(err, fs.ErrNotExist) {
		if err := os.Mkdir(dir, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		f, err = os.CreateTemp(dir, "")
	}
	return f, err
}

func ignoreGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
