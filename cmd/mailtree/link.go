package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"mailtree/cmd/mailtree/cli"
	"mailtree/guard"
	"mailtree/maildir"
	"mailtree/maildir/folders"
	"mailtree/maildir/repo"
	"mailtree/maildir/storedir"
	mcpserver "mailtree/mcp"
)

func linkCommand(p *program) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "link [PROJECT]",
		Short: "Link this folder to an existing project",
		Long: "Link this folder to PROJECT, which is a project's name, path or slug. In a Git working tree, the link applies to the\n" +
			"whole tree. Without PROJECT, the command uses the project whose repository has the same first commit. If the\n" +
			"project's own folder is gone, this folder replaces it. `mailtree unlink` removes the link.",
		Args: cobra.MaximumNArgs(1),
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print the result as JSON")
	c.RunE = func(c *cobra.Command, args []string) error {
		ask := mcpserver.FolderAsk{}
		if len(args) > 0 {
			var err error
			if ask.Project, err = p.projectKey(args[0]); err != nil {
				return err
			}
		}
		return p.atFolder(c.Context(), ask, asJSON, func(l mcpserver.LinkedFolder) {
			fmt.Fprintf(p.std.out, "%s now belongs to project %s (%s)\n", cli.Line(l.Folder), l.Slug, cli.Line(l.HumanKey))
			if l.Moved != "" {
				fmt.Fprintf(p.std.out, "the folder replaces %s, which no longer exists\n", cli.Line(l.Moved))
			}
			if l.Hidden != "" {
				fmt.Fprintf(p.std.out, "the folder's own project, %s, keeps its mail. To read it, use --project; to remove the link, "+
					"run `mailtree unlink`\n", cli.Line(l.Hidden))
			}
			p.remarkGuard(c.Context(), l.Folder, l.Slug)
		})
	}
	return c
}

func unlinkCommand(p *program) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "unlink [FOLDER]",
		Short: "Remove the link from a folder to a project",
		Long: "Remove the link from FOLDER (default: this folder) to its project. If mailtree has recorded FOLDER as another clone\n" +
			"or worktree of a project's code base, remove that record too. The project keeps its mail.",
		Args: cobra.MaximumNArgs(1),
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print the result as JSON")
	c.RunE = func(c *cobra.Command, args []string) error {
		ask := mcpserver.FolderAsk{Unlink: true}
		if len(args) > 0 {
			ask.Folder = args[0]
		}
		return p.atFolder(c.Context(), ask, asJSON, func(l mcpserver.LinkedFolder) {
			fmt.Fprintf(p.std.out, "%s is no longer linked\n", cli.Line(l.Folder))
			if m, err := storedir.NewResolver(p.cfg.Store, p.cfg.Scope).ResolveKey(l.Folder); err == nil {
				p.remarkGuard(c.Context(), l.Folder, m.Slug)
			}
		})
	}
	return c
}

// remarkGuard prints advice if the guard that is installed in a folder enforces the claims of a project other than the
// folder's current project.
func (p *program) remarkGuard(ctx context.Context, folder, slug string) {
	if of := guard.Enforced(ctx, folder, p.cfg.Store, p.env); of != "" && of != slug {
		p.remark("the guard installed in %s still enforces the claims of project %s: run `mailtree guard install` there", folder, of)
	}
}

// atFolder sends the request for the folder in ask or, if that is empty, for this folder. It prints the response with
// show.
func (p *program) atFolder(ctx context.Context, ask mcpserver.FolderAsk, asJSON bool, show func(mcpserver.LinkedFolder)) (err error) {
	if ask.Folder == "" {
		ask.Folder = "."
	}
	if ask.Folder, err = absolute(ask.Folder, os.UserHomeDir); err != nil {
		return err
	}
	return p.withServer(ctx, func(ctx context.Context, c *cli.Client) error {
		var l mcpserver.LinkedFolder
		if err := c.Ask(ctx, "folder", ask, &l); err != nil {
			return err
		}
		if asJSON {
			return p.printJSON(l)
		}
		show(l)
		return nil
	})
}

// explainFolder prints which project a folder belongs to, and which rule determined the project. It only reads files,
// and needs no server.
func (p *program) explainFolder(folder string, asJSON bool) error {
	dir, err := absolute(cmp.Or(folder, "."), os.UserHomeDir)
	if err != nil {
		return err
	}
	m, err := storedir.NewResolver(p.cfg.Store, p.cfg.Scope).ResolveKey(dir)
	if err != nil {
		return err
	}
	if asJSON {
		return p.printJSON(struct {
			Folder   string `json:"folder"`
			Slug     string `json:"slug"`
			HumanKey string `json:"human_key"`
			Rule     string `json:"rule"`
			Exists   bool   `json:"exists"`
		}{dir, m.Slug, m.HumanKey, ruleNames[m.Rule], m.Rule != storedir.New})
	}
	screen := cli.NewScreen(p.std.out, p.variable)
	for _, rule := range []storedir.Rule{storedir.Linked, storedir.Existing, storedir.Main, storedir.Bare, storedir.Noted, storedir.New} {
		if rule < m.Rule {
			screen.Tell("%d. %s: no\n", rule, questions[rule])
			continue
		}
		screen.Tell("%d. %s: yes%s\n", rule, questions[rule], p.because(m))
		break
	}
	if m.Rule == storedir.New {
		screen.Tell("%s has no project yet. A new project would be called %s (%s)\n", cli.Line(dir), m.Slug, cli.Line(m.HumanKey))
		return nil
	}
	screen.Tell("%s belongs to project %s (%s)\n", cli.Line(dir), m.Slug, cli.Line(m.HumanKey))
	return nil
}

var ruleNames = map[storedir.Rule]string{
	storedir.Linked: "link", storedir.Existing: "existing", storedir.Main: "main work tree", storedir.Bare: "bare layout",
	storedir.Noted: "noted", storedir.New: "new",
}

// questions describes the condition of each rule. The rules are tried in the order of their numbers.
var questions = map[storedir.Rule]string{
	storedir.Linked:   "you linked the folder with `mailtree link`",
	storedir.Existing: "the folder, or one above it in its working tree, has a project",
	storedir.Main:     "it is a linked worktree, and the main working tree has a project",
	storedir.Bare:     "it is a worktree of a bare repository, and the folder that contains the worktrees has a project",
	storedir.Noted:    "mailtree has recorded it as another clone, or as a removed worktree, of a project's code base",
	storedir.New:      "it gets a new project",
}

// because returns text that explains why the rule in m applies, or "" if the rule needs no explanation.
func (p *program) because(m storedir.Meaning) string {
	switch m.Rule {
	case storedir.Linked, storedir.Noted:
		return fmt.Sprintf(" (%s %s, %s)", m.Line.Kind, cli.Line(m.Line.Folder), m.Line.Day.Format(time.DateOnly))
	case storedir.Main, storedir.Bare:
		return fmt.Sprintf(" (%s)", cli.Line(m.Place.Top))
	case storedir.New:
		if m.Place.Top != "" && !p.cfg.Scope.PerPath {
			return ", unless the folder turns out to be another clone of a project's code base"
		}
	}
	return ""
}

// movedHere returns the paths of projects whose folder no longer exists. It includes only projects whose repository had
// the same first commit as the repository in dir. It runs Git only if the folder of at least one project no longer
// exists, and prints a remark if Git fails.
func (p *program) movedHere(ctx context.Context, dir string) (names []string) {
	known, err := folders.Open(p.cfg.Store).Load()
	if err != nil {
		return nil
	}
	projects, err := storedir.ProjectNames(p.cfg.Store)
	if err != nil {
		return nil
	}
	top, err := repo.WorkTree(dir)
	if err != nil {
		return nil
	}
	here, err := storedir.NewResolver(p.cfg.Store, p.cfg.Scope).ResolveKey(top)
	if err != nil {
		return nil
	}
	var first []string
	for _, n := range projects {
		if n.Slug == here.Slug {
			continue
		}
		r, ok := known.RepositoryAround(n.HumanKey)
		if !ok || !isGone(n.HumanKey) {
			continue
		}
		if first == nil {
			limited, cancel := context.WithTimeout(ctx, folders.Patience)
			defer cancel()
			first, err = repo.FirstCommits(limited, top)
			if err != nil && !errors.Is(err, repo.ErrNoFirst) {
				p.remark("Git did not list the first commits of %s, so mailtree cannot tell whether %s was moved here. Try again", top, n.HumanKey)
			}
			if err != nil {
				return nil
			}
		}
		if slices.ContainsFunc(first, func(c string) bool { return slices.Contains(r.First, c) }) {
			names = append(names, n.HumanKey)
		}
	}
	return names
}

func isGone(dir string) bool {
	_, err := os.Stat(dir)
	return errors.Is(err, os.ErrNotExist)
}

// findClone looks for a project whose code base is another clone of the folder's repository. If the folder already has
// a project, it does nothing. The server does the search, and records the folder in the map of folders. findClone
// returns errors from the server, for example if Git failed there, and nil if there is no such project.
func (p *program) findClone(ctx context.Context, folder string) error {
	t, _, err := storedir.OpenProject(p.cfg.Store, folder, p.cfg.Scope)
	if err == nil {
		t.Close()
		return nil
	}
	names, nerr := storedir.ProjectNames(p.cfg.Store)
	if !errors.Is(err, maildir.ErrNotFound) || nerr != nil || len(names) == 0 {
		return nil // the caller reports the error
	}
	_, err = p.ensureProject(ctx, mcpserver.NewProject{Key: folder, Find: true})
	refused := &cli.Refusal{}
	if errors.As(err, &refused) && refused.NotFound() {
		return nil
	}
	return err
}
