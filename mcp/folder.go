package mcp

import (
	"context"

	"mailtree/maildir"
)

// FolderAsk is the body of POST /mailtree/folder. It links a folder to a project, or removes the folder's entries
// from the map of folders.
type FolderAsk struct {
	Folder  string `json:"folder"`            // absolute path
	Project string `json:"project,omitempty"` // slug, path or name; "" means the project of the folder's repository
	Unlink  bool   `json:"unlink,omitempty"`
}

// LinkedFolder is the response to POST /mailtree/folder.
type LinkedFolder struct {
	Folder   string `json:"folder"`         // the top of the folder's working tree
	Slug     string `json:"slug,omitempty"` // the project; "" after unlinking
	HumanKey string `json:"human_key,omitempty"`
	Moved    string `json:"moved,omitempty"`  // the project's former folder, which this folder replaces
	Hidden   string `json:"hidden,omitempty"` // the folder's own project, which the link now hides
}

func (s *Server) linkFolder(ctx context.Context, _ *maildir.Project, ask *FolderAsk) (LinkedFolder, error) {
	if ask.Unlink {
		folder, err := s.cfg.Store.Codebases().Unlink(ask.Folder)
		return LinkedFolder{Folder: folder}, err
	}
	l, err := s.cfg.Store.Codebases().Link(ctx, ask.Folder, ask.Project)
	if err != nil {
		return LinkedFolder{}, err
	}
	return LinkedFolder{
		Folder:   l.Folder,
		Slug:     l.Slug,
		HumanKey: l.HumanKey,
		Moved:    l.Moved,
		Hidden:   l.Hidden,
	}, nil
}
