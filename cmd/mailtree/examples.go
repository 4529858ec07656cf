package main

import (
	_ "embed"
	"strings"

	"github.com/spf13/cobra"
)

// exampleLines contains an example for each command without subcommands, one per line.
//
//go:embed examples.txt
var exampleLines string

// addExamples gives each command below root its example. A command with subcommands gets the first example of a
// subcommand.
func addExamples(root *cobra.Command) {
	built := map[string]bool{}
	for _, c := range root.Commands() {
		built[c.Name()] = true
	}
	for line := range strings.Lines(exampleLines) {
		if name, _, _ := strings.Cut(line, " "); !built[strings.TrimSpace(name)] {
			continue
		}
		c, _, err := root.Find(strings.Fields(line))
		for ; err == nil && c != root && c.Example == ""; c = c.Parent() {
			c.Example = "  mailtree " + strings.TrimSuffix(line, "\n")
		}
	}
}
