package main

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"mailtree/cmd/mailtree/cli"
	mcpserver "mailtree/mcp"
)

// completing is the time limit for finding completions.
const completing = 500 * time.Millisecond

// Completion uses the server only if the server is already running. It never opens a store or creates an agent.

// completeAgent completes the name of an agent, for a command whose only argument is an agent.
func (p *program) completeAgent(c *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return p.complete(c, mcpserver.CompleteAgents, begun)
}

// completeAgents completes the name of an agent, for a command or a flag that accepts several agents.
func (p *program) completeAgents(c *cobra.Command, _ []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return p.complete(c, mcpserver.CompleteAgents, begun)
}

// completeMessage completes a message id, for a command whose first argument is a message.
func (p *program) completeMessage(c *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return p.complete(c, mcpserver.CompleteMessages, begun)
}

// completeMessages completes a message id, for a command that accepts several messages.
func (p *program) completeMessages(c *cobra.Command, _ []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return p.complete(c, mcpserver.CompleteMessages, begun)
}

// completeThread completes a thread id, for a command whose only argument is a thread.
func (p *program) completeThread(c *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return p.complete(c, mcpserver.CompleteThreads, begun)
}

// completeProjects completes the name of a project.
func (p *program) completeProjects(c *cobra.Command, _ []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return p.complete(c, mcpserver.CompleteProjects, begun)
}

// completeClaims completes a path that the user has claimed in this folder or below it.
func (p *program) completeClaims(c *cobra.Command, _ []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	below := ""
	if caller, err := hello(p.env, stdioOptions{}); err == nil && caller.WorkTree != "" && caller.Dir != caller.WorkTree {
		below = strings.TrimPrefix(caller.Dir, caller.WorkTree+"/") + "/"
	}
	words, how := p.complete(c, mcpserver.CompleteClaims, below+begun)
	for i := range words {
		words[i] = strings.TrimPrefix(words[i], below)
	}
	return words, how
}

// completionBash is a script that is printed before cobra's own script for Bash.
//
//go:embed completion.bash
var completionBash string

// loadCompletion lists, for each shell, the user's startup file and the lines to add to it. The lines run this program
// each time a shell starts, so that the script always matches the program's version.
var loadCompletion = []struct{ shell, file, lines string }{
	{"bash", "~/.bashrc", "  source <(mailtree completion bash)"},
	{"zsh", "~/.zshrc", "  autoload -U compinit && compinit\n  source <(mailtree completion zsh)"},
	{"fish", "~/.config/fish/config.fish", "  mailtree completion fish | source"},
	{"powershell", "$PROFILE", "  mailtree completion powershell | Out-String | Invoke-Expression"},
}

// completionNu is the completion script for Nushell, which cobra does not support.
//
//go:embed completion.nu
var completionNu string

// completionNushell returns the command that prints the completion script for Nushell. Nushell parses a script
// completely before it runs any program, so the completion script must be saved in a file.
func completionNushell() *cobra.Command {
	return &cobra.Command{
		Use:   "nushell",
		Short: "Generate the autocompletion script for nushell",
		Long: "Print the completion script for Nushell 0.108 or newer. To load it in new shells, save it with these commands. Run " +
			"them\nagain after you update mailtree:\n\n" +
			"  mkdir $nu.user-autoload-dirs.0\n" +
			"  mailtree completion nushell | save -f ($nu.user-autoload-dirs.0 | path join mailtree.nu)",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := fmt.Fprint(c.OutOrStdout(), completionNu)
			return err
		},
	}
}

// loadsAlone changes the `completion` command so that its scripts need no other packages, and so that one line is
// enough to load a script.
func loadsAlone(root *cobra.Command) {
	completion, _, err := root.Find([]string{"completion"})
	if err != nil {
		panic(err) // cannot happen: cobra always adds the command
	}
	completion.Short = "Print a shell completion script"
	completion.Long = completion.Short + ".\nTo see how to load the script, run `mailtree completion SHELL --help`."
	completion.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
	completion.AddCommand(completionNushell())
	for _, load := range loadCompletion {
		c, _, err := root.Find([]string{"completion", load.shell})
		if err != nil {
			panic(err) // cannot happen: cobra always adds the command
		}
		c.Long = fmt.Sprintf("Print the completion script for %s. To load it in the current shell, run these lines. To load it "+
			"in new shells, add them to %s:\n\n%s",
			load.shell, load.file, load.lines)
		if load.shell == "bash" {
			c.RunE = func(c *cobra.Command, _ []string) error {
				var script strings.Builder
				bare, err := c.Flags().GetBool("no-descriptions")
				if err == nil {
					err = root.GenBashCompletionV2(&script, !bare)
				}
				if err != nil {
					return err
				}
				_, err = fmt.Fprintf(c.OutOrStdout(), "%s\n%s", completionBash, keepsAddresses.Replace(script.String()))
				return err
			}
		}
	}
}

// keepsAddresses changes cobra's script for Bash so that Bash treats an address such as Ann@shop as one word.
var keepsAddresses = strings.NewReplacer(
	"_init_completion -n =: ", "_init_completion -n =:@ ",
	"handle_special_char \"$cur\" :\n", "handle_special_char \"$cur\" :\n    __mailtree_handle_special_char \"$cur\" @\n",
)

func (p *program) complete(c *cobra.Command, what, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	const none = cobra.ShellCompDirectiveNoFileComp
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.Context()), completing)
	defer cancel()
	project, err := p.projectKey(c.Flag("project").Value.String())
	if err != nil {
		return nil, none
	}
	person, _ := p.me()
	// Read the settings again. The first time, the flags before the cursor had not yet been parsed as flags.
	cfg, _ := loadConfig(c.Flags(), p.env, "", os.UserHomeDir) // like the commands in goesOn, completion needs only the store
	if cfg == nil || cfg.Store == "" {
		return nil, none
	}
	var found mcpserver.Completions
	err = p.asCommand(ctx, cfg.dialServer, func(ctx context.Context, s *cli.Client) error {
		return s.Ask(ctx, cli.Of(project, "complete"), mcpserver.CompleteAsk{Person: person, What: what, Begun: begun}, &found)
	})
	if err != nil {
		return nil, none
	}
	words := make([]cobra.Completion, len(found.Words))
	for i, w := range found.Words {
		words[i] = cobra.CompletionWithDesc(w.Word, strings.ReplaceAll(cli.Line(w.About), "\t", " "))
	}
	return words, none | cobra.ShellCompDirectiveKeepOrder
}
