package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/user"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"mailtree/cmd/mailtree/cli"
	"mailtree/maildir"
	"mailtree/maildir/format"
	"mailtree/maildir/repo"
	"mailtree/maildir/storedir"
	mcpserver "mailtree/mcp"
)

// These are the exit statuses of the program.
const (
	exitFailed  = 1 // the command failed
	exitUsage   = 2 // the command line is wrong
	exitNothing = 3 // the requested item does not exist, or nothing was found
)

// exitStatuses explains the exit statuses to users, in the manual pages and in docs/reference/commands.md, "Exit
// status".
var exitStatuses = []struct {
	code int
	text string
}{
	{0, "The command succeeded. An empty list is also a success."},
	{exitFailed, "The command was refused, or something failed. For `status`, `doctor` and `sync status`: something needs your " +
		"attention, or (for `status`) no server is running. For a check (`guard check`, `guard status`, `gateway setup`, " +
		"`gateway check`, `setup --check`, `index verify`, `fmt --check`): the check found a problem."},
	{exitUsage, "The command line or a setting is wrong. `guard check` also exits with status 2 if it cannot complete the check."},
	{exitNothing, "The agent, message, project, store or other object that you named does not exist, a search found nothing, or " +
		"there is nothing to show, release, undo or stop."},
}

// deskWork is the context of a user's command.
type deskWork struct {
	*cli.Client
	*cli.Screen
	mcpserver.Desk // the project, the user's agent, and the full ids of the arguments

	places   repo.Folders // the folders that contain projects' code bases
	json     bool         // print results as JSON
	listFile string       // path returned by program.listFile
	threads  []rowThread  // the threads of the rows, as in namedRows.Threads
	unsure   bool         // the user must confirm the action (see namedRows.Unsure)
	cursor   string       // where to continue a list; empty means at the beginning
	listed   []string     // ids of the messages that this command has listed so far

	rowProjects []string // the listed messages' projects, if the list covers all projects

	// as is "MAILTREE_ME=NAME " if a command needs that variable to run as d.Person. Otherwise, it is "".
	as string
	// at is " --project SLUG" if a command in this folder needs that flag to reach the project. Otherwise, it is "".
	at string
}

// deskFlags are the flags that all user commands have.
type deskFlags struct {
	project string
	json    bool
}

// addDeskFlags adds to c the flags that all user commands have.
func (p *program) addDeskFlags(c *cobra.Command) *deskFlags {
	f := &deskFlags{}
	p.addProjectFlag(c, &f.project)
	c.Flags().BoolVar(&f.json, "json", false, "print the result as JSON")
	return f
}

// addProjectFlag adds the --project flag to a command.
func (p *program) addProjectFlag(c *cobra.Command, project *string) {
	c.Flags().StringVarP(project, "project", "p", "",
		"the project: a path, a slug, or the last element of a path (default: the project of this folder)")
	_ = c.RegisterFlagCompletionFunc("project", p.completeProjects)
}

// errNoProject is the error for a command without --project in a folder that is not in a project.
var errNoProject = errors.New("this folder is not in a project: cd into a project's folder (`mailtree projects` lists them), " +
	"use --project, or run `mailtree new project` here")

// whose specifies whether a command acts as the user's agent.
type whose bool

const (
	mine    whose = true
	nobodys whose = false
)

// atDesk calls do with a client of the server and the project. If the command acts as the user's agent, do also
// receives that agent. The ids of messages and threads may be abbreviated, or may be row numbers from the last list. In
// either case, do receives the full ids. Without --project, atDesk uses the project of the list if an id is a row
// number, and otherwise the project of this folder. If this folder is not in a project, the error wraps errNoProject.
func (p *program) atDesk(
	ctx context.Context, f *deskFlags, who whose, ids []string, do func(ctx context.Context, d *deskWork) error,
) error {
	ask := mcpserver.DeskAsk{}
	if who == mine {
		var err error
		if ask.Person, err = p.me(); err != nil {
			return err
		}
	}
	return p.askDesk(ctx, f, ask, ids, do)
}

// atStore is like atDesk, but for all projects of the store. If json is set, results are printed as JSON.
func (p *program) atStore(ctx context.Context, json bool, do func(ctx context.Context, d *deskWork) error) error {
	return p.withServer(ctx, func(ctx context.Context, c *cli.Client) error {
		return do(ctx, &deskWork{Client: c, Screen: cli.NewScreen(p.std.out, p.variable), json: json, listFile: p.listFile()})
	})
}

// atDeskOf is like atDesk, but for the agent with the given name or address. If agent is empty, atDeskOf uses the
// user's agent.
func (p *program) atDeskOf(
	ctx context.Context, f *deskFlags, agent string, ids []string, do func(ctx context.Context, d *deskWork) error,
) error {
	if agent == "" {
		return p.atDesk(ctx, f, mine, ids, do)
	}
	return p.askDesk(ctx, f, mcpserver.DeskAsk{Agent: agent}, ids, do)
}

// askDesk is like atDesk, but sends the given request, to which it adds the ids.
func (p *program) askDesk(
	ctx context.Context, f *deskFlags, ask mcpserver.DeskAsk, ids []string, do func(ctx context.Context, d *deskWork) error,
) error {
	named, err := p.rowsToIDs(ids)
	if err != nil {
		return err
	}
	ask.IDs = named.IDs
	project, err := p.projectKey(cmp.Or(f.project, named.Project))
	if err != nil {
		return err
	}
	placed := false
	err = p.withServer(ctx, func(ctx context.Context, c *cli.Client) error {
		d := &deskWork{
			Client: c, Screen: cli.NewScreen(p.std.out, p.variable), json: f.json, listFile: p.listFile(),
			threads: named.Threads, unsure: named.Unsure,
		}
		if err := c.Ask(ctx, cli.Of(project, "desk"), ask, &d.Desk); err != nil {
			return err
		}
		var err error
		resolver := storedir.NewResolver(p.cfg.Store, p.cfg.Scope)
		if d.places, err = resolver.Places(); err != nil {
			return err
		}
		if f.project != "" || named.Project != "" {
			d.at = p.toReach(resolver, d.Slug)
		}
		if name, err := loginName(); err != nil || d.Person != maildir.PersonName(name) {
			d.as = "MAILTREE_ME=" + d.Person + " "
		}
		placed = true
		if listed := named.Project; listed != "" && listed != d.Slug {
			return &exitError{exitUsage, fmt.Errorf("the last list in this terminal is from project %s: use the message id", listed)}
		}
		if d.Made {
			p.remark("joined project %s as %s (set MAILTREE_ME for another name)", d.Slug, d.Person)
		}
		return do(ctx, d)
	})
	refused := &cli.Refusal{}
	if given := f.project != "" || named.Project != ""; !given && !placed && errors.As(err, &refused) && refused.NotFound() {
		return &exitError{exitNothing, errNoProject}
	}
	return err
}

// toReach returns the flag that a command in this folder needs to reach the project, or "" if the command needs no
// flag.
func (p *program) toReach(resolver *storedir.Resolver, slug string) string {
	here, err := p.projectKey("")
	if err == nil {
		if m, err := resolver.ResolveKey(here); err == nil && m.Slug == slug {
			return ""
		}
	}
	return " --project " + slug
}

// undoing returns the command line that undoes this command's action in any shell. If the action was not taken under
// the login name, the command line sets MAILTREE_ME, because the user may have set the variable for this command only.
func (d *deskWork) undoing() string { return d.as + "mailtree undo" + d.at }

// projectKey returns the key that identifies a project to the server. If given is "", it returns the key for this
// folder.
func (p *program) projectKey(given string) (string, error) {
	if given != "" && !strings.Contains(given, "/") && given != "." && given != ".." {
		return given, nil
	}
	caller, err := hello(p.env, stdioOptions{})
	if err != nil {
		return "", err
	}
	if given == "" {
		return caller.Dir, nil // the server finds the project above it, as for hooks
	}
	return filepath.Abs(given)
}

// me returns the user's agent name: MAILTREE_ME or, if that is not set, the login name. It returns an error if
// MAILTREE_ME is not a valid agent name. A login name may contain characters that are not allowed in an agent name.
// maildir.PersonName removes these characters later.
func (p *program) me() (string, error) {
	if name := p.variable("MAILTREE_ME"); name != "" {
		if why := format.CheckName(name); why != "" {
			return "", &exitError{exitUsage, fmt.Errorf("MAILTREE_ME is %q, which is not a valid agent name: %s", name, why)}
		}
		return name, nil
	}
	return loginName()
}

// loginName returns the agent name of a user who has not set MAILTREE_ME. It is the login name or, if that name is
// reserved for the server, the login name followed by "-user".
func loginName() (string, error) {
	u, err := user.Current()
	if err != nil {
		return "", errors.New("your OS user has no name: choose one with MAILTREE_ME")
	}
	if format.ServerName(u.Username) { // the account has a name that is reserved for the server
		return u.Username + "-user", nil
	}
	return u.Username, nil
}

// call calls a tool and prints the result with present.
func call[T any](ctx context.Context, d *deskWork, tool string, args any, show func(answer *T) error) error {
	return present(d, func(answer any) error { return d.Call(ctx, tool, args, answer) }, show)
}

// readURI reads a resource and prints it with present.
func readURI[T any](ctx context.Context, d *deskWork, uri string, show func(answer *T) error) error {
	return present(d, func(answer any) error { return d.Read(ctx, uri, answer) }, show)
}

// askVerb asks the server to run one of its socket's verbs, and prints the result with present. If d has a project, the
// verb runs in that project.
func askVerb[T any](ctx context.Context, d *deskWork, verb string, ask any, show func(answer *T) error) error {
	return present(d, func(answer any) error { return d.Ask(ctx, cli.Of(d.Slug, verb), ask, answer) }, show)
}

// printJSON prints answer as JSON, for commands that do not use a project.
func (p *program) printJSON(answer any) error {
	text, err := json.Marshal(answer)
	if err != nil {
		return err
	}
	return cli.NewScreen(p.std.out, p.variable).JSON(text)
}

// present prints the result that get retrieves. With --json, it prints the result unchanged. Otherwise, it calls show.
func present[T any](d *deskWork, get func(answer any) error, show func(answer *T) error) error {
	if d.json {
		var raw json.RawMessage
		if err := get(&raw); err != nil {
			return err
		}
		return d.JSON(raw)
	}
	var answer T
	if err := get(&answer); err != nil {
		return err
	}
	return show(&answer)
}
