package storedir

import (
	"encoding/json"
	"errors"
	"io/fs"
	"path"
	"path/filepath"

	"mailtree/maildir/format"
	"mailtree/maildir/tree"
)

// sharedFile is the file that says how a project is shared with other machines. It is in the project's folder rather
// than in its tree, because other machines write to the tree.
const sharedFile = "shared.json"

// Shared describes how a project is shared with other machines. The zero value means that the project is not shared.
type Shared struct {
	On  bool   `json:"on"`
	Key string `json:"human_key,omitempty"` // path of the code base on this machine; empty means the path in project.json
}

// LoadShared reads how a project in the store at root is shared. It returns the zero value if the project was never
// shared, and any error from reading the file.
func LoadShared(root, slug string) (s Shared, err error) {
	projects, err := tree.Open(filepath.Join(root, ProjectsDir), 0)
	if err != nil {
		return s, err
	}
	defer projects.Close()
	return loadShared(projects, slug)
}

func loadShared(projects *tree.Tree, slug string) (s Shared, err error) {
	data, _, err := projects.Read(path.Join(slug, sharedFile), format.MaxSmall)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &s)
		if err != nil {
			err = &tree.FormatError{Reason: err.Error()}
		}
	}
	if err != nil {
		return Shared{}, err
	}
	return s, nil
}

// SaveShared durably writes the sharedFile in the project folder dir.
func SaveShared(dir string, s Shared) error {
	data, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return tree.WriteFile(filepath.Join(dir, sharedFile), append(data, '\n'))
}
