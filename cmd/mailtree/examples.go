package main

import (
	_ "embed"
	"strings"

	"github.com/spf13/cobra"
)

// exampleLines has a line for each command that has no others below it.
//
//go:embed examples.txt
var exampleLines string

// addExamples gives each command its example. A command with others below it gets the first one of theirs.
func addExamples(root *cobra.Command) {
	for line := range strings.Lines(exampleLines) {
		c, _, err := root.Find(strings.Fields(line))
		for ; err == nil && c != root && c.Example == ""; c = c.Parent() {
			c.Example = "  mailtree " + strings.TrimSuffix(line, "\n")
		}
	}
}
