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
	place, err := p.placeOf(filepath.Clean(dir))
	if err != nil { // the next call checks again
		return false
	}
	if inside(place.Path, top) || inside(place.Bare, top) {
		return true
	}
	real, err := filepath.EvalSymlinks(top)
	return err == nil && inside(place.Path, real)
}

// placeOf maps a path to the same path in the folder that the project is named by.
func (p *Project) placeOf(path string) (repo.Place, error) {
	places, err := p.mail.Store.Places()
	if err != nil {
		return repo.Place{}, err
	}
	return places.PlaceOf(path)
}

func inside(path, dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") }
