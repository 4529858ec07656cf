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
	var print, dry bool
	install := &cobra.Command{
		Use:   "install",
		Short: "Write the service's file and start the service; doing it twice changes nothing",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			s, err := p.service()
			if err != nil || print {
				if err == nil {
					fmt.Fprint(p.std.out, s.Text)
				}
				return err
			}
			steps, err := s.Install()
			if err == nil {
				err = p.takeSteps(c.Context(), s, steps, dry)
			}
			if err == nil && !dry && runtime.GOOS == "linux" {
				fmt.Fprintln(p.std.out, "It ends when you log out. To keep it: loginctl enable-linger")
			}
			return err
		},
	}
	install.Flags().BoolVar(&print, "print", false, "print the file; change nothing")
	uninstall := &cobra.Command{
		Use:   "uninstall",
		Short: "Stop the service and remove its file; mail stays",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			s, err := p.service()
			if err != nil {
				return err
			}
			steps, err := s.Uninstall()
			if err != nil {
				return err
			}
			if len(steps) == 0 {
				fmt.Fprintln(p.std.out, "there is no service")
			}
			return p.takeSteps(c.Context(), s, steps, dry)
		},
	}
	for _, sub := range []*cobra.Command{install, uninstall} {
		sub.Flags().BoolVar(&dry, "dry-run", false, "print what would be done; change nothing")
	}
	status := &cobra.Command{
		Use:   "status",
		Short: "Tell whether the service is there and runs; exit status 1 when not",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return p.serviceStatus(c.Context())
		},
	}
	c.AddCommand(install, uninstall, status)
	return c
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

// takeSteps does the steps, or with dry prints them alone.
func (p *program) takeSteps(ctx context.Context, s *service.Service, steps []service.Step, dry bool) error {
	run := func(command []string) (string, error) {
		said, err := exec.CommandContext(ctx, command[0], command[1:]...).CombinedOutput()
		return string(said), err
	}
	for _, step := range steps {
		fmt.Fprintln(p.std.out, step)
		if dry {
			continue
		}
		if err := s.Do(step, run); err != nil {
			return err
		}
	}
	return nil
}

func (p *program) serviceStatus(ctx context.Context) error {
	s, err := p.service()
	if err != nil {
		return err
	}
	there, same, err := s.There()
	switch {
	case err != nil:
		return err
	case !there:
		fmt.Fprintln(p.std.out, "there is no service: `mailtree service install` makes one")
		return &exitError{1, nil}
	case !same:
		fmt.Fprintln(p.std.out, s.Path+" (`mailtree service install` would write another now: see --print)")
	default:
		fmt.Fprintln(p.std.out, s.Path)
	}
	ask := s.Ask()
	said, err := exec.CommandContext(ctx, ask[0], ask[1:]...).CombinedOutput()
	var ended *exec.ExitError
	switch {
	case err == nil:
		fmt.Fprintln(p.std.out, "it runs")
		return nil
	case !errors.As(err, &ended):
		return err
	}
	fmt.Fprintf(p.std.out, "it does not run: %s says %q\n", strings.Join(ask, " "), strings.TrimSpace(string(said)))
	return &exitError{1, nil}
}
