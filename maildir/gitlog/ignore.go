package gitlog

import (
	"bufio"
	"bytes"
	"io"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/go-git/go-git/v5/plumbing/format/gitignore"

	"mailtree/maildir/format"
)

// committable reports whether Git may have that path at all. Names that some system takes for .git
// would make `git fsck` fail and a checkout elsewhere dangerous; .gitmodules is left to the person
// for the same reason.
func committable(path string) bool {
	for i, name := range strings.Split(path, "/") {
		if name == "" || name == "." || name == ".." || isGitFolder(name) || strings.EqualFold(name, ".gitmodules") {
			return false
		}
		if i == 0 && name == format.RunDir {
			return false
		}
	}
	return !strings.ContainsRune(path, 0)
}

// isGitFolder reports whether name is .git to Git, on NTFS or on HFS+.
func isGitFolder(name string) bool {
	name, _, _ = strings.Cut(name, ":")
	name = strings.TrimRight(name, " .")
	name = strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Cf, r) {
			return -1
		}
		return r
	}, name)
	return strings.EqualFold(name, ".git") || strings.EqualFold(name, "git~1")
}

// dangerousLink: fsck refuses links with such names.
func dangerousLink(path string) bool {
	name := strings.ToLower(path[strings.LastIndexByte(path, '/')+1:])
	return strings.HasPrefix(name, ".git") || strings.HasPrefix(name, ".mailmap")
}

// ignorer answers for .gitignore files and .git/info/exclude as they are now. Its answers do not
// count once it has met a fault.
type ignorer struct {
	fault   error // a transient one, of a file that could not be read
	exclude []gitignore.Pattern
	rules   map[string]gitignore.Matcher // of a folder, its parents' included
	lines   map[string][]gitignore.Pattern
	nested  map[string]bool
}

func newIgnorer(git string) *ignorer {
	g := &ignorer{rules: map[string]gitignore.Matcher{}, lines: map[string][]gitignore.Pattern{}, nested: map[string]bool{}}
	b, err := readRegular(filepath.Join(git, "info/exclude"), maxIgnore)
	if err == nil {
		g.exclude = patterns(b, nil)
	}
	g.noteFault(err)
	return g
}

func (g *ignorer) noteFault(err error) {
	if g.fault == nil && transient(err) {
		g.fault = err
	}
}

const maxIgnore = 1 << 20

// What match is asked for.
const (
	aFile   = false
	aFolder = true
)

// match reports whether an untracked path is left out: by a pattern for it or for a folder above
// it, or because it lies in a nested repository.
func (g *ignorer) match(w *worktree, path string, isDir bool) bool {
	elems := strings.Split(path, "/")
	for i := 1; i <= len(elems); i++ {
		dir := strings.Join(elems[:i-1], "/")
		if i > 1 && g.isNested(w, dir) {
			return true
		}
		if g.matcher(w, elems[:i-1], dir).Match(elems[:i], isDir || i < len(elems)) {
			return true
		}
	}
	return false
}

func (g *ignorer) isNested(w *worktree, dir string) bool {
	yes, ok := g.nested[dir]
	if !ok {
		_, err := w.stat(dir + "/.git")
		g.noteFault(err)
		yes = err == nil
		g.nested[dir] = yes
	}
	return yes
}

// matcher holds the patterns that count in a folder.
func (g *ignorer) matcher(w *worktree, elems []string, dir string) gitignore.Matcher {
	if m := g.rules[dir]; m != nil {
		return m
	}
	all := append([]gitignore.Pattern(nil), g.exclude...)
	for i := 0; i <= len(elems); i++ {
		all = append(all, g.folder(w, elems[:i])...)
	}
	m := gitignore.NewMatcher(all)
	g.rules[dir] = m
	return m
}

func (g *ignorer) folder(w *worktree, elems []string) []gitignore.Pattern {
	path := strings.Join(append(append([]string(nil), elems...), ".gitignore"), "/")
	ps, ok := g.lines[path]
	if ok {
		return ps
	}
	f, st, err := w.open(path)
	g.noteFault(err)
	if err == nil {
		if st.Size < maxIgnore {
			b, err := io.ReadAll(io.LimitReader(f, maxIgnore))
			g.noteFault(err)
			ps = patterns(b, elems)
		}
		f.Close()
	}
	g.lines[path] = ps
	return ps
}

func patterns(data []byte, domain []string) (ps []gitignore.Pattern) {
	lines := bufio.NewScanner(bytes.NewReader(data))
	for lines.Scan() {
		l := strings.TrimSuffix(lines.Text(), "\r")
		if l == "" || strings.HasPrefix(l, "#") || strings.TrimSpace(l) == "" {
			continue
		}
		ps = append(ps, gitignore.ParsePattern(l, domain))
	}
	return ps
}
