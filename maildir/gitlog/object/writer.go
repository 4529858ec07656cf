package object

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

// When a Writer makes a pack.
const (
	PackFrom  = 20 // more objects than this, or more bytes than packBytes, become one pack
	packBytes = 4 << 20
	LargeFile = 1 << 20 // larger files are given to AddFile: memory stays bounded
)

// Writer collects the objects of a commit and puts them into .git/objects: a few as loose files,
// many as one pack. Whoever makes one calls Finish when all objects are added, and Discard at the
// end in any case.
type Writer struct {
	Fresh        []Object // the loose ones, once Finish has written them
	Loose, Packs int      // how many Finish has written

	dir     string // .git/objects
	tmp     string // outside: a prune would remove temporary files from objects, however new
	sync    Sync
	have    map[Hash]struct{}
	draft   bool // all objects stay in few
	few     []Object
	keep    string // what protects our pack from a person's gc
	bytes   int
	pack    *pack
	ready   []rename // written below a temporary name
	deflate *zlib.Writer
}

// Object is an object with its content.
type Object struct {
	Kind Kind
	Hash Hash
	Data []byte
}

type rename struct{ from, to string }

// Sync makes files durable that were written to the file system of dir.
type Sync func(dir string, paths []string) error

// NewWriter writes to the objects of the repository at git, through the temporary folder tmp.
func NewWriter(git, tmp string, sync Sync) *Writer {
	return &Writer{dir: filepath.Join(git, "objects"), tmp: tmp, sync: sync, have: map[Hash]struct{}{}}
}

// Namer returns a Writer that writes nothing: it only tells the names of objects.
func Namer() *Writer { return &Writer{} }

// Draft returns a Writer that keeps its objects in memory, for Store.Hold.
func Draft() *Writer { return &Writer{have: map[Hash]struct{}{}, draft: true} }

func (o *Writer) dry() bool { return o.have == nil }

// Add takes an object and keeps data, which nobody may change then. Errors: those of writing a
// pack.
func (o *Writer) Add(k Kind, data []byte) (Hash, error) {
	h := HashOf(k, data)
	if _, ok := o.have[h]; ok || o.dry() {
		return h, nil
	}
	o.have[h] = struct{}{}
	if o.pack != nil {
		return h, o.pack.add(Object{Kind: k, Hash: h, Data: data})
	}
	o.few = append(o.few, Object{Kind: k, Hash: h, Data: data})
	o.bytes += len(data)
	if o.draft || len(o.few) <= PackFrom && o.bytes <= packBytes {
		return h, nil
	}
	return h, o.toPack()
}

// toPack turns the few into the beginning of a pack.
func (o *Writer) toPack() (err error) {
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

// ErrChanging is what AddFile says of a file that has another size by now.
var ErrChanging = errors.New("the file changes while it is read")

// AddFile takes the blob of an open file of size bytes without holding it in memory: it goes into
// the pack, which a person's gc leaves alone. ErrChanging when the file has another size by now.
func (o *Writer) AddFile(f io.Reader, size int64) (Hash, error) {
	if o.dry() {
		sum := sha1.New()
		sum.Write(header(KindBlob, size))
		return copied(sum, f, size, sum)
	}
	if o.pack == nil {
		if err := o.toPack(); err != nil {
			return Hash{}, err
		}
	}
	h, err := o.pack.addFile(f, size, o.have)
	o.have[h] = struct{}{}
	return h, err
}

func copied(to io.Writer, from io.Reader, size int64, sum interface{ Sum([]byte) []byte }) (Hash, error) {
	n, err := io.Copy(to, io.LimitReader(from, size))
	if err == nil && n != size {
		err = ErrChanging
	}
	return Hash(sum.Sum(nil)), err
}

func (o *Writer) loose(h Hash) string {
	name := h.String()
	return filepath.Join(o.dir, name[:2], name[2:])
}

// zip is a deflater at the fastest level: deflate, not SHA-1, is what a commit costs. See
// docs/speed.md, "What decided how it is done".
func (o *Writer) zip(w io.Writer) *zlib.Writer {
	if o.deflate == nil {
		o.deflate, _ = zlib.NewWriterLevel(w, zlib.BestSpeed)
	} else {
		o.deflate.Reset(w)
	}
	return o.deflate
}

// Finish makes every object durable and gives it its name. The names are durable after the next
// sync: the paths it returns are for that. The pack is protected from a gc until Discard, which
// must be called in any case.
func (o *Writer) Finish() (names []string, err error) {
	for _, x := range o.few {
		if err := o.writeLoose(x); err != nil {
			return nil, err
		}
	}
	o.Fresh, o.few, o.bytes = o.few, nil, 0
	if err := o.endPack(); err != nil || len(o.ready) == 0 {
		return nil, err
	}
	written := make([]string, len(o.ready))
	for i, r := range o.ready {
		written[i] = r.from
	}
	if err = o.sync(o.dir, written); err != nil {
		return nil, err
	}
	for i, r := range o.ready {
		if err := o.rename(r); err != nil {
			o.ready = o.ready[i:]
			return nil, err
		}
		names = append(names, filepath.Dir(r.to))
	}
	o.ready = nil
	return append(names, o.dir), nil
}

// endPack completes the pack, if there is one, and protects it before it has its name.
func (o *Writer) endPack() error {
	if o.pack == nil {
		return nil
	}
	p := o.pack
	o.pack = nil
	ready, err := p.finishPack()
	o.ready = append(o.ready, ready...)
	if err != nil {
		return err
	}
	keep := strings.TrimSuffix(ready[len(ready)-1].to, ".pack") + ".keep"
	if err := writeKeep(keep); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	o.keep = keep
	return nil
}

// rename gives a file its name, and counts it.
func (o *Writer) rename(r rename) error {
	err := os.Rename(r.from, r.to)
	if errors.Is(err, fs.ErrNotExist) { // a new folder, or one that a prune has just removed
		_ = os.MkdirAll(filepath.Dir(r.to), 0o777)
		err = os.Rename(r.from, r.to)
	}
	if err != nil {
		return err
	}
	switch filepath.Ext(r.to) {
	case ".pack":
		o.Packs++
	case "":
		o.Loose++
	}
	return nil
}

func (o *Writer) writeLoose(x Object) error {
	to := o.loose(x.Hash)
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
	_, err = z.Write(header(x.Kind, int64(len(x.Data))))
	if err == nil {
		_, err = z.Write(x.Data)
	}
	return errors.Join(err, z.Close(), tmp.Chmod(0o444), tmp.Close())
}

func writeKeep(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o444)
	if err != nil {
		return err
	}
	_, err = f.WriteString(KeepText)
	return errors.Join(err, f.Close())
}

// KeepText tells our .keep files from others. One protects a pack until the branch has moved; a
// kill leaves it.
const KeepText = "a commit of the mailtree server is on its way\n"

// Discard removes what has no name yet, and gives the pack free.
func (o *Writer) Discard() {
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
	o.few, o.ready, o.have = nil, nil, map[Hash]struct{}{}
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
