package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"mailtree/cmd/mailtree/cli"
	"mailtree/guard"
	"mailtree/maildir/repo"
	mcpserver "mailtree/mcp"
)

func newCommand(p *program) *cobra.Command {
	c := &cobra.Command{
		Use:   "new",
		Short: "Create a project, an agent or a draft",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newAgentCommand(p), newDraftCommand(p), newProjectCommand(p))
	return c
}

func newProjectCommand(p *program) *cobra.Command {
	var asJSON, separate bool
	c := &cobra.Command{
		Use:   "project [PATH]",
		Short: "Create a mail project for a code base",
		Long: "Create a mail project for a code base that has none. The code base is the Git working tree that contains PATH\n" +
			"(default: this folder). From then on, agents there are notified of mail and can write to you, and you become an\n" +
			"agent of the project. The command prints the project's name. It does not accept / or your home folder.\n" +
			"If another clone with the same first commit and the same remote already has a project, this clone joins that\n" +
			"project, unless one of them is shallow. A worktree of a bare repository does the same. With --separate, the clone or\n" +
			"worktree gets a project of its own.",
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			path := strings.Join(args, "")
			at := cmp.Or(path, ".")
			if fi, err := os.Stat(at); err == nil && !fi.IsDir() {
				return &exitError{exitFailed, fmt.Errorf("%q is a file: specify the folder of a code base", at)}
			} else if err != nil {
				return &exitError{exitNothing, fmt.Errorf("the folder %q does not exist: create it first", at)}
			}
			if err := p.refuseWide(at); err != nil {
				return err
			}
			made, err := p.ensureProject(c.Context(), mcpserver.NewProject{Key: path, Separate: separate})
			if err != nil {
				return err
			}
			if err := p.join(c.Context(), made.Slug); err != nil {
				return err
			}
			if asJSON {
				return p.printJSON(made)
			}
			p.tellProject(made)
			p.remarkGuard(c.Context(), path, made.Slug)
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print the result as JSON")
	c.Flags().BoolVar(&separate, "separate", false, "do not join the project of another clone")
	return c
}

// refuseWide returns an error if a project in the folder would cover the whole machine or all of the user's home
// folder.
func (p *program) refuseWide(dir string) error {
	dir, err := absolute(dir, os.UserHomeDir)
	if err != nil {
		return err
	}
	if dir, err = repo.WithoutLinks(dir); err != nil {
		return err
	}
	wide, err := p.cfg.Scope.IsTooWide(dir)
	if err == nil && wide {
		err = fmt.Errorf("%q is not a code base: a project there would cover every folder below it. In a code base, run "+
			"`mailtree new project`", dir)
	}
	return err
}

func newAgentCommand(p *program) *cobra.Command {
	var ask mcpserver.NewAgent
	c := &cobra.Command{
		Use:   "agent NAME",
		Short: "Create an agent with a mailbox in the project",
		Long: "Create an agent called NAME in the project, so that others can write to it before its first call. To make a client\n" +
			"act as that agent, set AGENT_NAME=NAME in the client's environment. You rarely need this command: a user's first\n" +
			"command and a session with client hooks create their own agents. `mailtree mailbox delete NAME` removes an agent; if\n" +
			"it has mail, add --force.",
		Args: cobra.ExactArgs(1),
	}
	f := p.addDeskFlags(c)
	c.Flags().StringVar(&ask.Program, "program", "", "the program that the agent runs in")
	c.Flags().StringVar(&ask.Model, "model", "", "the agent's model")
	c.Flags().StringVar(&ask.Task, "task", "", "the agent's task")
	c.RunE = func(c *cobra.Command, names []string) error {
		return p.atDesk(c.Context(), f, nobodys, nil, func(ctx context.Context, d *deskWork) error {
			ask.Name = names[0]
			return askVerb(ctx, d, "agent", ask, func(a *mcpserver.MadeAgent) error {
				d.Tell("created agent %s in project %s\n", cli.Line(a.Name), a.Project)
				return nil
			})
		})
	}
	return c
}

func newDraftCommand(p *program) *cobra.Command {
	c := &cobra.Command{
		Use:   "draft [AGENT...]",
		Short: "Create a draft and print its path",
		Long: "Create a draft of a message to agents in your drafts folder, and print its path. You can edit the text below the header\n" +
			"in any editor, as often as you like. To send the message, move the file to your outbox, next to the drafts folder.",
		ValidArgsFunction: p.completeAgents,
	}
	f := p.addDeskFlags(c)
	c.RunE = func(c *cobra.Command, to []string) error {
		return p.atDesk(c.Context(), f, mine, nil, func(ctx context.Context, d *deskWork) error {
			ask := mcpserver.NewDraft{Agent: d.Person, To: to}
			return askVerb(ctx, d, "draft", ask, func(a *mcpserver.MadeDraft) error {
				d.Printf("%s\n", a.File)
				if d.Width > 0 {
					// Print the command on one line, regardless of its length, so that the user can copy it.
					d.Printf("%s\n", d.Faint("to send it: mv "+guard.ShellWord(a.File)+" "+guard.ShellWord(a.Outbox)+"/"))
				}
				return nil
			})
		})
	}
	return c
}

// join makes the user an agent of a project, so that other agents can write to the user. If the user was not an agent
// of the project before, atDesk prints a remark that says so.
func (p *program) join(ctx context.Context, project string) error {
	return p.atDesk(ctx, &deskFlags{project: project}, mine, nil, func(context.Context, *deskWork) error { return nil })
}

// tellProject prints a project's slug and path, and whether the project is new.
func (p *program) tellProject(made mcpserver.MadeProject) {
	how := "project %s already exists: %s\n"
	if made.Created {
		how = "created project %s: %s\n"
	}
	fmt.Fprintf(p.std.out, how, made.Slug, made.HumanKey)
	if made.Note != "" {
		fmt.Fprintln(p.std.out, made.Note)
	}
	if made.Fork != "" {
		fmt.Fprintf(p.std.out, "%s has the same first commit but a different remote. To use its project here too: mailtree link %s\n",
			cli.Line(made.Fork), guard.ShellWord(made.Fork))
	}
	if made.Moved != "" {
		fmt.Fprintln(p.std.out, movedLine(made.Moved))
	}
}

// movedLine returns a line that says that a code base seems to have been moved here. The line includes the command that
// links the code base.
func movedLine(from string) string {
	return fmt.Sprintf("%s was at %s, which no longer exists. If you moved it here, run `mailtree link %s`",
		cli.Line(filepath.Base(from)), cli.Line(from), guard.ShellWord(from))
}

// projectHere creates the project for this folder after a client has been set up in the folder.
func (p *program) projectHere(ctx context.Context) error {
	made, err := p.ensureProject(ctx, mcpserver.NewProject{})
	if err != nil {
		return fmt.Errorf("the client is set up, but `mailtree new project` failed: %w", err)
	}
	p.tellProject(made)
	return p.join(ctx, made.Slug)
}

// ensureProject creates the project for a path if the project does not exist yet. An empty path means this folder.
func (p *program) ensureProject(ctx context.Context, ask mcpserver.NewProject) (made mcpserver.MadeProject, err error) {
	if ask.Key, err = absolute(cmp.Or(ask.Key, "."), os.UserHomeDir); err != nil {
		return made, err
	}
	err = p.asCommand(ctx, p.dial, func(ctx context.Context, c *cli.Client) error {
		return c.Ask(ctx, "project", ask, &made)
	})
	return made, err
}
