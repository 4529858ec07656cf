package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/spf13/cobra"

	"mailtree/cmd/mailtree/service"
	"mailtree/guard"
)

// serviceAnswer is the output of `mailtree service --json`.
type serviceAnswer struct {
	Path  string `json:"path"`  // the file's path
	Text  string `json:"text"`  // the file's content
	Start string `json:"start"` // the command that starts the service
	Stop  string `json:"stop"`  // the command that stops the service
}

func serviceCommand(p *program) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "service",
		Short: "Print a systemd user unit (launchd agent on macOS)",
		Long: "Print a systemd user unit, or on macOS a launchd agent. It starts the server at login and restarts it after a failure.\n" +
			"It contains the path of the store, the current PATH, and the current settings from flags and the environment.\n" +
			"Standard error shows the commands that save the file and start the server. The command itself changes nothing.",
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			s, err := p.service()
			switch {
			case err != nil:
				return err
			case asJSON:
				return p.printJSON(serviceAnswer(*s))
			}
			fmt.Fprint(p.std.out, s.Text)
			fmt.Fprintf(p.std.err, "mkdir -p '%s' && mailtree service >'%s'\n%s\n", filepath.Dir(s.Path), s.Path, s.Start)
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print the result as JSON")
	return c
}

// service returns the service that runs the server with the current settings.
func (p *program) service() (*service.Service, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return nil, err
	}
	exe, err := guard.Program()
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
		env = append(env, "PATH="+path) // needed to find tmux, and the programs in hooks and settings
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
