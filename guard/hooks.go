package guard

import "context"

// Installed is one of the guard's hooks in a repository.
type Installed struct {
	File  string // absolute path
	Store string // the store whose claims apply; "" if the hook was changed
}

// Find returns the guard's hooks in the repository. If the repository is missing or invalid, it returns the same
// errors as Install.
func Find(ctx context.Context, at Site) (all []Installed, err error) {
	r, err := openRepository(ctx, at.Repo, at.Env)
	if err != nil {
		return nil, err
	}
	f, err := openHooks(r)
	if err != nil {
		return nil, err
	}
	defer f.close()
	for _, name := range hookNames {
		file, h, changed, err := f.installed(name)
		if err != nil {
			return nil, err
		}
		if h == nil {
			continue
		}
		hook := Installed{File: f.dir + "/" + file}
		if !changed {
			hook.Store = h.Guards[0].Store
		}
		all = append(all, hook)
	}
	return all, nil
}
