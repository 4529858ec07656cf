package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"mailtree/cmd/mailtree/cli"
	"mailtree/cmd/mailtree/installed"
	"mailtree/guard"
	"mailtree/maildir"
	"mailtree/maildir/projectformat"
	"mailtree/maildir/seat"
	"mailtree/maildir/storedir"
)

func guardCommand(p *program) *cobra.Command {
	env := p.env
	c := &cobra.Command{
		Use:   "guard",
		Short: "Keep commits from touching files that another agent has claimed",
		Long: "Keep commits from touching files that another agent has claimed, with hooks in a code repository. The hooks work\n" +
			"without a server. Environment: AGENT_NAME is the committer's name; GUARD_MODE is block, warn or off; GUARD_UNKNOWN=warn\n" +
			"lets unidentified committers through with a warning; GUARD_BYPASS=1 lets everything through.",
		Example: "  mailtree guard install                  # check commits in this code base\n" +
			"  mailtree guard check app/api/users.py   # may I change this file?",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(guardInstall(p, env), guardUninstall(p, env), guardCheck(p, env), guardStatus(p, env))
	return c
}

// site returns the repository in the only argument or, if there is no argument, the repository of the working
// directory.
func site(args, env []string) (guard.Site, error) {
	at := guard.Site{Repo: ".", Env: env, Words: words}
	if len(args) > 0 {
		at.Repo = args[0]
	}
	var err error
	at.Repo, err = filepath.Abs(at.Repo)
	return at, err
}

func guardInstall(p *program, env []string) *cobra.Command {
	var project string
	var push bool
	c := &cobra.Command{
		Use:   "install [REPOSITORY]",
		Short: "Install the guard's hooks in a code repository",
		Long: "Install the guard's pre-commit and pre-merge-commit hooks (with --push, also pre-push) in a code repository. Existing\n" +
			"hooks are kept and run first. A second run changes nothing.",
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			at, err := site(args, env)
			if err != nil {
				return err
			}
			exe, err := guard.Program()
			if err != nil {
				return err
			}
			if project == "" {
				if err := p.findClone(c.Context(), at.Repo); err != nil {
					return err
				}
			}
			p.noteInstalled(installed.Entry{Kind: installed.Guard, Dir: at.Repo})
			done, err := guard.Install(c.Context(), at, guard.Setup{
				Store:   p.cfg.Store,
				Scope:   p.cfg.Scope,
				Project: project,
				Program: exe,
				Push:    push,
			})
			p.lines(done)
			return err
		},
	}
	c.Flags().StringVar(&project, "project", "", "the project whose claims apply: an absolute path or a slug (default: "+
		"the repository's own project)")
	c.Flags().BoolVar(&push, "push", false, "also install pre-push, which checks the commits that a push adds")
	return c
}

func guardUninstall(p *program, env []string) *cobra.Command {
	return &cobra.Command{
		Use:   "uninstall [REPOSITORY]",
		Short: "Remove the guard's hooks and restore the earlier ones",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			at, err := site(args, env)
			if err != nil {
				return err
			}
			done, err := guard.Uninstall(c.Context(), at)
			p.lines(done)
			return err
		},
	}
}

func guardStatus(p *program, env []string) *cobra.Command {
	asJSON := false
	c := &cobra.Command{
		Use:   "status [REPOSITORY]",
		Short: "Show where the guard is installed and whether it works",
		Long: "Show where the guard is installed and whether it works.\nThe exit status is 0 if commits and merges are " +
			"guarded, otherwise 1.",
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			at, err := site(args, env)
			if err != nil {
				return err
			}
			lines, works, err := guard.Status(c.Context(), at)
			if !asJSON {
				p.lines(lines)
			} else if err == nil {
				err = p.printJSON(map[string]any{"works": works, "details": lines})
			}
			if err == nil && !works {
				return &exitError{1, nil}
			}
			return err
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print the result as JSON")
	return c
}

// tellUnguarded prints how to install the guard if commits in the project's code base are not guarded. It prints
// nothing if the project has no Git repository.
func (p *program) tellUnguarded(ctx context.Context, d *deskWork) {
	hooks, err := guard.Find(ctx, guard.Site{Repo: d.HumanKey, Env: p.env})
	if err != nil || slices.ContainsFunc(hooks, func(h guard.Installed) bool { return h.Store == p.cfg.Store }) {
		return
	}
	command := "mailtree guard install"
	if here, err := os.Getwd(); err != nil || here != d.HumanKey {
		command += " " + guard.ShellWord(d.HumanKey)
	}
	d.Tell("%s\n", d.Faint("Commits are not checked, because the guard is not installed. To install it: "+command))
}

func (p *program) lines(all []string) {
	screen := cli.NewScreen(p.std.out, p.variable)
	for _, l := range all {
		screen.Tell("%s\n", l)
	}
}

func guardCheck(p *program, env []string) *cobra.Command {
	var hook, project string
	var asJSON bool
	c := &cobra.Command{
		Use:   "check [PATH…]",
		Short: "Check whether others have claimed the staged or specified files",
		Long: "Check whether others have claimed the staged or specified files. The hooks call this command with --hook.\n" +
			"Exit status 0: the change is allowed. 1: another agent has claimed a file, or you are on hold. 2: the command line is\n" +
			"wrong, or the check failed; with --hook, a failed check lets the commit through with a notice, unless\n" +
			"GUARD_MODE=block is set.",
		RunE: func(c *cobra.Command, args []string) error {
			debug.SetGCPercent(-1) // no garbage collection, because this run needs only a few megabytes; tuneMemory's limit still applies
			q := guard.Question{
				Store:   p.cfg.Store,
				Scope:   p.cfg.Scope,
				Project: project,
				Hook:    hook,
				Fixed:   c.Flags().Changed("store"),
				ByHand:  !c.Flags().Changed("hook"),
				Env:     env,
				Stdin:   p.std.in,
				Words:   words,
			}
			q.Program, _ = guard.Program()
			q.Usual = p.usualStore()
			if p.atTerminal() {
				q.Person = p.personHere
			}
			switch hook {
			case guard.PreCommit, guard.PreMergeCommit, guard.PrePush:
			default:
				err := fmt.Errorf("--hook is %q, but must be %s, %s or %s", hook, guard.PreCommit, guard.PreMergeCommit, guard.PrePush)
				return &exitError{guard.Trouble, err}
			}
			if len(args) > 0 {
				var err error
				if q.Paths, err = q.FromRoot(c.Context(), "", args); err != nil {
					return &exitError{guard.Trouble, err}
				}
			}
			var report strings.Builder
			v := guard.Check(c.Context(), q, &report)
			cli.NewScreen(p.std.err, p.variable).Tell("%s", report.String())
			if asJSON {
				return printVerdict(p, v)
			}
			if q.ByHand && v.Code == guard.Pass && len(v.Blocked) == 0 && v.Held == nil {
				fmt.Fprintln(p.std.out, "No conflicting claims.")
			}
			return exitWith(v.Code)
		},
	}
	c.Flags().StringVar(&hook, "hook", guard.PreCommit, "the hook that runs the check")
	c.Flags().StringVar(&project, "project", "", "the project whose claims apply: an absolute path or a slug (default: "+
		"the repository's own project)")
	c.Flags().BoolVar(&asJSON, "json", false, "also print the result as JSON")
	return c
}

// personHere returns the agent name (see me) of the user who is typing. It returns "" if an agent seems to be typing,
// or if agentHere is not sure.
func (p *program) personHere() string {
	if is, sure := p.agentHere(); is || !sure {
		return ""
	}
	name, err := p.me()
	if err != nil {
		return ""
	}
	return maildir.PersonName(name)
}

// agentHere reports whether an agent appears to be running this command. This is the case if an agent's client is an
// ancestor of this process, or if an agent is using this tmux pane. sure is false if the system does not report the
// ancestors, or if the store's sessions cannot be read.
func (p *program) agentHere() (is, sure bool) {
	above, sure := seat.Ancestors()
	if underClient(above) {
		return true, true
	}
	projects, err := storedir.ProjectNames(p.cfg.Store)
	if err != nil {
		return false, false
	}
	pane := seat.Pane{Tmux: p.variable("TMUX"), Pane: p.variable("TMUX_PANE")}
	for _, n := range projects {
		t, err := storedir.OpenTree(p.cfg.Store, n.Slug, 0)
		if errors.Is(err, projectformat.ErrRefused) { // no server opens the project, so it has no sessions
			continue
		}
		if err != nil {
			sure = false
			continue
		}
		is = seat.Sits(t, above, pane)
		t.Close()
		if is {
			return true, true
		}
	}
	return false, sure
}

// underClient reports whether one of the processes is a client that runs agents.
func underClient(above []seat.Process) bool {
	agents := append(clientNames(), "code") // "code" is VS Code's program
	return slices.ContainsFunc(above, func(a seat.Process) bool { return a.Runs(agents) })
}

// usualStore returns the store that commands use if --store is not set, or "" if that store is unknown.
func (p *program) usualStore() string {
	for _, s := range p.cfg.settings {
		if s.Name == "MCP_MAIL_STORE" {
			given, _ := lookup(p.env, s.Name)
			store, _ := absolute(cmp.Or(given, s.Default), os.UserHomeDir)
			return store
		}
	}
	return ""
}

func exitWith(code int) error {
	if code == 0 {
		return nil
	}
	return &exitError{code, nil}
}

// verdictShape is the JSON form of a verdict in the output of `guard check --json`.
type verdictShape struct {
	Agent   string         `json:"agent"`
	Held    *heldShape     `json:"held,omitempty"`
	Blocked []blockedShape `json:"blocked"`
	Damaged []damagedShape `json:"damaged"`
	Code    int            `json:"code"`
}

type heldShape struct {
	By     string `json:"by"`
	Reason string `json:"reason"`
	Until  string `json:"until_ts"`
	File   string `json:"hold_file"`
}

type blockedShape struct {
	Holder  string   `json:"holder"`
	Path    string   `json:"path"` // the claim's pattern
	Reason  string   `json:"reason"`
	Expires string   `json:"expires_ts"`
	Files   []string `json:"files"`
	File    string   `json:"claim_file"`
}

type damagedShape struct {
	File   string `json:"file"`
	Reason string `json:"reason"`
}

func printVerdict(p *program, v guard.Verdict) error {
	out := verdictShape{
		Agent:   v.Agent,
		Blocked: []blockedShape{},
		Damaged: []damagedShape{},
		Code:    v.Code,
	}
	if h := v.Held; h != nil {
		out.Held = &heldShape{h.By, h.Reason, h.Until.UTC().Format("2006-01-02T15:04:05Z"), h.File}
	}
	for _, b := range v.Blocked {
		out.Blocked = append(out.Blocked, blockedShape{
			Holder:  b.Claim.Agent,
			Path:    b.Claim.Pattern,
			Reason:  b.Claim.Reason,
			Expires: b.Claim.Expires.UTC().Format("2006-01-02T15:04:05Z"),
			Files:   b.Paths,
			File:    b.File,
		})
	}
	for _, d := range v.Damaged {
		out.Damaged = append(out.Damaged, damagedShape{d.Path, d.Reason})
	}
	e := json.NewEncoder(p.std.out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(out); err != nil {
		return err
	}
	return exitWith(v.Code)
}
