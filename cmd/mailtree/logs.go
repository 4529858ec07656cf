package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"strconv"

	"github.com/spf13/cobra"

	"mailtree/maildir/storedir"
)

func logsCommand(p *program) *cobra.Command {
	var lines uint
	var follow bool
	c := &cobra.Command{
		Use:   "logs",
		Short: "Show the log of a background server",
		Long: "Show the newest log lines of a background server, with `tail`. A server that runs in a terminal logs to the terminal,\n" +
			"and a service logs to the log of its service manager.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			file := storedir.LogPath(p.cfg.Store)
			if err := storedir.CheckLog(p.cfg.Store); errors.Is(err, fs.ErrNotExist) {
				return &exitError{exitNothing, fmt.Errorf("no background server has run yet: %s does not exist", file)}
			} else if err != nil {
				return err
			}
			args := []string{"-n", strconv.FormatUint(uint64(lines), 10), file}
			if follow {
				args = append([]string{"-F"}, args...)
			}
			tail := exec.CommandContext(c.Context(), "tail", args...)
			tail.Stdout, tail.Stderr = p.std.out, p.std.err
			if err := tail.Run(); err != nil && c.Context().Err() == nil {
				return fmt.Errorf("tail %s: %w", file, err)
			}
			return nil
		},
	}
	c.Flags().UintVarP(&lines, "lines", "n", 50, "number of lines")
	c.Flags().BoolVarP(&follow, "follow", "f", false, "keep printing new lines")
	return c
}
