package main

import (
	"cmp"
	"context"
	"embed"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"strings"
	"text/template"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mailtree/cmd/mailtree/cli"
	"mailtree/maildir"
	"mailtree/maildir/format"
	"mailtree/maildir/index"
	"mailtree/mcp/mail"
)

// templates contains a template file NAME.tmpl for each command NAME. The template formats the server's response to the
// command. The file parts.tmpl contains parts that several templates use.
//
//go:embed templates
var templates embed.FS

// asking is a function that sends a command's request with the given arguments, and decodes the server's response.
type asking func(ctx context.Context, d *deskWork, args []string, answer any) error

// params are a tool's arguments.
type params map[string]any

// Each command below sends one request to the server and prints the response with a template.

func agentsCommand(p *program) *cobra.Command {
	return asks(p, nobodys, &cobra.Command{
		Use:   "agents",
		Short: "List agents",
		Long: "List the agents and users of a project that were active in the last seven days, with their last activity and unread\n" +
			"count. With --everywhere, list those of all projects, with the addresses that you can write to from any project.",
	}, func(f *pflag.FlagSet) asking {
		all := f.BoolP("all", "a", false, "include inactive agents")
		everywhere := f.Bool("everywhere", false, "list the agents of all projects")
		return func(ctx context.Context, d *deskWork, _ []string, answer any) error {
			ask := params{"project_key": d.Slug, "active_only": !*all, "all_projects": *everywhere, "cursor": d.cursor}
			return d.Call(ctx, "list_agents", ask, answer)
		}
	}, showByTemplate[mail.Directory])
}

func whoisCommand(p *program) *cobra.Command {
	return asks(p, nobodys, &cobra.Command{
		Use:               "whois AGENT",
		Short:             "Show an agent's task, its claims and what it has read",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: p.completeAgent,
	}, askWhois, showByTemplate[mail.Whois])
}

func meCommand(p *program) *cobra.Command {
	return asks(p, mine, &cobra.Command{
		Use:   "me",
		Short: "Show who you are in a project",
		Long: "Show who you are in a project. You are an agent too: your name is MAILTREE_ME or your login name. The agent is\n" +
			"created on first use.",
	}, askWhois, showByTemplate[mail.Whois])
}

func claimsCommand(p *program) *cobra.Command {
	return asks(p, nobodys, &cobra.Command{
		Use:   "claims",
		Short: "List claims with their holders and remaining time",
	}, func(*pflag.FlagSet) asking {
		return func(ctx context.Context, d *deskWork, _ []string, answer any) error {
			uri := "resource://claims/" + d.Slug
			if d.cursor != "" {
				uri += "?cursor=" + d.cursor
			}
			return d.Read(ctx, uri, answer)
		}
	}, showByTemplate[mail.ClaimsResource])
}

// askWhois returns the function that asks the server about the agent in the argument or, if there is no argument, about
// the user's agent.
func askWhois(*pflag.FlagSet) asking {
	return func(ctx context.Context, d *deskWork, args []string, answer any) error {
		name := cmp.Or(strings.Join(args, ""), d.Person)
		return d.Call(ctx, "whois", params{"project_key": d.Slug, "agent_name": name}, answer)
	}
}

func claimCommand(p *program) *cobra.Command {
	var given *string
	var ttl time.Duration
	return asks(p, mine, &cobra.Command{
		Use:   "claim PATH...",
		Short: "Claim files before you edit them",
		Long: "Claim files, or patterns such as 'src/**', before you edit them. Other agents can see the claims, and the guard\n" +
			"refuses their commits to these files. The command claims all of the paths or none: if another agent holds one of\n" +
			"them, the exit status is 1.",
		Args: cobra.MinimumNArgs(1),
		PreRunE: func(c *cobra.Command, _ []string) (err error) {
			ttl, err = lease(c, *given)
			return err
		},
	}, func(f *pflag.FlagSet) asking {
		given = f.String("for", "1h", "duration of the claim, such as 90m, 2h or 1d12h")
		shared := f.Bool("shared", false, "let others claim the files too, if their claims are also shared")
		reason := f.StringP("reason", "r", "", "what you are working on")
		return func(ctx context.Context, d *deskWork, paths []string, answer any) error {
			return d.Call(ctx, "claim_paths", params{
				"project_key": d.Slug, "agent_name": d.Person, "paths": inProject(d, paths),
				"exclusive": !*shared, "ttl_seconds": int(ttl.Seconds()), "reason": *reason,
			}, answer)
		}
	}, func(ctx context.Context, d *deskWork, name string, a *mail.Claimed) error {
		if err := showByTemplate(ctx, d, name, a); err != nil || len(a.Conflicts) == 0 {
			if err == nil {
				p.tellUnguarded(ctx, d)
			}
			return err
		}
		if held := a.Conflicts[0]; d.IsPerson {
			d.Printf("%s\n", d.Faint("To release it: "+freeLine(d, d.Person, held.Holder, held.HeldPath)))
		}
		return &exitError{code: exitFailed}
	})
}

// lease parses the duration that a user has passed with --for. It returns a usage error if the duration is not between
// MinTTL and MaxTTL.
func lease(c *cobra.Command, given string) (time.Duration, error) {
	ttl, err := cli.Duration(given)
	if err != nil {
		return 0, usageError(c, fmt.Errorf("--for %w", err))
	}
	if ttl < maildir.MinTTL || ttl > maildir.MaxTTL {
		return 0, usageError(c, fmt.Errorf("--for is %q, but must be from 1m to 720h, such as 2h or 3d", given))
	}
	return ttl, nil
}

// isLong contains the commands in this file whose lists may exceed one page.
var isLong = map[string]bool{"agents": true, "claims": true}

// asks turns c into a command for users. The command accepts no arguments unless c.Args is set. flags adds the
// command's flags, and returns the function that sends the request. show prints the server's response.
func asks[T any](
	p *program, who whose, c *cobra.Command, flags func(*pflag.FlagSet) asking,
	show func(ctx context.Context, d *deskWork, name string, answer *T) error,
) *cobra.Command {
	if c.Args == nil {
		c.Args = cobra.NoArgs
	}
	f, ask := p.addDeskFlags(c), flags(c.Flags())
	cursor := ""
	if isLong[c.Name()] {
		p.addMoreFlags(c, f, &cursor)
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		return p.atDesk(c.Context(), f, who, nil, func(ctx context.Context, d *deskWork) error {
			d.cursor = cursor
			get := func(answer any) error { return ask(ctx, d, args, answer) }
			return present(d, get, func(answer *T) error {
				if !isLong[c.Name()] {
					return show(ctx, d, c.Name(), answer)
				}
				return d.Paged(ctx, func(s *cli.Screen) error {
					d.Screen = s
					return show(ctx, d, c.Name(), answer)
				})
			})
		})
	}
	return c
}

// showByTemplate prints a response with the template for the command called name, in the layout of cli.Screen.Lay. It
// first makes every string in the response safe to print on a single line of a terminal.
func showByTemplate[T any](_ context.Context, d *deskWork, name string, answer *T) error {
	printable(reflect.ValueOf(answer))
	t, err := template.New(name).Funcs(d.templateFuncs(name)).ParseFS(templates, "templates/*.tmpl")
	if err != nil {
		return err
	}
	var text strings.Builder
	if err := t.ExecuteTemplate(&text, name+".tmpl", answer); err != nil {
		return err
	}
	d.Lay(text.String())
	return nil
}

// templateFuncs returns the functions that the template for a command can call.
func (d *deskWork) templateFuncs(name string) template.FuncMap {
	return template.FuncMap{
		"ago": d.Ago, "in": d.In, "shortID": d.ShortID, "exact": cli.Exact, "bold": d.Bold, "faint": d.Faint,
		"more": func(cursor string) string { return d.tellMore(name, cursor) },
		"some": some, "presence": presence, "undoing": func() string { return "undo: " + d.undoing() },
		"noBecause": noBecause, "reason": reason, "howFar": howFar, "seen": d.seen, "madeAt": d.madeAt,
		"count": count, "strong": func() string { return cli.Strong }, "head": func() string { return cli.Head },
		"matched": matched, "quoted": func(text string) string { return `"` + cli.Line(text) + `"` },
		"state": d.stateOf, "edited": d.edited, "narrow": func() bool { return d.Width > 0 && d.Width < wideAgents },
		"add": func(a, b int) int { return a + b },
		"fact": func(label, value string) string { // returns "" if the value is empty
			if value == "" {
				return ""
			}
			return label + "\t" + value + "\n"
		},
	}
}

// printable makes each string in v safe to print on a single line of a terminal.
func printable(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(cli.Line(v.String()))
	case reflect.Pointer:
		if !v.IsNil() {
			printable(v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			printable(v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() || f.Anonymous {
				printable(v.Field(i))
			}
		}
	}
}

// inProject converts paths that are relative to this folder to paths that are relative to the project. A path that
// begins with ".." becomes absolute. If this folder is not in the project, inProject returns the paths unchanged.
func inProject(d *deskWork, paths []string) []string {
	here, err := os.Getwd()
	if err != nil {
		return paths
	}
	below, ok, err := d.places.Relative(d.HumanKey, here)
	if err != nil || !ok {
		return paths
	}
	all := make([]string, len(paths))
	for i, path := range paths {
		switch {
		case strings.HasPrefix(path, "../") || path == "..":
			all[i] = here + "/" + path
		case filepath.IsAbs(path) || below == ".":
			all[i] = path
		default: // not filepath.Join, because it would remove a trailing slash, which is significant
			all[i] = below + "/" + path
		}
	}
	return all
}

// matched formats the number of tracked files that a claim covers. files is nil if the files were not counted.
func matched(files *int) string {
	if files == nil {
		return "not counted"
	}
	return count(*files, "file")
}

// presence returns an agent's status, with a remark if the agent is waiting for an answer from the user. The status of
// an agent on hold is "held".
func presence(status string, asks bool, held *mail.HeldShape) string {
	switch {
	case held != nil:
		status = "held"
	case status == format.Work:
		status = "working"
	}
	if !asks {
		return status
	}
	return strings.TrimSpace(status + " (permission prompt)")
}

// wideAgents is the smallest width of a terminal on which `mailtree agents` shows programs and tasks.
const wideAgents = 120

// stateOf returns a word for an agent's state. An agent that does not report its state is active or quiet. A user has
// no state.
func (d *deskWork) stateOf(a *mail.Listed) string {
	state := presence(a.Status, a.Asks, a.Held)
	if state != "" || a.Program == maildir.PersonProgram {
		return state
	}
	if at, err := time.Parse(time.RFC3339Nano, a.LastActive); err == nil && d.Now().Sub(at) < maildir.QuietAfter {
		return "active"
	}
	return "quiet"
}

// edited returns the file that an agent edited last, and the file's age. On a narrow terminal, it omits the file's
// folder. edited returns "" if there is no file.
func (d *deskWork) edited(file, at string) string {
	if file == "" {
		return ""
	}
	if d.Width > 0 && d.Width < wideAgents {
		file = path.Base(file)
	}
	return file + " " + d.Ago(at)
}

// noBecause returns "no" followed by the reason, or "" if there is no reason.
func noBecause(why string) string {
	if why == "" {
		return ""
	}
	return "no: " + why
}

// some formats a number with its noun. It returns "" for zero.
func some(n int, what string) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%d %s", n, what)
}

// madeAt formats a commit that a tool has returned as hash, time and subject. It replaces the time with a
// human-readable time.
func (d *deskWork) madeAt(commit string) string {
	hash, rest, _ := strings.Cut(commit, " ")
	stamp, subject, ok := strings.Cut(rest, " ")
	if !ok || d.Ago(stamp) == "" {
		return commit
	}
	return hash + "  " + d.seen(stamp) + "  " + subject
}

// seen formats a timestamp as its age followed by the exact time. It returns "" if there is no timestamp.
func (d *deskWork) seen(stamp string) string {
	if stamp == "" {
		return ""
	}
	return d.Ago(stamp) + " (" + cli.Exact(stamp) + ")"
}

func reason(text string) string {
	if text == "" {
		return ""
	}
	return ": " + cli.Line(text)
}

// howFar describes a recipient's last action on a message, such as "acknowledged".
func howFar(r *index.Receipt) string {
	switch {
	case r.Status != "":
		return strings.TrimSuffix(r.Status+": "+cli.Line(r.Reply), ": ")
	case r.Unanswered:
		return "archived without an answer"
	case r.Acked:
		return "acknowledged"
	case r.Read:
		return "read"
	case !r.AnnouncedAt.IsZero():
		return "notified"
	case r.Delivered:
		return "delivered"
	}
	return "not delivered"
}
