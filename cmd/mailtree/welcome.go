package main

import (
	"context"
	_ "embed"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"text/template"

	"mailtree/maildir/storedir"
)

//go:embed welcome.txt
var welcomeText string

// welcome prints where the server listens, where the store is, and how to connect a client.
func welcome(ctx context.Context, p *program, a *app, w *web) {
	stats := a.summary(ctx)
	t := template.Must(template.New("welcome").Parse(welcomeText))
	var b strings.Builder
	t.Execute(&b, map[string]any{
		"Version": version(), "URL": w.address(), "Open": w.open, "Store": p.cfg.Store,
		"Stats": stats, "Socket": p.cfg.Socket, "Token": p.cfg.RequireToken, "TokenFile": filepath.Join(p.cfg.Store, "token"),
	})
	fmt.Fprint(p.std.out, b.String())
}

// toBegin lists commands for a user who does not have a store yet.
const toBegin = `To start:
  mailtree serve          run the server; otherwise commands start one in the background
  mailtree setup claude   connect a client; mailtree setup --list lists all clients
  mailtree new project    create a project for a code base (run it there)`

// begin returns nil if the store has projects. Otherwise, it returns the error for a command that needs a project. The
// error has exit status exitNothing.
func (p *program) begin() error {
	if !storedir.IsStore(p.cfg.Store) {
		return &exitError{exitNothing, noStore(p.cfg.Store)}
	}
	if slugs, err := storedir.Slugs(p.cfg.Store); err != nil || len(slugs) > 0 {
		return nil
	}
	return &exitError{exitNothing, fmt.Errorf("the store %s has no projects yet. %s", p.cfg.Store, toBegin)}
}

func noStore(path string) error {
	return fmt.Errorf("no store at %s yet. %s", path, toBegin)
}

// serverURL returns the URL at which clients reach the server. If HOST is unspecified, the URL contains this machine's
// name.
func serverURL(cfg *config, port int) string {
	host := cfg.Host
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		if name, err := os.Hostname(); err == nil {
			host = name
		}
	}
	return "http://" + net.JoinHostPort(host, strconv.Itoa(port))
}
