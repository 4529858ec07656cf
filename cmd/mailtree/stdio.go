package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"mailtree/maildir/repo"
	bridge "mailtree/mcp/stdio"
	"mailtree/mcp/tool"
)

func stdioCommand(p *program) *cobra.Command {
	var o stdioOptions
	c := &cobra.Command{
		Use:   "stdio",
		Short: "Serve MCP on standard input and output, through the store's server",
		Long: "Serve MCP on standard input and output, as a bridge to the store's server. If no server is running, the command starts\n" +
			"one in the background, which stops when it is no longer used. Exit status 0: the input ended. 1: some lines of the\n" +
			"input were not valid messages, or no server could be reached.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return p.stdio(c.Context(), o)
		},
	}
	f := c.Flags()
	f.StringVar(&o.toolset, "toolset", "mail", "mail, postal, aimx or agentmail")
	f.StringVar(&o.as, "as", "",
		"the agent to act as, for postal and agentmail (default for agentmail: AGENT_NAME, then the tmux window)")
	f.StringVar(&o.project, "project", "",
		"the project: an absolute path or a slug (default: this Git working tree; for postal, the project named default)")
	f.BoolVar(&o.noStart, "no-start", false, "do not start a server; exit if none is running")
	return c
}

type stdioOptions struct {
	toolset, as, project string
	noStart              bool
}

func (p *program) stdio(ctx context.Context, o stdioOptions) error {
	if toolsets := []string{"mail", "postal", "aimx", "agentmail"}; !slices.Contains(toolsets, o.toolset) {
		return &exitError{2, fmt.Errorf("--toolset is %q: use mail, postal, aimx or agentmail", o.toolset)}
	}
	caller, err := hello(p.env, o)
	if err != nil {
		return err
	}
	return bridge.Run(ctx, bridge.Config{
		In:      p.std.in,
		Out:     p.std.out,
		Toolset: o.toolset,
		Hello:   caller,
		Version: version(),
		Log:     p.cfg.logger(p.std),
		Dial: func(ctx context.Context, start bool) (net.Conn, error) {
			switch {
			case p.cfg.Socket != "":
				return p.dialOpen(ctx)
			case !start:
				return p.cfg.dialServer(ctx)
			}
			return p.awaitServer(ctx, !o.noStart)
		},
	})
}

// hello returns a description of this process for the server. The description includes the current folder. hello
// returns an error if the system does not provide this information.
func hello(env []string, o stdioOptions) (c tool.Caller, err error) {
	c = tool.Caller{Agent: o.as, Project: o.project}
	if c.Agent == "" && o.toolset == "agentmail" {
		c.Agent, _ = lookup(env, "AGENT_NAME")
	}
	c.Tmux, _ = lookup(env, "TMUX")
	c.Pane, _ = lookup(env, "TMUX_PANE")
	if dir, err := os.Getwd(); err == nil {
		if real, err := filepath.EvalSymlinks(dir); err == nil { // os.Getwd may return a path with a symbolic link
			dir = real
		}
		c.Dir = dir
		if c.WorkTree, err = repo.WorkTree(dir); err != nil {
			return c, fmt.Errorf("cannot find the Git working tree of %s: %w. Try again", dir, err)
		}
	}
	return c, nil
}
