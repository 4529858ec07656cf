package main

import (
	"errors"
	"fmt"
	"path/filepath"

	"mailtree/clients/plugin"
	"mailtree/cmd/mailtree/installed"
)

// writePlugins writes the plugins of all clients to a folder. In a dry run, it only prints the changes.
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
	if !o.dryRun {
		dir, err := filepath.Abs(o.plugin)
		if err != nil {
			return err
		}
		p.noteInstalled(installed.Entry{Kind: installed.Plugins, Dir: dir})
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
