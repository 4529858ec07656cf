package main

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"mailtree/cli"
)

// brokenLine matches a line break within a paragraph of a command's long description.
var brokenLine = regexp.MustCompile(`(\S)\n(\S)`)

// fitHelp fits the help of root and its subcommands to the width of the terminal, if it is printed on a
// terminal.
func (p *program) fitHelp(root *cobra.Command) {
	whole := root.HelpFunc()
	root.SetHelpFunc(func(c *cobra.Command, args []string) {
		width := cli.NewScreen(p.std.out, p.variable).Width
		if width == 0 {
			whole(c, args)
			return
		}
		c.Long = brokenLine.ReplaceAllString(c.Long, "$1 $2")
		var text strings.Builder
		c.SetOut(&text)
		whole(c, args)
		c.SetOut(p.std.out)
		fmt.Fprint(p.std.out, cli.Fold(text.String(), width))
	})
}
