package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"mailtree/cmd/mailtree/cli"
	"mailtree/maildir"
	"mailtree/maildir/format"
	"mailtree/maildir/storedir"
	"mailtree/maildir/tree"
)

// removedProject is a project that was removed or is about to be removed.
type removedProject struct {
	Slug     string `json:"removed"`
	HumanKey string `json:"human_key,omitempty"`
	Messages int    `json:"messages"`
	Agents   int    `json:"agents"`
}

// removeProject removes a project with its history. Unless yes is set, it asks the user to confirm, and returns an
// error if there is no terminal. Before removeProject deletes the project's files, it moves the project's folder out of
// the folder that contains the store's projects. A running server then closes the project (maildir/removed.go), and the
// next server no longer finds the project.
func (p *program) removeProject(ctx context.Context, key string, yes, asJSON bool) error {
	t, slug, err := storedir.OpenProject(p.cfg.Store, key, p.cfg.Scope)
	if errors.Is(err, maildir.ErrNotFound) || errors.Is(err, maildir.ErrInvalid) {
		return p.noProject(key)
	}
	if err != nil {
		return err
	}
	gone, err := countProject(ctx, t, slug)
	t.Close()
	if err != nil {
		return err
	}
	what := fmt.Sprintf("project %s (%s) with %s, %s and its whole history", slug, gone.HumanKey,
		count(gone.Messages, "message"), count(gone.Agents, "agent"))
	if !yes {
		if !cli.IsTerminal(p.std.in) {
			return fmt.Errorf("--remove %s would remove %s. This cannot be undone: add --yes to confirm", key, what)
		}
		if a, _ := p.ask(p.std.in, "Remove "+what+"? This cannot be undone. [y/N] "); a != "y" && a != "yes" {
			return fmt.Errorf("nothing was removed")
		}
	}
	aside, err := os.MkdirTemp(p.cfg.Store, ".removed-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(aside)
	if err := os.Rename(filepath.Dir(storedir.Repo(p.cfg.Store, slug)), filepath.Join(aside, slug)); err != nil {
		return err
	}
	for range 20 { // a commit in progress may still add files to the folder
		if err = os.RemoveAll(aside); err == nil {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	if err != nil {
		return fmt.Errorf("the project has been removed, but some of its files remain (%w): delete %s", err, aside)
	}
	if asJSON {
		return p.printJSON(gone)
	}
	_, err = fmt.Fprintf(p.std.out, "removed %s\n", what)
	return err
}

// noProject returns the error for an unknown project key.
func (p *program) noProject(key string) error {
	var all []string
	names, err := storedir.ProjectNames(p.cfg.Store)
	for _, n := range names {
		all = append(all, n.Slug, n.HumanKey)
	}
	unknown := fmt.Errorf("--remove %s: unknown project%s; `mailtree projects` lists all projects", key, meant(format.Near(key, all)))
	return errors.Join(err, &exitError{exitNothing, unknown})
}

// countProject counts what the removal of a project will delete.
func countProject(ctx context.Context, t *tree.Tree, slug string) (gone removedProject, err error) {
	gone = removedProject{Slug: slug, HumanKey: storedir.HumanKeyOf(t)}
	if _, err := t.Stat(format.MessagesDir); err == nil {
		err := t.Walk(ctx, format.MessagesDir, func(path string, _ fs.DirEntry) error {
			if format.Locate(path).Kind == format.KindCanonical {
				gone.Messages++
			}
			return nil
		})
		if err != nil {
			return gone, err
		}
	}
	agents, err := t.List(format.AgentsDir)
	if err != nil && !os.IsNotExist(err) {
		return gone, err
	}
	gone.Agents = len(agents)
	return gone, nil
}
