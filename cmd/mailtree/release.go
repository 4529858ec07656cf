package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"mailtree/guard"
	mcpserver "mailtree/mcp"
	"mailtree/mcp/mail"
)

// releaseOptions are the flags of `mailtree release`.
type releaseOptions struct {
	all    bool
	of     string
	reason string
}

func releaseCommand(p *program) *cobra.Command {
	var o releaseOptions
	c := &cobra.Command{
		Use:   "release PATH...",
		Short: "Release your claims on files",
		Long: "Release your claims on files. With --of, release one of another agent's claims. The agent gets a message\n" +
			"with your reason. `mailtree undo` reverses the release and withdraws the message. Only users can use --of; agents must\n" +
			"ask the holder.",
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: p.completeClaims,
		PreRunE:           func(c *cobra.Command, paths []string) error { return o.check(c, paths) },
	}
	f := p.addDeskFlags(c)
	c.Flags().BoolVar(&o.all, "all", false, "release all of your claims")
	c.Flags().StringVar(&o.of, "of", "", "release this agent's claim instead of yours")
	c.Flags().StringVarP(&o.reason, "reason", "r", "", "with --of: a reason to include in the message to the agent")
	_ = c.RegisterFlagCompletionFunc("of", p.completeAgent)
	c.RunE = func(c *cobra.Command, paths []string) error {
		if o.of != "" {
			if err := p.needPerson("release another agent's claims"); err != nil {
				return err
			}
		}
		return p.atDesk(c.Context(), f, mine, nil, func(ctx context.Context, d *deskWork) error {
			if o.of != "" {
				return freeClaim(ctx, d, &o, inProject(d, paths)[0])
			}
			return call(ctx, d, "release_claims", params{"project_key": d.Slug, "agent_name": d.Person, "paths": inProject(d, paths)},
				func(a *mail.Released) error {
					if o.all && len(a.Released) == 0 {
						return &exitError{exitNothing, errors.New("you have no claims to release")}
					}
					return showReleased(ctx, d, a)
				})
		})
	}
	return c
}

func (o *releaseOptions) check(c *cobra.Command, paths []string) error {
	switch {
	case o.of != "" && (o.all || len(paths) != 1):
		return usageError(c, errors.New("--of releases one claim: specify exactly one path"))
	case o.of == "" && o.reason != "":
		return usageError(c, errors.New("--reason requires --of: releasing your own claims does not send a message"))
	case o.of == "" && o.all == (len(paths) > 0):
		return usageError(c, errors.New("specify the paths to release, or use --all"))
	}
	return nil
}

// freeClaim releases another agent's claim.
func freeClaim(ctx context.Context, d *deskWork, o *releaseOptions, path string) error {
	ask := mcpserver.FreeAsk{Person: d.Person, Holder: o.of, Path: path, Reason: o.reason}
	return askVerb(ctx, d, "free", ask, func(a *mcpserver.Freed) error {
		d.Printf("released %s and notified %s (%s)\n", a.Path, a.Holder, d.ShortID(a.ID))
		d.Printf("%s\n", d.Faint("undo: "+d.undoing()))
		return nil
	})
}

// showReleased prints the released claims. If the user has no claim on a path, showReleased returns an error. The error
// also names another agent that has a claim on the path, if there is one.
func showReleased(ctx context.Context, d *deskWork, a *mail.Released) error {
	if err := showByTemplate(ctx, d, "release", a); err != nil || len(a.NotHeld) == 0 {
		return err
	}
	var held mail.ClaimsResource
	if err := d.Read(ctx, "resource://claims/"+d.Slug, &held); err != nil {
		return err
	}
	why := fmt.Sprintf("you have no claim on %s", strings.Trim(fmt.Sprintf("%q", a.NotHeld), "[]"))
	for _, c := range held.Claims {
		if c.Agent != d.Person && c.Path == a.NotHeld[0] {
			why += fmt.Sprintf("; %s has one", c.Agent)
			if d.IsPerson {
				why += ". To release it: " + freeLine(d, d.Person, c.Agent, c.Path)
			}
			break
		}
	}
	return &exitError{exitNothing, errors.New(why)}
}

// freeLine returns the command with which the agent named me can release a claim of the agent named holder. path is
// relative to the project.
func freeLine(d *deskWork, me, holder, path string) string {
	if same := inProject(d, []string{path}); same[0] != path && d.Slug != "" { // this folder is below the project's folder
		path = d.HumanKey + "/" + path
	}
	of := ""
	if holder != me {
		of = "--of " + holder + " "
	}
	return "mailtree release " + of + guard.ShellWord(path)
}
