package main

import (
	"errors"
	"fmt"
	"path/filepath"

	"mailtree/clients/plugin"
	"mailtree/cmd/mailtree/installed"
)

// writePlugins writes the plugins of all clients into a folder, or prints the changes.
func (p *program) writePlugins(o setupOptions) error {
	changes, err := plugin.Changes(o.plugin)
	if errors.Is(err, plugin.ErrOther) {
		return fmt.Errorf("%w. Nothing was changed: choose an empty folder", err)
	}
	if err != nil {
		return err
	}
	if len(changes) == 0 {
		fmt.Fprintf(p.std.out, "%s: nothing to change\n", o.plugin)
	}
	if !o.dryRun && len(changes) > 0 {
		if err := p.notePlugins(o.plugin, changes); err != nil {
			return err
		}
	}
	for _, c := range changes {
		if o.dryRun {
			p.std.out.Write(c.Diff())
			continue
		}
		if err := c.Apply(); err != nil {
			return err
		}
		p.lines([]string{"wrote " + c.Name})
	}
	return nil
}

// notePlugins records in the store which files are about to be written into the folder.
func (p *program) notePlugins(folder string, changes []plugin.Change) error {
	dir, err := filepath.Abs(folder)
	if err != nil {
		return err
	}
	e := installed.Entry{Kind: installed.Files, Dir: dir}
	for _, c := range changes {
		rel, err := filepath.Rel(folder, c.Name)
		if err != nil {
			return err
		}
		e.Files = append(e.Files, rel)
	}
	p.noteInstalled(e)
	return nil
}
