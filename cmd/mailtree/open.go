package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"

	"github.com/spf13/cobra"

	"mailtree/cmd/mailtree/cli"
	mcpserver "mailtree/mcp"
	"mailtree/page"
)

func openCommand(p *program) *cobra.Command {
	var project string
	var only, asJSON bool
	c := &cobra.Command{
		Use:   "open",
		Short: "Open the web page in your browser",
		Long: "Open the web page in your browser, signed in as you. The page shows what needs your attention in the project, and you\n" +
			"can write mail there. If no server is running, the command starts one in the background. The link works once, within ten\n" +
			"minutes.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			link, err := p.pageLink(c.Context(), project)
			if err != nil {
				return err
			}
			switch {
			case asJSON:
				return p.printJSON(link)
			case !only && browse(c.Context(), link.URL) == nil:
				return nil
			}
			fmt.Fprintln(p.std.out, link.URL)
			if cli.IsTerminal(p.std.out) {
				fmt.Fprintln(p.std.out, "The link works once, within ten minutes.")
			}
			return nil
		},
	}
	p.addProjectFlag(c, &project)
	c.Flags().BoolVar(&only, "print", false, "print the link instead of opening it")
	c.Flags().BoolVar(&asJSON, "json", false, "print the link as JSON instead of opening it")
	return c
}

// pageLink returns a link to a project's page. If project is empty and this folder is not in a project, it returns a
// link to the home page.
func (p *program) pageLink(ctx context.Context, project string) (made mcpserver.PageLink, err error) {
	var ask mcpserver.LinkAsk
	if ask.Person, err = p.me(); err != nil {
		return made, err
	}
	key, err := p.projectKey(project)
	if err != nil {
		return made, err
	}
	err = p.withServer(ctx, func(ctx context.Context, c *cli.Client) error {
		err := c.Ask(ctx, cli.Of(key, "link"), ask, &made)
		if refused := (&cli.Refusal{}); project == "" && errors.As(err, &refused) && refused.NotFound() {
			return c.Ask(ctx, "link", ask, &made)
		}
		return err
	})
	return made, err
}

// browse opens a URL in the user's web browser.
func browse(ctx context.Context, url string) error {
	opener := "xdg-open"
	if runtime.GOOS == "darwin" {
		opener = "open"
	}
	return exec.CommandContext(ctx, opener, url).Run()
}

// newPage creates the page. If a reader is not signed in, the page shows the mail of the user who started the server.
func newPage(p *program, a *app, w *waker) *page.Page {
	me, err := p.me()
	if err != nil {
		me = ""
	}
	return page.New(page.Config{
		Store:   a.store,
		Person:  me,
		Closed:  p.cfg.RequireToken,
		Explain: pageWords.Explain,
		Nudge:   w.nudgeOne,
		Looked:  a.looks.Shown,
		Log:     a.log,
	})
}
