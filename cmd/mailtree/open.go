package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"

	"github.com/spf13/cobra"

	mcpserver "mailtree/mcp"
	"mailtree/page"
)

func openCommand(p *program) *cobra.Command {
	var only bool
	c := &cobra.Command{
		Use:   "open",
		Short: "Open the page of the running server in your browser",
		Long: "Open the page of the running server in your browser, as you: it shows what waits for you, and there you can\n" +
			"write. The link that it opens holds once, for ten minutes.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return p.openPage(c.Context(), only) },
	}
	c.Flags().BoolVar(&only, "print", false, "print the link, and open nothing")
	return c
}

// openPage opens the page; only prints its link.
func (p *program) openPage(ctx context.Context, only bool) error {
	me, err := p.me()
	if err != nil {
		return err
	}
	var made mcpserver.PageLink
	err = askServer(ctx, p.cfg, "link", mcpserver.LinkAsk{Person: me}, &made)
	if errors.Is(err, errNoServer) {
		return errors.New("no server runs: start one with `mailtree serve`")
	}
	if err != nil {
		return err
	}
	opener := "xdg-open"
	if runtime.GOOS == "darwin" {
		opener = "open"
	}
	if !only && exec.CommandContext(ctx, opener, made.URL).Run() == nil {
		return nil
	}
	fmt.Fprintln(p.std.out, made.URL)
	return nil
}

// newPage is the page, for the user of the server where it is not known who reads.
func newPage(p *program, a *app, w *waker) *page.Page {
	me, err := p.me()
	if err != nil {
		me = ""
	}
	return page.New(page.Config{
		Store:   a.store,
		Person:  me,
		Closed:  p.cfg.RequireToken,
		Explain: words.Explain,
		Nudge:   w.nudgeOne,
		Log:     a.log,
	})
}
