package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mailtree/cmd/mailtree/cli"
	"mailtree/maildir/format"
)

// program is the context in which every subcommand runs.
type program struct {
	std stdio
	env []string
	cfg *config

	background bool   // set by `mailtree serve --background`
	step       string // set if one undo must undo all operations of the command; see format.InStep
}

// remark prints a line for the user on standard error. If standard error is a terminal, it breaks the line between
// words.
func (p *program) remark(format string, a ...any) {
	cli.NewScreen(p.std.err, p.variable).Tell("mailtree: "+format+"\n", a...)
}

// goesOn lists the commands that need no setting except the store. Their subcommands do not need any other setting
// either. These commands run during commits, clients' turns and shell startup, which must not fail because HOST or PORT
// has a different meaning in their environment.
var goesOn = map[string]bool{"hook": true, "guard": true, "completion": true, cobra.ShellCompRequestCmd: true}

// serverGroup is the heading above the server commands. The help of these commands shows the log flags.
const serverGroup = "Server and store:"

// subcommand builds a command. A process builds only the command that it runs, because building all commands takes
// milliseconds.
type subcommand struct {
	name  string
	build func(*program) *cobra.Command
}

// groups lists the headings of `mailtree help all`, each with its commands. Commands without a heading come last.
var groups = []struct {
	title    string
	commands []subcommand
}{
	{"Mail:", []subcommand{
		{"inbox", inboxCommand}, {"read", readCommand}, {"thread", threadCommand}, {"summary", summaryCommand},
		{"search", searchCommand}, {"send", sendCommand}, {"reply", replyCommand}, {"yes", yesCommand}, {"no", noCommand},
		{"forward", forwardCommand}, {"ack", ackCommand}, {"edit", editCommand}, {"archive", archiveCommand}, {"later", laterCommand},
		{"rm", rmCommand}, {"undo", undoCommand}, {"redo", redoCommand},
	}},
	{"Agents and claims:", []subcommand{
		{"agents", agentsCommand}, {"whois", whoisCommand}, {"me", meCommand}, {"claims", claimsCommand}, {"claim", claimCommand},
		{"release", releaseCommand}, {"hold", holdCommand}, {"go", goCommand}, {"dismiss", dismissCommand},
		{"projects", projectsCommand}, {"link", linkCommand}, {"unlink", unlinkCommand}, {"path", pathCommand}, {"new", newCommand},
		{"guard", guardCommand},
	}},
	{"Activity:", []subcommand{
		{"desk", deskCommand}, {"open", openCommand}, {"catchup", catchUpCommand}, {"decisions", decisionsCommand},
		{"watch", watchCommand}, {"log", logCommand}, {"problems", problemsCommand},
	}},
	{"Clients:", []subcommand{
		{"setup", setupCommand}, {"stdio", stdioCommand}, {"hook", hookCommand}, {"nudge", nudgeCommand}, {"token", tokenCommand},
	}},
	{"Email:", []subcommand{
		{"mailbox", mailboxCommand}, {"gateway", gatewayCommand},
	}},
	{serverGroup, []subcommand{
		{"serve", serveCommand}, {"status", statusCommand}, {"stop", stopCommand}, {"logs", logsCommand}, {"service", serviceCommand},
		{"backup", backupCommand}, {"restore", restoreCommand}, {"uninstall", uninstallCommand}, {"doctor", doctorCommand},
		{"config", configCommand}, {"index", indexCommand}, {"key", keyCommand}, {"sync", syncCommand},
		{"upgrade-format", upgradeFormatCommand}, {"fmt", fmtCommand}, {"attachments", attachmentsCommand},
	}},
	{"", []subcommand{
		{"version", versionCommand},
	}},
}

// These values can be used instead of a command's name. With everyCommand, all commands are built, and package cobra
// selects the command to run. This is necessary if, for example, flags come before the command's name. With onlyRoot,
// no subcommand is built.
const (
	everyCommand = ""
	onlyRoot     = "-"
)

// named returns the name of the command that a command line runs. It returns onlyRoot if only the root command can run,
// and everyCommand if the first argument does not determine the command.
func named(args []string) string {
	isFlag := func(arg string) bool { return strings.HasPrefix(arg, "-") }
	isHelp := func(arg string) bool { return arg == "-h" || arg == "--help" }
	switch {
	case slices.ContainsFunc(args, isHelp) && isFlag(args[0]):
		return everyCommand // the help of the root command lists all commands
	case !slices.ContainsFunc(args, func(arg string) bool { return !isFlag(arg) }):
		return onlyRoot
	case isFlag(args[0]):
		return everyCommand
	}
	for _, g := range groups {
		if slices.ContainsFunc(g.commands, func(c subcommand) bool { return c.name == args[0] }) {
			return args[0]
		}
	}
	return everyCommand
}

// addCommands adds the headings and the command called name to root. If name is everyCommand, it adds all commands.
func (p *program) addCommands(root *cobra.Command, name string) {
	for _, g := range groups {
		if g.title != "" {
			root.AddGroup(&cobra.Group{ID: g.title, Title: g.title})
		}
		for _, c := range g.commands {
			if name == everyCommand || c.name == name {
				sub := c.build(p)
				sub.GroupID = g.title
				root.AddCommand(sub)
			}
		}
	}
}

// configure reads a command's settings before the command runs.
func (p *program) configure(c *cobra.Command) error {
	dotenv := ""
	if c.Name() == "serve" && !p.background || c.Name() == "config" {
		dotenv = ".env"
	}
	cfg, err := loadConfig(c.Flags(), p.env, dotenv, os.UserHomeDir)
	mustGoOn := goesOn[c.Name()] || c.HasParent() && goesOn[c.Parent().Name()]
	if mustGoOn && cfg != nil && cfg.Store != "" {
		err = nil
	}
	switch {
	case err != nil && c.Name() == "hook":
		return harmless(err)
	case err != nil && !c.HasParent():
		return p.spareClient(&exitError{exitUsage, err})
	case err != nil:
		return &exitError{exitUsage, err}
	}
	for _, s := range cfg.misspelt {
		p.remark("%s", s)
	}
	cfg.background = p.background
	p.cfg = cfg
	return nil
}

// rootCommand returns the root command. It has the subcommand called name, all subcommands if name is everyCommand, or
// no subcommands if name is onlyRoot.
func rootCommand(env []string, std stdio, name string) *cobra.Command {
	p := &program{std: std, env: env}
	root := &cobra.Command{
		Use:   "mailtree",
		Short: "Mail for coding agents: a Git-tracked tree of markdown files, served over MCP",
		Long: "Mail for coding agents and their users: a Git-tracked tree of markdown files, served over MCP.\n" +
			"Without a command, mailtree shows what needs your attention. `mailtree setup` connects a client, and\n" +
			"`mailtree serve` runs the server.",
		SilenceErrors: true,
		SilenceUsage:  true,

		DisableSuggestions: true, // unknownCommand suggests names instead
	}
	f := p.addWaitsFlags(root)
	root.RunE = func(c *cobra.Command, _ []string) error { return p.spareClient(p.showWaits(c, f)) }
	root.SetIn(std.in)
	root.SetOut(std.out)
	root.SetErr(std.err)
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error { return usageError(c, flagError(err)) })
	root.Version = version()
	root.SetVersionTemplate("mailtree {{.Version}}\n")
	addSettingFlags(root.PersistentFlags(), "")
	root.PersistentPreRunE = func(c *cobra.Command, _ []string) error { return p.configure(c) }
	p.addCommands(root, name)
	if name == everyCommand {
		root.InitDefaultCompletionCmd()
		loadsAlone(root)
		p.addHelpCommand(root)
	} else { // keep cobra from adding its own completion and help commands
		root.CompletionOptions.DisableDefaultCmd = true
		root.SetHelpCommand(&cobra.Command{Use: "no-help", Hidden: true})
	}
	p.addHelp(root)
	addExamples(root)
	countArgs(root)
	for _, c := range root.Commands() {
		addSettingFlags(c.Flags(), c.Name())
	}
	return root
}

// countArgs makes each command below c report a wrong number of arguments in mailtree's own words.
func countArgs(c *cobra.Command) {
	for _, sub := range c.Commands() {
		countArgs(sub)
		check := sub.Args
		if check == nil || sub.Name() == "hook" { // a hook must not fail
			continue
		}
		sub.Args = func(c *cobra.Command, args []string) error {
			err := check(c, args)
			if err == nil {
				return nil
			}
			switch text := err.Error(); { // cobra's messages about the number of arguments
			case strings.Contains(text, "arg(s)"):
				err = wrongCount(c, args)
			case !c.HasSubCommands() && strings.HasPrefix(text, "unknown command"):
				err = fmt.Errorf("%s takes no arguments, but got %s", subPath(c), format.Quote(args[0]))
			}
			return usageError(c, err)
		}
	}
}

// wrongCount returns the error for a wrong number of arguments.
func wrongCount(c *cobra.Command, args []string) error {
	if _, needs, _ := strings.Cut(c.Use, " "); len(args) == 0 {
		return fmt.Errorf("%s needs %s, as in `%s`", subPath(c), strings.TrimSuffix(needs, "..."), strings.TrimSpace(c.Example))
	}
	return fmt.Errorf("wrong number of arguments (%d): use `%s`", len(args), strings.TrimSuffix(c.UseLine(), " [flags]"))
}

// subPath returns the words of a command that follow the name of the program.
func subPath(c *cobra.Command) string {
	return strings.TrimPrefix(c.CommandPath(), c.Root().Name()+" ")
}

func usageError(c *cobra.Command, err error) error {
	return &exitError{exitUsage, &usage{err, c.CommandPath()}}
}

type usage struct {
	err  error
	path string
}

func (u *usage) Error() string { return u.err.Error() + "; see `" + u.path + " --help`" }

// flagError rewrites an error from the flag parser in mailtree's own words.
func flagError(err error) error {
	var wrong *pflag.InvalidValueError
	var alone *pflag.ValueRequiredError
	var unknown *pflag.NotExistError
	switch {
	case errors.As(err, &wrong):
		f := wrong.GetFlag()
		return fmt.Errorf("--%s is %s, but must be %s", f.Name, format.Quote(wrong.GetValue()), cmp.Or(flagValues[f.Value.Type()], "valid"))
	case errors.As(err, &alone):
		return fmt.Errorf("--%s needs a value", alone.GetFlag().Name)
	case errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() != "":
		return fmt.Errorf("unknown flag: -%s", unknown.GetSpecifiedName())
	}
	return err
}

// flagValues maps the type of a flag to a description of the values that the flag accepts.
var flagValues = map[string]string{
	"bool":        "true or false",
	"duration":    "a duration, such as 30m or 2h",
	"int":         "a number",
	"int64":       "a number",
	"stringSlice": "a list separated by commas",
	"uint":        "0 or a positive number",
	"uint64":      "0 or a positive number",
}

// exclusiveFlags rewrites cobra's message about mutually exclusive flags that are set together, and returns it as an
// error. It returns nil for any other message.
func exclusiveFlags(message string) error {
	_, set, ok := strings.Cut(message, "] are set none of the others can be; [")
	if !ok {
		return nil
	}
	flags := strings.Fields(strings.TrimSuffix(set, "] were all set"))
	return fmt.Errorf("--%s cannot be used together", strings.Join(flags, " and --"))
}

// unknownCommand returns the error for a word that is not a subcommand of the command with the given path.
func unknownCommand(root *cobra.Command, word, path string) error {
	var near []string
	if c, _, err := root.Find(strings.Fields(path)[1:]); err == nil {
		var all []string
		for _, sub := range c.Commands() {
			if sub.IsAvailableCommand() {
				all = append(all, sub.Name())
			}
		}
		near = format.Near(word, all)
	}
	return &usage{fmt.Errorf("unknown command %q for %q%s", word, path, meant(near)), path}
}

// meant returns a question that suggests the names in near, or "" if there are none.
func meant(near []string) string {
	if len(near) == 0 {
		return ""
	}
	return " (did you mean " + strings.Join(near, " or ") + "?)"
}
