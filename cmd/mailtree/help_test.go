package main

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestExamples checks that the help of each command has an example of that command or of a subcommand.
func TestExamples(t *testing.T) {
	root := rootCommand(nil, stdio{out: &bytes.Buffer{}}, everyCommand)
	var look func(c *cobra.Command)
	look = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			if sub.Hidden {
				continue
			}
			if line := sub.Example; !strings.Contains(line, sub.CommandPath()) {
				t.Errorf("the example of %s is %q", sub.CommandPath(), line)
			}
			look(sub)
		}
	}
	look(root)
}

// TestHelp checks that the program's help is short, and that `help all` shows the whole list.
func TestHelp(t *testing.T) {
	for _, tt := range []struct {
		args string
		has  []string
		not  []string
		most int // maximum number of lines
	}{
		{"--help", []string{"  mailtree reply 1 \"Yes, now.\"", "mailtree help all", "  mailtree yes 1", "  mailtree desk"}, []string{"doctor", "--store"}, 22},
		{"help", []string{"  mailtree reply 1 \"Yes, now.\""}, []string{"doctor"}, 22},
		{"help all", []string{"Mail:\n", "\n  doctor ", "\n  reply "}, nil, 100},
		{"help search", []string{"More: mailtree help tools#search\n"}, nil, 40},
		{"help reply", []string{"Examples:\n  mailtree reply 1 ", "--store"}, []string{"--log-level"}, 40},
		{"serve --help", []string{"Examples:\n  mailtree serve", "--log-level"}, nil, 90},
	} {
		var out bytes.Buffer
		if code := run(t.Context(), strings.Fields(tt.args), []string{"HOME=/nonexistent"}, stdio{out: &out, err: &out}); code != 0 {
			t.Errorf("%s: exit status %d: %s", tt.args, code, &out)
		}
		for _, text := range tt.has {
			if !strings.Contains(out.String(), text) {
				t.Errorf("%s does not contain %q:\n%s", tt.args, text, &out)
			}
		}
		for _, text := range tt.not {
			if strings.Contains(out.String(), text) {
				t.Errorf("%s contains %q", tt.args, text)
			}
		}
		if lines := strings.Count(out.String(), "\n"); lines > tt.most {
			t.Errorf("%s has %d lines", tt.args, lines)
		}
	}
}

// TestCited checks that each topic in pageAbout exists. It also checks each topic that the program's texts, the skills
// and the documents cite as `mailtree help TOPIC`. A topic is a command, a page or a section. The program must not cite
// a page by its file name, because its users may not have the repository. The programs in release/ run in the repository.
func TestCited(t *testing.T) {
	p := &program{}
	root := rootCommand(nil, stdio{out: &bytes.Buffer{}}, everyCommand)
	topic := regexp.MustCompile("`mailtree help ([^`A-Z]+)`")
	file := regexp.MustCompile(`(?m)^[^/\n]*"[^"\n]*\bdocs/[a-z]+/[a-z]+\.md`)
	for _, x := range pageAbout {
		c, rest, err := root.Find(strings.Fields(x.command))
		if _, wrong := p.documentation(root, []string{x.topic}); wrong != nil || err != nil || len(rest) > 0 || c == root {
			t.Errorf("pageAbout: %s: %v, %v", x.command, err, wrong)
		}
	}
	found := 0
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !slices.Contains([]string{".go", ".md", ".tmpl", ".txt"}, filepath.Ext(path)) || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range topic.FindAllSubmatch(text, -1) {
			found++
			c, args, err := root.Find(append([]string{"help"}, strings.Fields(string(m[1]))...))
			if err == nil {
				err = c.Args(c, args)
			}
			if err != nil {
				t.Errorf("%s: %s: %v", path, m[0], err)
			}
		}
		if cited := file.Find(text); cited != nil && strings.HasSuffix(path, ".go") && !strings.HasPrefix(path, "../../release/") {
			t.Errorf("%s cites a file: use `mailtree help`: %s", path, cited)
		}
		return err
	})
	if err != nil || found < 6 {
		t.Errorf("%d topics: %v", found, err)
	}
}

// TestNamed checks which commands are built for a command line, and that groups contains the commands' real names.
func TestNamed(t *testing.T) {
	for line, want := range map[string]string{
		"":                onlyRoot,
		"--all --json":    onlyRoot,
		"--version":       onlyRoot,
		"read 1":          "read",
		"guard check x":   "guard",
		"read --help":     "read",
		"-h":              everyCommand,
		"--all --help":    everyCommand,
		"--store x read":  everyCommand,
		"help read":       everyCommand,
		"__complete rea":  everyCommand,
		"raed 1":          everyCommand,
		"completion bash": everyCommand,
	} {
		if got := named(strings.Fields(line)); got != want {
			t.Errorf("%q: %q, not %q", line, got, want)
		}
	}
	for _, g := range groups {
		for _, c := range g.commands {
			var names []string
			for _, sub := range rootCommand(nil, stdio{out: &bytes.Buffer{}}, c.name).Commands() {
				names = append(names, sub.Name())
			}
			if len(names) != 1 || names[0] != c.name {
				t.Errorf("for %s, the commands %v are built", c.name, names)
			}
		}
	}
}
