package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"mailtree/cli"
	"mailtree/maildir"
	"mailtree/mcp/mail"
)

func claimCommand(p *program) *cobra.Command {
	var ttl time.Duration
	var shared bool
	var reason string
	c := &cobra.Command{
		Use:   "claim PATH...",
		Short: "Claim files before you edit them",
		Long: "Claim files, or patterns such as 'src/**', before you edit them: others are told, and their commits are refused. All of\n" +
			"them are claimed or none: the status is 1 where another agent has one.",
		Args: cobra.MinimumNArgs(1),
	}
	f := p.addDeskFlags(c)
	c.Flags().DurationVar(&ttl, "for", time.Hour, "how long")
	c.Flags().BoolVar(&shared, "shared", false, "others may claim them too, if they share as well")
	c.Flags().StringVarP(&reason, "reason", "r", "", "why: what you work on")
	c.RunE = func(c *cobra.Command, paths []string) error {
		if ttl < maildir.MinTTL || ttl > maildir.MaxTTL {
			return usageError(c, fmt.Errorf("--for is %s: give 1m to 720h", ttl))
		}
		return p.atDesk(c.Context(), f, mine, nil, func(ctx context.Context, d *deskWork) error {
			args := map[string]any{
				"project_key": d.Slug,
				"agent_name":  d.Person,
				"paths":       inProject(d, paths),
				"exclusive":   !shared,
				"ttl_seconds": int(ttl.Seconds()),
				"reason":      reason,
			}
			conflict := false
			err := call(ctx, d, "claim_paths", args, func(a *mail.Claimed) error {
				conflict = len(a.Conflicts) > 0
				showClaimed(d, a)
				return nil
			})
			if err == nil && conflict {
				err = &exitError{code: exitFailed}
			}
			return err
		})
	}
	return c
}

func showClaimed(d *deskWork, a *mail.Claimed) {
	for _, c := range a.Granted {
		d.Printf("claimed %s for %s\n", cli.Line(c.Path), d.In(c.Expires))
	}
	if len(a.Granted) > 0 {
		d.Printf("%s\n", d.Faint("undo: mailtree undo"))
	}
	for _, c := range a.Conflicts {
		d.Printf("not claimed: %s is held by %s as %s for %s %s\n", cli.Line(c.Path), cli.Line(c.Holder), cli.Line(c.HeldPath),
			d.In(c.Expires), d.Faint(cli.Line(c.Reason)))
	}
	if a.Note != "" {
		d.Printf("%s\n", d.Faint(cli.Line(a.Note)))
	}
}

func releaseCommand(p *program) *cobra.Command {
	var all bool
	c := &cobra.Command{
		Use:   "release PATH...",
		Short: "Give back files that you have claimed",
		Args:  cobra.ArbitraryArgs,

		ValidArgsFunction: p.completeClaims,
	}
	f := p.addDeskFlags(c)
	c.Flags().BoolVar(&all, "all", false, "all of them")
	c.RunE = func(c *cobra.Command, paths []string) error {
		if all == (len(paths) > 0) {
			return usageError(c, errors.New("name what you give back, or give --all"))
		}
		return p.atDesk(c.Context(), f, mine, nil, func(ctx context.Context, d *deskWork) error {
			args := map[string]any{"project_key": d.Slug, "agent_name": d.Person}
			if !all {
				args["paths"] = inProject(d, paths)
			}
			var notHeld []string
			err := call(ctx, d, "release_claims", args, func(a *mail.Released) error {
				for _, c := range a.Released {
					d.Printf("released %s\n", cli.Line(c.Path))
				}
				if len(a.Released) > 0 {
					d.Printf("%s\n", d.Faint("undo: mailtree undo"))
				}
				notHeld = a.NotHeld
				return nil
			})
			if err == nil && len(notHeld) > 0 {
				err = &exitError{exitNothing, fmt.Errorf("you have no claim on %s", listNames(notHeld))}
			}
			return err
		})
	}
	return c
}

// inProject converts paths that are relative to this folder into the project's names for them. It leaves
// paths outside the project unchanged.
func inProject(d *deskWork, paths []string) []string {
	here, err := os.Getwd()
	if err != nil {
		return paths
	}
	below, ok := strings.CutPrefix(here+"/", d.HumanKey+"/")
	if !ok {
		return paths
	}
	all := make([]string, len(paths))
	for i, path := range paths {
		all[i] = path
		if !filepath.IsAbs(path) {
			all[i] = filepath.Join(below, path)
		}
	}
	return all
}
