package main

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// The linker sets these variables in release builds (release/goreleaser.yaml). In all other builds, they are empty.
var releaseVersion, releaseCommit, releaseDate string

// build is the output of `mailtree version --json`.
type build struct {
	Version string `json:"version"`          // a semantic version that begins with v, or devel
	Commit  string `json:"commit,omitempty"` // "" if unknown
	Date    string `json:"date,omitempty"`   // the commit's date, in RFC 3339; "" if unknown
	Go      string `json:"go"`
	OS      string `json:"os"`
	Arch    string `json:"arch"`
}

// thisBuild returns the description of this program. The commit is unknown if Go built the program from a downloaded
// module or in a linked worktree.
func thisBuild() build {
	b := build{
		Version: releaseVersion,
		Commit:  releaseCommit,
		Date:    releaseDate,
		Go:      runtime.Version(),
		OS:      runtime.GOOS,
		Arch:    runtime.GOARCH,
	}
	if info, ok := debug.ReadBuildInfo(); ok && b.Version == "" {
		if b.Version = info.Main.Version; b.Version == "(devel)" {
			b.Version = ""
		}
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				b.Commit = s.Value
			case "vcs.time":
				b.Date = s.Value
			}
		}
	}
	b.Version = cmp.Or(b.Version, "devel")
	return b
}

// version returns the version of this program, such as v1.2.3, or devel if the version is unknown.
func version() string { return thisBuild().Version }

func versionCommand(p *program) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "version",
		Short: "Print the version, the commit (if known) and the platform",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			b := thisBuild()
			if asJSON {
				return p.printJSON(b)
			}
			from := ""
			if b.Commit != "" {
				from = fmt.Sprintf(" (commit %.12s of %s)", b.Commit, cmp.Or(b.Date, "an unknown date"))
			}
			_, err := fmt.Fprintf(p.std.out, "mailtree %s%s %s %s/%s\n", b.Version, from, b.Go, b.OS, b.Arch)
			return err
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print the result as JSON")
	return c
}
