package maildir

import (
	"path/filepath"
	"strings"

	"mailtree/maildir/repo"
)

// Covers reports whether dir, an absolute path, is in the project's code base or in another worktree of the same
// repository.
func (p *Project) Covers(dir string) bool {
	top := p.mail.HumanKey()
	if top == "" {
		return false
	}
	place, err := repo.PlaceOf(filepath.Clean(dir))
	if err != nil { // the next call checks again
		return false
	}
	if inside(place.Path, top) {
		return true
	}
	real, err := filepath.EvalSymlinks(top)
	return err == nil && inside(place.Path, real)
}

func inside(path, dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") }
