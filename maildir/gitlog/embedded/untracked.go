package embedded

import (
	"cmp"
	"context"
	"io/fs"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/format/gitignore"

	"mailtree/maildir/tree"
)

const (
	ignoreFile = ".gitignore"
	maxIgnore  = 1 << 20 // maximum size of a .gitignore in bytes
)

// Untracked calls each once for every untracked file at or below the given paths of a work tree. The path "" means the
// whole tree. Untracked omits files that match a .gitignore. It also omits files that match a pattern in exclude, which
// is the content of .git/info/exclude. Like git status, it does not enter nested repositories and does not follow
// links.
func Untracked(
	ctx context.Context, w *tree.Tree, exclude []byte, paths []string, tracked func(path string) bool, each func(path string),
) error {
	s := &search{w: w, tracked: tracked, each: each, folders: map[string]*ignores{}}
	s.folders[""] = &ignores{patterns: slices.Concat(patterns(exclude, ""), s.ignoreFile(""))}
	for _, path := range paths {
		st, err := w.Stat(cmp.Or(path, "."))
		if err == nil {
			err = s.visit(ctx, path, st.Mode)
		}
		if err != nil && (ctx.Err() != nil || tree.FaultOf(err) == tree.FaultMachine) {
			return err
		}
	}
	return nil
}

type search struct {
	w       *tree.Tree
	tracked func(path string) bool
	each    func(path string)
	folders map[string]*ignores
}

// ignores is the set of ignore rules for a folder.
type ignores struct {
	all      bool
	patterns []gitignore.Pattern
}

func (i *ignores) match(path string, dir bool) bool {
	return i.all || gitignore.NewMatcher(i.patterns).Match(strings.Split(path, "/"), dir)
}

// in returns the ignore rules for the folder that contains path.
func (s *search) in(path string) *ignores {
	dir := path[:max(strings.LastIndexByte(path, '/'), 0)]
	if known := s.folders[dir]; known != nil {
		return known
	}
	above := s.in(dir)
	i := &ignores{all: above.match(dir, true)}
	if _, err := s.w.Stat(dir + "/.git"); err == nil {
		i.all = true
	}
	if !i.all {
		i.patterns = slices.Concat(above.patterns, s.ignoreFile(dir))
	}
	s.folders[dir] = i
	return i
}

// ignoreFile returns the patterns in a folder's .gitignore.
func (s *search) ignoreFile(dir string) []gitignore.Pattern {
	data, _, err := s.w.Read(joined(dir, ignoreFile), maxIgnore)
	if err != nil { // like Git, ignore a .gitignore that cannot be read
		return nil
	}
	return patterns(data, dir)
}

// patterns parses the .gitignore of a folder.
func patterns(data []byte, dir string) (all []gitignore.Pattern) {
	var domain []string
	if dir != "" {
		domain = strings.Split(dir, "/")
	}
	for line := range strings.Lines(strings.TrimPrefix(string(data), "\ufeff")) {
		line = strings.TrimRight(line, "\r\n")
		if strings.TrimSpace(line) != "" && !strings.HasPrefix(line, "#") {
			all = append(all, gitignore.ParsePattern(line, domain))
		}
	}
	return all
}

// visit calls each for the untracked files at or below a path.
func (s *search) visit(ctx context.Context, path string, mode fs.FileMode) error {
	if !mode.IsDir() {
		if !s.tracked(path) && !s.in(path).match(path, false) {
			s.each(path)
		}
		return nil
	}
	if path != "" && s.in(path+"/").all {
		return nil
	}
	names, err := s.w.List(cmp.Or(path, "."))
	if tree.FaultOf(err) != tree.FaultMachine {
		err = ctx.Err()
	}
	for i := 0; i < len(names) && err == nil; i++ {
		if name := names[i].Name(); path != "" || name != ".git" {
			err = s.visit(ctx, joined(path, name), names[i].Type())
		}
	}
	return err
}
