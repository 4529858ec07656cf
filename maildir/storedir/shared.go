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

// sharedFile, in the folder of a project and not in its tree, which other machines write, says how the
// project is shared with them.
const sharedFile = "shared.json"

// Shared says how a project is shared with other machines. The zero value is a project that is not.
type Shared struct {
	On  bool   `json:"on"`
	Key string `json:"human_key,omitempty"` // the path of the code base on this machine; "": the one in project.json
}

// LoadShared reads how a project of the store at root is shared. It returns the zero value if the project
// never was, and the errors of reading the file.
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
	}
	return s, err
}

// SaveShared writes durably, into the folder of a project, how the project is shared.
func SaveShared(dir string, s Shared) error {
	data, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return tree.WriteFile(filepath.Join(dir, sharedFile), append(data, '\n'))
}
