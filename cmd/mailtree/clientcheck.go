package main

import (
	"cmp"
	"context"
	"errors"
	"os"
	"os/exec"
	"slices"
	"time"

	"mailtree/clients"
	"mailtree/maildir/format"
	"mailtree/maildir/seat"
)

// checkClients reports problems that keep clients from using mailtree, in the same format as doctor. If the command
// line does not name a client, checkClients checks all clients that have been used on this machine.
func (p *program) checkClients(ctx context.Context, o setupOptions, at clients.Site, args []string) error {
	d := &doctor{p: p, json: o.json}
	set := false
	for _, c := range clients.List() {
		if len(args) == 1 && c.Name != args[0] {
			continue
		}
		k := clientCheck{d: d, client: c, toolset: o.toolset, named: len(args) == 1}
		k.examine(ctx, at, o.scopes())
		set = set || k.set
		if k.named && !k.set && d.bad == 0 {
			d.say("%s: not set up. To set it up: `mailtree setup %s`", c.Title, c.Name)
		}
	}
	if !set && d.bad == 0 {
		d.say("no client is set up. To set one up: `mailtree setup CLIENT`. To list the clients: `mailtree setup --list`")
	}
	if missing := p.projectMissing(at); missing != "" && set {
		d.note("%s", missing)
	}
	return d.tellWrong()
}

// clients reports whether the clients that have been used on this machine can reach the server.
func (d *doctor) clients(ctx context.Context) {
	at, err := d.p.clientSite()
	if err != nil {
		d.note("clients: %v", err)
		return
	}
	for _, c := range clients.List() {
		k := clientCheck{d: d, client: c}
		k.examine(ctx, at, []clients.Scope{clients.User, clients.Project})
	}
}

// clientCheck checks one client.
type clientCheck struct {
	d      *doctor
	client clients.Client

	toolset string // has the same meaning as in clients.Setup
	named   bool   // the command line names the client

	set     bool // the client has a mailtree entry or mailtree's hooks
	http    bool // a mailtree entry contains a URL
	command bool // an entry or a hook makes the client run mailtree
}

// examine checks the client's entries, its hooks, and anything that keeps the hooks from running.
func (k *clientCheck) examine(ctx context.Context, at clients.Site, scopes []clients.Scope) {
	var hooks []clients.Hooks
	var s clients.Setup
	var entryFile, hooksFile string // files of the previous scope; empty for the first scope
	for _, scope := range scopes {
		s = clients.Setup{Site: at, Client: k.client, Scope: scope, Store: k.d.p.namedStore(), Toolset: k.toolset}
		if file, _, _ := s.Entry(); !sameFile(file, entryFile) {
			k.entry(ctx, s)
			entryFile = file
		}
		h, err := s.Hooks()
		if sameFile(h.File, hooksFile) {
			continue
		}
		hooksFile = h.File
		switch {
		case err != nil && (k.set || k.named):
			k.d.say("%s: %v", k.client.Title, whatToDo(err, s))
		case err == nil && h.Want > 0:
			hooks = append(hooks, h)
		}
	}
	k.hooks(hooks)
	k.plugin()
	if !k.set && !k.named && s.Found() {
		k.d.note("%s: not set up. To set it up: `mailtree setup %s`", k.client.Title, k.client.Name)
	}
	if k.command {
		k.onPath()
	}
	if slices.ContainsFunc(hooks, func(h clients.Hooks) bool { return h.Have > 0 }) {
		for _, setting := range s.Off() {
			k.d.say("%s: the hooks are disabled. To enable them, change %s", k.client.Title, setting)
		}
		k.heard(hooks)
		if asks, err := s.AsksFor(); err == nil && asks {
			k.d.note("%s", asksForTools(k.client, k.http))
		}
	}
}

// entry checks the mailtree entry in the client's configuration file. It reports nothing if there is no entry.
func (k *clientCheck) entry(ctx context.Context, s clients.Setup) {
	file, leads, err := s.Entry()
	switch {
	case errors.Is(err, clients.ErrNoFile), errors.Is(err, clients.ErrNotOurs) && !k.named:
		return
	case err != nil:
		k.d.say("%s: %v", s.Client.Title, whatToDo(err, s))
		return
	case leads == nil:
		return
	}
	k.set = true
	k.d.ok("%s: %s contains the mailtree entry (%s)", s.Client.Title, file, leads.String())
	for _, setting := range s.EntryOff() {
		k.d.say("%s: the entry is disabled. To enable it, change %s", s.Client.Title, setting)
	}
	if leads.URL == "" {
		k.command = true
		return
	}
	k.http = true
	err = k.d.p.serves(ctx, *leads)
	again := setupAgain(k.client, true, s.Scope)
	if err == nil {
		k.d.ok("the server is responding at %s", leads.URL)
	} else if at := k.d.p.servedURL(ctx); at != "" {
		k.d.say("%s: %v. Your server is running at %s. To update the entry: `%s`", leads.URL, err, at, again)
	} else {
		k.d.say("%s: %v. Start `mailtree serve`, or run `%s` again", leads.URL, err, again)
	}
}

// hooks reports whether the user's files and the project's files contain the hooks.
func (k *clientCheck) hooks(files []clients.Hooks) {
	some := false
	for _, h := range files {
		again := setupAgain(k.client, k.http, h.Scope)
		switch {
		case h.Have == h.Want:
			k.d.ok("%s: %s contains the hooks", k.client.Title, h.File)
		case h.Old:
			k.d.say("%s: the hook in %s that waits for mail times out after eight hours. After that, mail cannot wake the "+
				"session. To fix this: `%s`", k.client.Title, h.File, again)
		case h.Some:
			k.d.say("%s: %s contains %d of %d hooks for this store. Run `%s` again", k.client.Title, h.File, h.Have, h.Want, again)
		default:
			continue
		}
		some = true
	}
	if k.set && !some && len(files) > 0 {
		k.d.note("%s: %s contains no hooks, so sessions are not notified of mail. To add the hooks: `%s`", k.client.Title, files[0].File,
			setupAgain(k.client, k.http, files[0].Scope))
	}
	k.set, k.command = k.set || some, k.command || some
}

// plugin reports that a hook has run although setup did not write any.
func (k *clientCheck) plugin() {
	if k.set || k.toolset != "" {
		return
	}
	if last := k.lastHeard(); !last.IsZero() {
		k.set, k.command = true, true
		k.d.ok("%s: a hook last ran %s. The configuration files contain no hooks, so that hook belongs to a plugin or has been removed",
			k.client.Title, ago(last))
	}
}

func (k *clientCheck) onPath() {
	if path, err := exec.LookPath("mailtree"); err != nil {
		k.d.say("mailtree is not on the PATH, so %s cannot find it. Add its folder to the PATH", k.client.Title)
	} else {
		k.d.ok("%s finds %s", k.client.Title, path)
	}
}

// heard reports when one of the client's hooks last ran in a folder that has a project. If no hook has run since setup,
// heard tells the user to allow the hooks, because clients run hooks only with the user's permission.
func (k *clientCheck) heard(files []clients.Hooks) {
	var set time.Time
	last := k.lastHeard()
	for _, h := range files {
		if fi, err := os.Stat(h.File); err == nil && h.Have > 0 && fi.ModTime().After(set) {
			set = fi.ModTime()
		}
	}
	if last.Before(set) {
		todo := cmp.Or(files[0].Trust, "start it once in a project's folder, and choose Trust if it asks")
		k.d.note("no %s hook has run since setup: %s", k.client.Title, todo)
		return
	}
	k.d.ok("%s: a hook last ran %s", k.client.Title, ago(last))
}

// lastHeard returns the time at which one of the client's hooks last ran in a folder that has a project, or the zero
// time if none has run.
func (k *clientCheck) lastHeard() (last time.Time) {
	v, err := openTrees(k.d.p.cfg)
	if err != nil { // another check reports this error
		return last
	}
	defer v.close()
	for _, t := range v.trees {
		if at := seat.LastHeard(t, k.client.Name); at.After(last) {
			last = at
		}
	}
	return last
}

// ago formats the time since t for display.
func ago(t time.Time) string {
	if d := time.Since(t); d >= time.Minute {
		return format.TimeLeft(d) + " ago"
	}
	return "just now"
}
