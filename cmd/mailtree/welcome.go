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
)

//go:embed welcome.txt
var welcomeText string

// welcome prints where the server listens, where the store is and how a client connects.
func welcome(ctx context.Context, p *program, a *app, url string) {
	stats := a.summary(ctx)
	t := template.Must(template.New("welcome").Parse(welcomeText))
	var b strings.Builder
	t.Execute(&b, map[string]any{
		"Version": version(), "URL": url, "Store": p.cfg.Store,
		"Stats": stats, "Socket": p.cfg.Socket, "Token": p.cfg.RequireToken, "TokenFile": filepath.Join(p.cfg.Store, "token"),
	})
	fmt.Fprint(p.std.out, b.String())
}

// serverURL returns the URL at which others reach the server.
func serverURL(cfg *config, port int) string {
	host := cfg.Host
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		if name, err := os.Hostname(); err == nil {
			host = name
		}
	}
	return "http://" + net.JoinHostPort(host, strconv.Itoa(port))
}
