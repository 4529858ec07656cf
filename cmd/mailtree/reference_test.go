package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mailtree/cmd/mailtree/cli"
	"mailtree/docs"
	"mailtree/fixtures/inmemory"
)

// generated matches a generated part of a page, with its name.
var generated = regexp.MustCompile(`(?s)(<!-- generated from ([^\n]+) -->\n).*?(<!-- end -->)`)

// TestReference checks that the generated parts of the pages in docs/reference agree with the program. With -update, it
// writes these parts.
func TestReference(t *testing.T) {
	t.Parallel()
	root := rootCommand(nil, stdio{out: &bytes.Buffer{}}, everyCommand)
	parts := map[string]string{
		"the list of commands": commandList(root),
		"the common flags":     flagTable(root, func(f *pflag.Flag) bool { return isCommon(root, f) }),
		"the commands' help":   commandHelp(root),
		"the settings":         settingTable(),
		"the exit statuses":    statusTable(),
		"GET /metrics":         metricTable(servedMetrics(t)),
	}
	d := newDaemon(t, filepath.Join(inmemory.Dir(t), "store"))
	d.real = true
	d.start()
	for _, toolset := range []string{"mail", "postal", "aimx", "agentmail"} {
		r := &replayer{t: t, d: d, wire: stdioWire{}, toolset: toolset, peers: map[caller]peer{}}
		listing := r.exchange(caller{name: "alice"}, []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`))
		parts["tools/list of "+toolset] = toolSections(t, listing)
	}
	pages, err := filepath.Glob("../../docs/reference/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pages {
		old, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		text := generated.ReplaceAllStringFunc(string(old), func(part string) string {
			m := generated.FindStringSubmatch(part)
			want, ok := parts[m[2]]
			switch now := m[1] + "\n" + strings.TrimSpace(want) + "\n\n" + m[3]; {
			case !ok:
				t.Errorf("%s: %q is not generated, or appears twice", page, m[2])
			case part != now && !*update:
				t.Errorf("%s: the part %q is not current. Run: go test ./cmd/mailtree -run TestReference -update", page, m[2])
			default:
				part = now
			}
			delete(parts, m[2])
			return part
		})
		if text != string(old) {
			if err := os.WriteFile(page, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name := range parts {
		t.Errorf("no page in docs/reference contains the part %q", name)
	}
}

// table formats rows as a Markdown table. The first row is the header.
func table(rows [][]string) string {
	var b strings.Builder
	for i, row := range rows {
		for _, cell := range row {
			b.WriteString("| " + strings.ReplaceAll(cell, "|", `\|`) + " ")
		}
		b.WriteString("|\n")
		if i == 0 {
			b.WriteString(strings.Repeat("|---", len(row)) + "|\n")
		}
	}
	return b.String()
}

// code formats text as code, and "" as "".
func code(text string) string {
	if text == "" {
		return ""
	}
	return "`" + text + "`"
}

// groupedCommands returns, for each heading of `mailtree help all`, the commands that users see below it.
func groupedCommands(root *cobra.Command) (titles []string, all [][]*cobra.Command) {
	var below func(c *cobra.Command) []*cobra.Command
	below = func(c *cobra.Command) []*cobra.Command {
		of := []*cobra.Command{c}
		for _, sub := range c.Commands() {
			if sub.IsAvailableCommand() {
				of = append(of, below(sub)...)
			}
		}
		return of
	}
	for _, g := range groups {
		names := g.commands
		if g.title == "" { // these commands are added by cobra
			names = append(slices.Clone(names), subcommand{name: "help"}, subcommand{name: "completion"})
		}
		var of []*cobra.Command
		for _, s := range names {
			c, _, _ := root.Find([]string{s.name})
			of = append(of, below(c)...)
		}
		titles, all = append(titles, cmp.Or(strings.TrimSuffix(g.title, ":"), "Other commands")), append(all, of)
	}
	return titles, all
}

// useLine returns a command's usage line, without the placeholder for flags.
func useLine(c *cobra.Command) string { return strings.TrimSuffix(c.UseLine(), " [flags]") }

// commandList returns a table of each group of commands, with links to the sections of commandHelp.
func commandList(root *cobra.Command) string {
	var b strings.Builder
	titles, all := groupedCommands(root)
	for i, title := range titles {
		rows := [][]string{{title, ""}}
		for _, c := range all[i] {
			if !c.HasAvailableSubCommands() || c.Name() == "help" {
				rows = append(rows, []string{fmt.Sprintf("[`%s`](#%s)", useLine(c), strings.ReplaceAll(c.CommandPath(), " ", "-")), c.Short})
			}
		}
		b.WriteString(table(rows) + "\n")
	}
	return b.String()
}

// commandHelp returns a section for each command. For a command with subcommands, the section contains only the text
// that introduces the subcommands. If there is no such text, the section is omitted.
func commandHelp(root *cobra.Command) string {
	var b strings.Builder
	_, all := groupedCommands(root)
	for _, c := range slices.Concat(append([][]*cobra.Command{{root}}, all...)...) {
		isParent := c.HasAvailableSubCommands() && c != root && c.Name() != "help"
		if isParent && c.Long == "" {
			continue
		}
		fmt.Fprintf(&b, "### %s\n\n%s", c.CommandPath(), paragraphs(cmp.Or(c.Long, c.Short+".")))
		if topic := aboutCommand(c); topic != "" && topic != aboutCommand(c.Parent()) {
			name, anchor, hasAnchor := strings.Cut(topic, "#")
			link := "../" + docs.Find(name) + ".md"
			if hasAnchor {
				link += "#" + anchor
			}
			fmt.Fprintf(&b, "More: [%s](%s).\n\n", topic, strings.TrimPrefix(link, "../reference/"))
		}
		if isParent {
			continue
		}
		fmt.Fprintf(&b, "```\n%s\n", useLine(c))
		if example := strings.TrimSpace(c.Example); example != "" && example != useLine(c) {
			fmt.Fprintf(&b, "%s\n", example)
		}
		b.WriteString("```\n\n")
		var common []string
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if isCommon(root, f) && f.Name != "store" && f.Name != "log-level" && f.Name != "log-format" {
				common = append(common, "`--"+f.Name+"`")
			}
		})
		own := flagTable(c, func(f *pflag.Flag) bool { return !isCommon(root, f) })
		if own != "" {
			b.WriteString(own + "\n")
		}
		if len(common) > 0 && c != root {
			fmt.Fprintf(&b, "Common flags: %s.\n\n", strings.Join(common, ", "))
		}
	}
	return b.String()
}

// isCommon reports whether many commands have the flag f with the same meaning.
func isCommon(root *cobra.Command, f *pflag.Flag) bool {
	common := root.Flag(f.Name)
	return common != nil && common.Usage == f.Usage && f.Name != "all" && f.Name != "rows"
}

// plainKinds maps types of flags to the names that users know.
var plainKinds = map[string]string{"int": "number", "uint": "number", "strings": "list", "stringArray": "string"}

// flagTable returns a table of the flags of c that pass the filter, or "" if there are none.
func flagTable(c *cobra.Command, filter func(*pflag.Flag) bool) string {
	rows := [][]string{{"flag", "meaning"}}
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" || !filter(f) {
			return
		}
		kind, text := pflag.UnquoteUsage(f)
		name := code(strings.TrimSpace("--" + f.Name + " " + cmp.Or(plainKinds[kind], kind)))
		if f.Shorthand != "" {
			name = code("-"+f.Shorthand) + ", " + name
		}
		if !slices.Contains([]string{"", "false", "0", "0s", "[]"}, f.DefValue) {
			text += " (default " + code(f.DefValue) + ")"
		}
		rows = append(rows, []string{name, text})
	})
	if len(rows) == 1 {
		return ""
	}
	return table(rows)
}

// paragraphs formats a help text as Markdown: indented lines become code blocks.
func paragraphs(text string) string {
	var b strings.Builder
	var lines []string
	end := func() {
		switch joined := strings.Join(lines, "\n"); {
		case joined == "":
		case strings.HasPrefix(joined, "  "):
			fmt.Fprintf(&b, "```\n%s\n```\n\n", strings.ReplaceAll(joined[2:], "\n  ", "\n"))
		default:
			fmt.Fprintf(&b, "%s\n\n", cli.Fold(strings.Join(lines, " "), 140))
		}
		lines = nil
	}
	for line := range strings.SplitSeq(text, "\n") {
		if line == "" || len(lines) > 0 && strings.HasPrefix(line, "  ") != strings.HasPrefix(lines[0], "  ") {
			end()
		}
		if line != "" {
			lines = append(lines, line)
		}
	}
	end()
	return b.String()
}

func settingTable() string {
	rows := [][]string{{"setting", "flag", "default", "meaning"}}
	for _, s := range settings() {
		flag, value := "", code(s.Default)
		if s.Flag != "" {
			flag = code("--" + s.Flag)
		}
		if n, err := strconv.Atoi(s.Default); err == nil && strings.HasSuffix(s.Name, "_BYTES") {
			if value = fmt.Sprintf("%d KiB", n>>10); n >= 1<<20 {
				value = fmt.Sprintf("%d MiB", n>>20)
			}
		}
		rows = append(rows, []string{code(s.Name), flag, value, s.Help})
	}
	return table(rows)
}

func statusTable() string {
	rows := [][]string{{"status", "meaning"}}
	for _, s := range exitStatuses {
		rows = append(rows, []string{strconv.Itoa(s.code), s.text})
	}
	return table(rows)
}

// metricTable returns a table of the metrics that have a description in a response to GET /metrics.
func metricTable(served string) string {
	rows := [][]string{{"metric", "type", "labels", "meaning"}}
	for _, m := range regexp.MustCompile(`(?m)^# HELP (mailtree_\w+) (.*)\n# TYPE \w+ (\w+)\n(?:.*\{(.*)\})?`).FindAllStringSubmatch(served, -1) {
		var labels []string
		for _, l := range regexp.MustCompile(`(\w+)="`).FindAllStringSubmatch(m[4], -1) {
			if l[1] != "le" {
				labels = append(labels, code(l[1]))
			}
		}
		rows = append(rows, []string{code(m[1]), m[3], strings.Join(labels, ", "), m[2]})
	}
	return table(rows)
}

// argument is the part of a JSON schema that describes a tool's argument.
type argument struct {
	Type, Description string
	Items             *argument
	Enum              []string
	Default           json.RawMessage
	Minimum, Maximum  *json.Number
}

// kind describes the values that an argument accepts.
func (a argument) kind() string {
	kind := a.Type
	if a.Items != nil {
		kind = "list of " + a.Items.kind() + "s"
	}
	if a.Minimum != nil {
		kind += ", at least " + a.Minimum.String()
	}
	if a.Maximum != nil {
		kind += ", at most " + a.Maximum.String()
	}
	if a.Enum != nil {
		kind = code(strings.Join(a.Enum, "`, `"))
	}
	return kind
}

// toolSections returns a section for each tool in a response to tools/list.
func toolSections(t *testing.T, listing []byte) string {
	var list struct {
		Result struct {
			Tools []struct {
				Name, Description string
				InputSchema       struct {
					Properties map[string]argument
					Required   []string
				}
			}
		}
	}
	if err := json.Unmarshal(listing, &list); err != nil || len(list.Result.Tools) == 0 {
		t.Fatalf("%v: %s", err, listing)
	}
	var b strings.Builder
	for _, tool := range list.Result.Tools {
		fmt.Fprintf(&b, "#### %s\n\n%s", tool.Name, paragraphs(tool.Description))
		rows := [][]string{{"argument", "type", "default", "meaning"}}
		args, required := tool.InputSchema.Properties, tool.InputSchema.Required
		for _, name := range required {
			rows = append(rows, []string{code(name), args[name].kind(), "required", args[name].Description})
		}
		for _, name := range slices.Sorted(maps.Keys(args)) {
			if !slices.Contains(required, name) {
				rows = append(rows, []string{code(name), args[name].kind(), code(strings.Trim(string(args[name].Default), `"`)), args[name].Description})
			}
		}
		if len(rows) > 1 {
			b.WriteString(table(rows) + "\n")
		}
	}
	return b.String()
}
