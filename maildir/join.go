package maildir

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"mailtree/maildir/format"
	"mailtree/maildir/projectformat"
	"mailtree/maildir/refusal"
	"mailtree/maildir/storedir"
	"mailtree/maildir/tree"
)

// Join creates a project for the code base at path on this machine, from the mail that other machines share at url,
// and turns on the project's sync. If Join fails, no project is created. It returns any error from EnsureProject,
// Config.Clone or projectformat.Refuse, and ErrConflict if the path already has a project with mail.
func (s *Store) Join(ctx context.Context, url, path string) (*Project, error) {
	human, slug, err := s.resolve(path)
	if err != nil {
		return nil, err
	}
	if human == "" {
		return nil, &Error{What: refusal.ProjectKeyRelative, Field: refusal.Project, Name: path}
	}
	if err := s.codebases.Refuse(human); err != nil {
		return nil, err
	}
	if err := s.beginAdding(ctx); err != nil {
		return nil, err
	}
	defer s.endAdding()
	dir := filepath.Dir(storedir.Repo(s.core.Root, slug))
	if _, err := os.Lstat(filepath.Join(dir, storedir.RepoDir)); err == nil {
		return nil, &Error{
			What: refusal.Conflict("{=other} already has mail, in project {name}. To join mail from other " +
				"machines, use a path that has no mail yet."),
			Name:  slug,
			Other: human,
		}
	}
	if err := s.refuseMore(); err != nil {
		return nil, err
	}
	tmp, err := os.MkdirTemp(s.core.Root, ".project-")
	if err != nil {
		return nil, refusal.Disk(err)
	}
	defer os.RemoveAll(tmp)
	repo := filepath.Join(tmp, storedir.RepoDir)
	if err := os.MkdirAll(filepath.Join(repo, filepath.FromSlash(tree.TmpDir)), 0o700); err != nil {
		return nil, refusal.Disk(err)
	}
	if err := s.core.Clone(ctx, repo, url); err != nil {
		return nil, err
	}
	data, err := os.ReadFile(filepath.Join(repo, format.ProjectFile))
	if err == nil {
		n, bad := format.ProjectFormat(data)
		if err := projectformat.Refuse(n, bad, human, s.core.Format); err != nil {
			return nil, err
		}
		_, _, err = format.ParseProject(data)
	}
	if err != nil {
		return nil, fmt.Errorf("the mail in that repository cannot be used: %s: %w", format.ProjectFile, err)
	}
	if err := storedir.SaveShared(tmp, storedir.Shared{On: true, Key: human}); err != nil {
		return nil, refusal.Disk(err)
	}
	if err := os.Rename(tmp, dir); err != nil {
		return nil, refusal.Disk(err)
	}
	if err := tree.SyncDir(filepath.Dir(dir)); err != nil {
		return nil, refusal.Disk(err)
	}
	return s.addNext(context.WithoutCancel(ctx), slug)
}
