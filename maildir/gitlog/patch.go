package gitlog

import (
	"bytes"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	fdiff "github.com/go-git/go-git/v5/plumbing/format/diff"
	"github.com/go-git/go-git/v5/utils/diff"
	"github.com/sergi/go-diff/diffmatchpatch"
)

const (
	contextLines = 3
	patchTime    = time.Second // after which the rest of a file counts as different
	maxPatched   = 1 << 20     // bytes of a file whose lines are compared; a larger one is shown as a binary file
)

// patch is how a file differs between two trees, as Git shows it.
func (r *repository) patch(path string, old, now entry) (string, error) {
	var texts [2]string
	binary := false
	for i, e := range []entry{old, now} {
		if e.Mode == 0 {
			continue
		}
		data, err := r.read("blob", e.Hash.String())
		if err != nil {
			return "", err
		}
		texts[i] = string(data)
		binary = binary || len(data) > maxPatched || bytes.IndexByte(data, 0) >= 0
	}
	p := &filePatch{binary: binary, from: &side{path, old}, to: &side{path, now}}
	if !binary {
		for _, d := range diff.DoWithTimeout(texts[0], texts[1], patchTime) {
			p.chunks = append(p.chunks, lines{d})
		}
	}
	var b strings.Builder
	err := fdiff.NewUnifiedEncoder(&b, contextLines).Encode(p)
	return b.String(), err
}

// filePatch is the patch of one file, as the encoder wants it.
type filePatch struct {
	binary   bool
	from, to *side
	chunks   []fdiff.Chunk
}

func (p *filePatch) FilePatches() []fdiff.FilePatch { return []fdiff.FilePatch{p} }
func (p *filePatch) Message() string                { return "" }
func (p *filePatch) IsBinary() bool                 { return p.binary }
func (p *filePatch) Chunks() []fdiff.Chunk          { return p.chunks }
func (p *filePatch) Files() (from, to fdiff.File)   { return p.from.file(), p.to.file() }

// side is a file before the change, or after it.
type side struct {
	path string
	entry
}

// file is nil where there is none.
func (s *side) file() fdiff.File {
	if s.entry.Mode == 0 {
		return nil
	}
	return s
}

func (s *side) Hash() plumbing.Hash     { return s.entry.Hash }
func (s *side) Mode() filemode.FileMode { return filemode.FileMode(s.entry.Mode) }
func (s *side) Path() string            { return s.path }

// lines are lines that both sides have, or one.
type lines struct{ diffmatchpatch.Diff }

func (l lines) Content() string { return l.Text }

func (l lines) Type() fdiff.Operation {
	switch l.Diff.Type {
	case diffmatchpatch.DiffDelete:
		return fdiff.Delete
	case diffmatchpatch.DiffInsert:
		return fdiff.Add
	}
	return fdiff.Equal
}
