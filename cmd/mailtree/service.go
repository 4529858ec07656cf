package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"mailtree/service"
)

func serviceCommand(p *program) *cobra.Command {
	c := &cobra.Command{
		Use:   "service",
		Short: "Have the server run from login on: a systemd unit of the user, on macOS a launchd agent",
		Long: "Have the server run from login on, and again when it fails: as a unit of systemd's user manager, on macOS as\n" +
			"a launchd agent. It gets the settings that are in the environment, the store and the PATH as they are now.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(serviceInstallCommand(p), serviceUninstallCommand(p), serviceStatusCommand(p))
	return c
}

func serviceInstallCommand(p *program) *cobra.Command {
	var print bool
	c := &cobra.Command{
		Use:   "install",
		Short: "Write the service's file and start the service; doing it twice changes nothing",
		Args:  cobra.NoArgs,
	}
	f := addServiceFlags(c)
	c.Flags().BoolVar(&print, "print", false, "print the file; change nothing")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if print {
			return p.printService(f)
		}
		done, err := p.changeService(c.Context(), f, (*service.Service).Install)
		switch {
		case err != nil:
			return err
		case f.json:
			return p.printJSON(done)
		case !f.dry && runtime.GOOS == "linux":
			fmt.Fprintln(p.std.out, "It ends when you log out. To keep it: loginctl enable-linger")
		}
		return nil
	}
	return c
}

func serviceUninstallCommand(p *program) *cobra.Command {
	c := &cobra.Command{
		Use:   "uninstall",
		Short: "Stop the service and remove its file; mail stays",
		Args:  cobra.NoArgs,
	}
	f := addServiceFlags(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		done, err := p.changeService(c.Context(), f, (*service.Service).Uninstall)
		switch {
		case err != nil:
			return err
		case f.json:
			return p.printJSON(done)
		case len(done.Steps) == 0:
			fmt.Fprintln(p.std.out, "there is no service")
		}
		return nil
	}
	return c
}

func serviceStatusCommand(p *program) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "status",
		Short: "Tell whether the service is there and runs; exit status 1 when not",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			state, err := p.serviceState(c.Context())
			switch {
			case err != nil:
				return err
			case asJSON:
				err = p.printJSON(state)
			default:
				p.tellService(state)
			}
			if err == nil && !state.Runs {
				err = &exitError{exitFailed, nil}
			}
			return err
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print the answer as JSON")
	return c
}

// serviceFlags are the flags of the commands that change the service.
type serviceFlags struct{ dry, json bool }

func addServiceFlags(c *cobra.Command) *serviceFlags {
	f := &serviceFlags{}
	c.Flags().BoolVar(&f.dry, "dry-run", false, "print what would be done; change nothing")
	c.Flags().BoolVar(&f.json, "json", false, "print the answer as JSON")
	return f
}

// service describes the service, as it would be installed now.
func (p *program) service() (*service.Service, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return nil, err
	}
	exe, err := installed()
	if err != nil {
		return nil, err
	}
	env := []string{"MCP_MAIL_STORE=" + p.cfg.Store}
	for _, s := range p.cfg.settings {
		if s.Name != "MCP_MAIL_STORE" && s.Source != "default" {
			env = append(env, s.Name+"="+s.Value)
		}
	}
	if path, ok := lookup(p.env, "PATH"); ok {
		env = append(env, "PATH="+path) // of the commands that hooks and settings name, and of tmux
	}
	config, _ := lookup(p.env, "XDG_CONFIG_HOME")
	return service.New(service.Config{
		OS:         runtime.GOOS,
		Home:       home,
		ConfigHome: config,
		UID:        os.Getuid(),
		Program:    exe,
		Env:        env,
	})
}

// installed is the path of this program: as it stands in PATH, which outlives an upgrade, else where
// it lies.
func installed() (string, error) {
	exe, err := os.Executable()
	if err != nil {
		return "", err
	}
	found, err := exec.LookPath("mailtree")
	if err != nil {
		return exe, nil //nolint:nilerr // it is not in PATH
	}
	a, errA := os.Stat(exe)
	b, errB := os.Stat(found)
	if errA == nil && errB == nil && os.SameFile(a, b) {
		return filepath.Abs(found)
	}
	return exe, nil
}

// serviceFile is the service's file: the answer of `mailtree service install --print --json`.
type serviceFile struct {
	Path string `json:"path"`
	Text string `json:"text"`
}

// printService prints the file that an install writes.
func (p *program) printService(f *serviceFlags) error {
	s, err := p.service()
	switch {
	case err != nil:
		return err
	case f.json:
		return p.printJSON(serviceFile{s.Path, s.Text})
	}
	fmt.Fprint(p.std.out, s.Text)
	return nil
}

// serviceChange is what was done to the service: the answer of `mailtree service install --json`.
type serviceChange struct {
	Path  string   `json:"path"`  // of its file
	Steps []string `json:"steps"` // what was done; with --dry-run, what would be
}

// changeService does the steps of the plan, and with dry none of them. It prints each where the
// answer is no JSON.
func (p *program) changeService(
	ctx context.Context, f *serviceFlags, plan func(*service.Service) ([]service.Step, error),
) (done serviceChange, err error) {
	s, err := p.service()
	if err != nil {
		return done, err
	}
	steps, err := plan(s)
	if err != nil {
		return done, err
	}
	run := func(command []string) (string, error) {
		said, err := exec.CommandContext(ctx, command[0], command[1:]...).CombinedOutput()
		return string(said), err
	}
	done = serviceChange{Path: s.Path, Steps: []string{}}
	for _, step := range steps {
		done.Steps = append(done.Steps, step.String())
		if !f.json {
			fmt.Fprintln(p.std.out, step)
		}
		if f.dry {
			continue
		}
		if err := s.Do(step, run); err != nil {
			return done, err
		}
	}
	return done, nil
}

// serviceState is how the service is: the answer of `mailtree service status --json`.
type serviceState struct {
	Path    string `json:"path"`    // of its file
	There   bool   `json:"there"`   // the file is there
	Current bool   `json:"current"` // an install would write the same
	Runs    bool   `json:"runs"`
	Asked   string `json:"asked,omitempty"` // the command that asks the manager, where the file is there
	Said    string `json:"said,omitempty"`  // what the manager said of a service that does not run
}

// serviceState looks for the service's file, and asks the manager where it is there.
func (p *program) serviceState(ctx context.Context) (state serviceState, err error) {
	s, err := p.service()
	if err != nil {
		return state, err
	}
	state.Path = s.Path
	if state.There, state.Current, err = s.There(); err != nil || !state.There {
		return state, err
	}
	ask := s.Ask()
	state.Asked = strings.Join(ask, " ")
	said, err := exec.CommandContext(ctx, ask[0], ask[1:]...).CombinedOutput()
	if ended := (*exec.ExitError)(nil); errors.As(err, &ended) {
		state.Said = strings.TrimSpace(string(said))
		return state, nil
	}
	state.Runs = err == nil
	return state, err
}

// tellService prints how the service is.
func (p *program) tellService(state serviceState) {
	if !state.There {
		fmt.Fprintln(p.std.out, "there is no service: `mailtree service install` makes one")
		return
	}
	fmt.Fprint(p.std.out, state.Path)
	if !state.Current {
		fmt.Fprint(p.std.out, " (`mailtree service install` would write another now: see --print)")
	}
	if state.Runs {
		fmt.Fprint(p.std.out, "\nit runs\n")
		return
	}
	fmt.Fprintf(p.std.out, "\nit does not run: %s says %q\n", state.Asked, state.Said)
}
