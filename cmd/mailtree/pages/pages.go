// Package pages writes the manual pages of a program that is built with package cobra. The program itself does not
// contain this package. A build with the tag "pages" writes the files that packages install.
package pages

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"mailtree/maildir/lazy"
)

// Entry is an entry in a section. Name is a variable, a file or an exit status, and Text explains it.
type Entry struct{ Name, Text string }

// Config describes the pages. The page of the program itself contains all entries. The pages of its commands contain
// only the exit statuses, and refer to the program's page for the other entries.
type Config struct {
	Version     string // shown at the bottom of each page
	Environment []Entry
	Files       []Entry
	Statuses    []Entry // used for commands whose own description does not mention exit statuses
}

// Write writes manual pages to the folder dir. It writes a page for root, and for each command below root that users
// can see. If dir is missing, Write creates it. Each page contains the month of SOURCE_DATE_EPOCH (default: the current
// month). Write returns any disk error.
func Write(root *cobra.Command, dir string, cfg Config) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	root.InitDefaultHelpCmd()
	return write(root, dir, cfg)
}

func write(c *cobra.Command, dir string, cfg Config) error {
	for _, sub := range c.Commands() {
		if !sub.IsAvailableCommand() || sub.IsAdditionalHelpTopicCommand() {
			continue
		}
		if err := write(sub, dir, cfg); err != nil {
			return err
		}
	}
	page, err := Page(c, cfg)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, strings.ReplaceAll(c.CommandPath(), " ", "-")+".1"), page, 0o644)
}

// statuses matches the part of a command's description that explains exit statuses, at the end of the description.
var statuses = lazy.Regexp(`(?s)(?:^|\s)((?:The e|E)xit status .*)$`)

// Page returns the manual page of a command in the format of man.
func Page(c *cobra.Command, cfg Config) ([]byte, error) {
	var more strings.Builder
	section := func(title string, entries []Entry) {
		fmt.Fprintf(&more, ".SH %s\n", title)
		for _, e := range entries {
			fmt.Fprintf(&more, ".TP\n\\fB%s\\fP\n%s\n", roff(e.Name), roff(e.Text))
		}
	}
	if c.HasParent() {
		fmt.Fprintf(&more, ".SH ENVIRONMENT\n\\fB%s\\fP(1) lists the environment variables and the files.\n", roff(c.Root().Name()))
	} else {
		section("ENVIRONMENT", cfg.Environment)
		section("FILES", cfg.Files)
	}
	long := c.Long
	if own := statuses().FindStringSubmatchIndex(long); own != nil {
		fmt.Fprintf(&more, ".SH EXIT STATUS\n%s\n", roff(long[own[2]:]))
		c.Long = cmp.Or(strings.TrimSpace(long[:own[2]]), c.Short)
	} else {
		section("EXIT STATUS", cfg.Statuses)
	}
	c.DisableAutoGenTag = true // the tag at the end of the page would contain the current date
	var page bytes.Buffer
	err := doc.GenMan(c, &doc.GenManHeader{Section: "1", Source: c.Root().Name() + " " + cfg.Version, Manual: c.Root().Name()}, &page)
	c.Long = long
	if err != nil {
		return nil, fmt.Errorf("the page of %s: %w", c.CommandPath(), err)
	}
	before, after, found := strings.Cut(page.String(), ".SH SEE ALSO")
	text := strings.TrimRight(before, "\n") + "\n" + more.String()
	if found {
		text += ".SH SEE ALSO" + after
	}
	return []byte(text), nil
}

// roff escapes text so that man shows the text unchanged in one paragraph.
func roff(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "`", "").Replace(text)
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		text = `\&` + text
	}
	return text
}
