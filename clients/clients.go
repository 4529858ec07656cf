// Package clients sets up the programs that agents run in. It adds two things to a client's own configuration, and can
// remove them again: the entry through which the client reaches mailtree, and the hooks that report the client's
// sessions to mailtree.
//
//	table.go     the clients: their files, and the form of their entries
//	handlers.go  their hooks: the events, and the form of handlers
//	clients.go   what a setup changes: a Change for each file, computed before any file is written
//	hooks.go     the part of the setup for hooks
//	policy.go    settings that prevent a client from running hooks
//	allow.go     the permission to call tools without asking the user
//	file.go      reading and replacing one file that belongs to another program
//	plugin/      plugins that contain what a setup would write; the hook module for opencode, which runs no commands
//	edit/        changing the bytes of an entry or a handler, and nothing else
//
// An entry is ours if it has exactly our command (mailtree stdio) or address (/mcp on this machine). A hook is ours if
// it has exactly our command (mailtree hook CLIENT). If an entry has our name but is not ours, the setup returns an
// error. An entry that runs mailtree stdio with other flags is an exception: the setup keeps it. The package never
// writes a token or any other secret.
package clients

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"mailtree/clients/edit"
	"mailtree/maildir/lazy"
)

// These are the names of the entries for the mail toolset and the aimx toolset. They are the same in every client.
const (
	entryName = "mail"
	emailName = "email"
)

// Email is the aimx toolset. Its entry is separate from the mail toolset's entry.
const Email = "aimx"

// program is the command of an entry. It is a bare name that is looked up on the PATH, because an absolute path would
// be valid on only one machine.
const program = "mailtree"

// Scope selects the configuration to change.
type Scope string

// These are the scopes: the user's own configuration, which applies everywhere, and the configuration of one code base,
// which applies to everyone who works on it.
const (
	User    Scope = "user"
	Project Scope = "project"
)

// Site describes where clients are set up.
type Site struct {
	Home string                   // absolute path of the user's home folder
	Dir  string                   // absolute path of the code base, without symbolic links
	Git  string                   // the Git folder of Dir's working tree, such as .git; "" if there is none
	Env  func(name string) string // looks up an environment variable; returns "" if the variable is not set
	Mac  bool                     // whether the machine runs macOS, where some programs keep their files in different folders
}

// Server describes how a client reaches mailtree: at a URL, or by running a command.
type Server struct {
	URL     string   // http://…/mcp; "" if the client runs the command instead
	Args    []string // mailtree's arguments: stdio, and possibly others
	Headers string   // the command that prints the headers for requests to URL; "" if no headers are needed
}

// String returns the URL or the command.
func (s Server) String() string {
	if s.URL != "" {
		return s.URL
	}
	return program + " " + strings.Join(s.Args, " ")
}

// byHand reports whether the entry has flags that setup does not write, such as --as. A user must have added such
// flags.
func (s Setup) byHand(leads *Server) bool {
	if leads.URL != "" {
		return false
	}
	flags := leads.Args[1:]
	if own := len(flags) > 1 && flags[0] == "--toolset" && flags[1] == s.Toolset; own {
		flags = flags[2:]
	}
	return len(flags) > 0 && (len(flags) != 2 || flags[0] != "--store")
}

// name returns the entry's name.
func (s Setup) name() string {
	if s.Toolset == Email {
		return emailName
	}
	return entryName
}

// These are the errors of a setup. Each is wrapped in an error that names the file or the client.
var (
	ErrNoFile  = errors.New("no such file")
	ErrNotOurs = errors.New("the file has an entry for another server")

	// ErrNotOurFile is like ErrNotOurs, for a file that setup writes as a whole.
	ErrNotOurFile = errors.New("the file belongs to another program")
)

// missingFile is an error that matches ErrNoFile and has its own text.
type missingFile string

func (e missingFile) Error() string { return string(e) }

// Is reports whether target is ErrNoFile.
func (e missingFile) Is(target error) bool { return target == ErrNoFile }

// Setup is one client and the part of its configuration to change.
type Setup struct {
	Site
	Client Client
	Scope  Scope
	Store  string // absolute path of the store that hooks use; "" means the default store

	// Missing is a message for the user. It is set only if the setup's files belong to a plugin. The plugin's hooks run
	// `mailtree hook` with --plugin. If mailtree is not on the PATH, they print Missing when a session starts, and do
	// nothing on other events.
	Missing string

	// Toolset is "" for the mail toolset, or Email for the aimx toolset. The aimx toolset has neither hooks nor
	// instructions for agents. Setting up one toolset does not change the other.
	Toolset string
}

// Wanted selects what to set up.
type Wanted struct {
	Server       Server
	NoHooks      bool // write the entry without the hooks
	Instructions bool // also write instructions for the client's agents
	Allow        bool // let the client call mailtree's tools without a prompt; see Client.CanAllow
}

// Add returns the changes that set up the client, but does not apply them. It omits files that need no change. If it
// fails, it returns ErrNoFile, ErrNotOurs, ErrNotOurFile, ErrReadOnly, *SyntaxError, edit.ErrByHand, or a read error.
func (s Setup) Add(w Wanted) ([]*Change, error) {
	parts, err := s.parts(w)
	if err != nil {
		return nil, err
	}
	return s.changes(parts, part.putting)
}

func (s Setup) parts(w Wanted) ([]part, error) {
	file, err := s.config()
	if err != nil {
		return nil, err
	}
	parts := []part{s.entry(file, w.Server, w.Allow)}
	if w.Allow && s.Client.permission.item != "" {
		allow, err := s.allowPart()
		if err != nil {
			return nil, err
		}
		parts = append(parts, allow)
	}
	if hooks, err := s.hooksPart(); err == nil && !w.NoHooks && s.Toolset == "" {
		parts = append(parts, hooks)
	}
	if w.Instructions {
		if file, err = s.notesFile(); err != nil {
			return nil, err
		}
		parts = append(parts, notes(file))
	}
	return parts, nil
}

// Remove returns the changes that remove everything that Add adds. It returns the same errors as Add.
func (s Setup) Remove() ([]*Change, error) {
	file, leads, err := s.Entry()
	if err != nil && !errors.Is(err, ErrNotOurs) {
		return nil, err
	}
	allowed, err := s.allowed()
	if err != nil {
		return nil, err
	}
	var parts []part
	if leads != nil {
		parts = append(parts, s.entry(file, *leads, allowed))
	}
	if allowed && s.Client.permission.item != "" {
		allow, _ := s.allowPart() // cannot fail: the client has a hooks file, which contains the permission
		parts = append(parts, allow)
	}
	hooks, err := s.Hooks()
	if err != nil {
		return nil, err
	}
	if hooks.Some {
		p, _ := s.hooksPart() // cannot fail: the client has a hooks file, which contains hooks
		parts = append(parts, p)
	}
	if file, err = s.notesFile(); err == nil && s.Toolset == "" {
		parts = append(parts, notes(file))
	}
	return s.changes(parts, part.cutting)
}

// changes returns the change to each file that needs one. It stops at the first error.
func (s Setup) changes(parts []part, of func(part) (*Change, error)) (all []*Change, err error) {
	for _, p := range byFile(parts) {
		p.client, p.base, p.top, p.git, p.kept = s.Client, s.base(), s.top(), s.Git, s.kept
		c, err := of(p)
		if err != nil {
			return nil, err
		}
		if c == nil {
			continue
		}
		if c.file.is && c.file.mode&0o200 == 0 {
			return nil, s.Client.fileError(p.file, ErrReadOnly)
		}
		if !c.file.is {
			c.file.mode = 0o600
		}
		if !c.file.is && s.Scope == Project {
			c.file.mode = 0o644 // readable by everyone who can read the code
		}
		all = append(all, c)
	}
	return all, nil
}

// Entry returns the path of the file for the client's entry, and the server that the entry points to. If there is no
// entry, the server is nil. Entry returns the same errors as Add.
func (s Setup) Entry() (file string, leads *Server, err error) {
	if file, err = s.config(); err != nil {
		return "", nil, err
	}
	f, err := open(s.base(), file)
	if err != nil {
		return file, nil, err
	}
	got, err := s.Client.format.Get(f.data, s.path())
	if err != nil || got == nil {
		return file, nil, s.Client.fileError(file, err)
	}
	if leads = s.Client.server(got); leads == nil {
		return file, nil, s.Client.fileError(file, s.notOurs())
	}
	return file, leads, nil
}

// File is the name and the content of a client's file.
type File struct {
	Name string
	Data []byte
}

// Alone returns files that contain only what Add would add, for users who edit their files themselves. It returns the
// same errors as Add.
func (s Setup) Alone(w Wanted) (files []File, err error) {
	parts, err := s.parts(w)
	if err != nil {
		return nil, err
	}
	for _, p := range byFile(parts) {
		data, err := p.put(nil)
		if err != nil {
			return nil, err
		}
		files = append(files, File{p.file, data})
	}
	return files, nil
}

// byFile merges the parts that belong to the same file.
func byFile(parts []part) (files []part) {
	for _, p := range parts {
		if i := slices.IndexFunc(files, func(q part) bool { return q.file == p.file }); i >= 0 {
			files[i] = files[i].and(p)
		} else {
			files = append(files, p)
		}
	}
	return files
}

// part is one piece of content that a setup adds to a file, with functions that add it, remove it, and check for it.
type part struct {
	file  string
	put   func(data []byte) ([]byte, error)
	cut   func(data []byte) ([]byte, error)
	ours  func(data []byte) bool
	empty func(data []byte) bool // reports whether data contains nothing, so that its file can be removed

	client         Client
	base, top, git string                   // the results of Setup.base and Setup.top, and Site.Git
	kept           func(file string) string // the method Setup.kept
}

// and returns a single part that combines two parts for the same file.
func (p part) and(q part) part {
	return part{
		file: p.file,
		put: func(data []byte) ([]byte, error) {
			data, err := p.put(data)
			if err != nil {
				return nil, err
			}
			return q.put(data)
		},
		cut: func(data []byte) ([]byte, error) {
			data, err := p.cut(data)
			if err != nil {
				return nil, err
			}
			return q.cut(data)
		},
		ours:  func(data []byte) bool { return p.ours(data) || q.ours(data) },
		empty: p.empty,
	}
}

// notOurs returns an error that wraps ErrNotOurs and names the entry.
func (s Setup) notOurs() error { return fmt.Errorf("%w: %q", ErrNotOurs, s.name()) }

func (s Setup) path() []string { return append(slices.Clone(s.Client.parents), s.name()) }

func (s Setup) wanted(server Server) edit.Entry {
	e := s.Client.entry(server)
	e.Path = s.path()
	return e
}

// entry returns the part for the client's entry. The part neither replaces nor removes an entry that is not ours. It
// also keeps an entry that runs mailtree with a user's own flags.
func (s Setup) entry(file string, server Server, allow bool) part {
	form := s.Client.format
	current := func(data []byte) (any, *Server, error) {
		got, err := form.Get(data, s.path())
		return got, s.Client.server(got), err
	}
	return part{
		file: file,
		put: func(data []byte) ([]byte, error) {
			got, leads, err := current(data)
			if err != nil {
				return nil, err
			}
			if got != nil && leads == nil {
				return nil, s.notOurs()
			}
			if leads != nil && s.byHand(leads) {
				return data, nil
			}
			want := s.wanted(server)
			if key := s.Client.permission.key; allow && key.Name != "" {
				want.Keys = append(want.Keys, key)
			}
			if leads != nil && leads.Headers != "" && server.Headers == "" {
				want.Drop = append(want.Drop, s.Client.headersKey)
			}
			return form.Put(data, want)
		},
		cut: func(data []byte) ([]byte, error) {
			_, leads, err := current(data)
			if err != nil || leads == nil || s.byHand(leads) {
				return data, err
			}
			return form.Cut(data, s.path())
		},
		ours: func(data []byte) bool { // check both toolsets, because they share one backup
			for _, toolset := range []string{"", Email} {
				of := s
				of.Toolset = toolset
				got, err := form.Get(data, of.path())
				if leads := of.Client.server(got); err == nil && leads != nil && !of.byHand(leads) {
					return true
				}
			}
			return false
		},
		empty: form.Empty,
	}
}

func (p part) putting() (*Change, error) { return p.change(p.put) }

// cutting returns the change that removes the part. If possible, the change restores the file as it was before the
// setup.
func (p part) cutting() (*Change, error) {
	c, err := p.change(p.cut)
	if c != nil {
		c.restore(p)
	}
	return c, err
}

// change returns the change to a part's file, or nil if the file needs none.
func (p part) change(do func(data []byte) ([]byte, error)) (*Change, error) {
	f, err := open(p.base, p.file)
	if err != nil {
		return nil, err
	}
	after, err := do(f.data)
	if err != nil || bytes.Equal(after, f.data) {
		return nil, p.client.fileError(p.file, err)
	}
	kept := f.path + keptSuffix
	if apart := p.kept(f.path); apart != "" && !exists(kept) {
		kept = apart
	}
	return &Change{
		After:  after,
		file:   f,
		top:    p.top,
		git:    p.git,
		kept:   kept,
		backup: f.is && !p.ours(f.data),
	}, nil
}

// config returns the file for the client's entry.
func (s Setup) config() (string, error) {
	if s.Scope == User {
		return s.Client.user.find(s.Site), nil
	}
	if s.Client.project == "" {
		return "", missingFile(s.Client.Title + " has no project-level MCP configuration file")
	}
	return filepath.Join(s.Dir, s.Client.project), nil
}

func (s Setup) notesFile() (string, error) {
	if s.Scope == Project {
		return filepath.Join(s.Dir, s.Client.projectNotes), nil
	}
	if len(s.Client.userNotes.files) == 0 {
		return "", missingFile(s.Client.Title + " has no user-level instructions file")
	}
	return s.Client.userNotes.find(s.Site), nil
}

// TakesHeaders reports whether the client can run a command to get its request headers, so that no file needs to
// contain a secret.
func (c Client) TakesHeaders() bool { return c.headersKey != "" }

// HeadersCommand returns the command that prints the request headers for a store that has a token. If store is "", the
// command uses the default store.
func HeadersCommand(store string) string {
	command := []string{program, "token", "--json"}
	if store != "" {
		command = append(command, "--store", store)
	}
	return shell(command)
}

// ownHeaders matches the result of HeadersCommand.
var ownHeaders = lazy.Regexp(`^` + program + ` token --json( --store ` + anyWord + `)?$`)

// server returns the server that an entry points to, or nil if the entry is not ours.
func (c Client) server(entry any) *Server {
	m, _ := entry.(map[string]any)
	if text, _ := m[c.urlKey].(string); text != "" {
		s := &Server{URL: text}
		if helper, _ := m[c.headersKey].(string); ownHeaders().MatchString(helper) {
			s.Headers = helper
		}
		u, err := url.Parse(text)
		here := err == nil && (u.Hostname() == "localhost" || net.ParseIP(u.Hostname()).IsLoopback() || s.Headers != "")
		if here && u.Scheme == "http" && u.Path == "/mcp" {
			return s
		}
		return nil
	}
	line, _ := m["args"].([]any)
	command, _ := m["command"].(string)
	if c.argv {
		line, _ = m["command"].([]any)
		if len(line) == 0 {
			return nil
		}
		command, _ = line[0].(string)
		line = line[1:]
	}
	var s Server
	for _, a := range line {
		text, _ := a.(string)
		s.Args = append(s.Args, text)
	}
	if command != program || len(s.Args) == 0 || s.Args[0] != "stdio" {
		return nil
	}
	return &s
}

// entry returns the content of a client's entry.
func (c Client) entry(s Server) edit.Entry {
	e := edit.Entry{New: c.extra}
	kind := c.stdioType
	if s.URL != "" {
		kind = c.httpType
	}
	if kind != "" {
		e.Keys = append(e.Keys, edit.Key{Name: "type", Value: kind})
	}
	switch {
	case s.URL != "":
		e.Keys = append(e.Keys, edit.Key{Name: c.urlKey, Value: s.URL})
		if s.Headers != "" {
			e.Keys = append(e.Keys, edit.Key{Name: c.headersKey, Value: s.Headers})
		}
		e.Drop = []string{"command", "args"}
	case c.argv:
		e.Keys = append(e.Keys, edit.Key{Name: "command", Value: append([]string{program}, s.Args...)})
		e.Drop = []string{c.urlKey}
	default:
		e.Keys = append(e.Keys, edit.Key{Name: "command", Value: program}, edit.Key{Name: "args", Value: s.Args})
		e.Drop = []string{c.urlKey}
	}
	if kind == "" && c.stdioType+c.httpType != "" {
		e.Drop = append(e.Drop, "type")
	}
	return e
}

// Found reports whether the client seems to have been used on this machine. It checks whether the client's file or its
// folder exists.
func (s Setup) Found() bool {
	file := s.Client.user.find(s.Site)
	return exists(file) || filepath.Dir(file) != s.Home && exists(filepath.Dir(file))
}

func exists(file string) bool {
	_, err := os.Lstat(file)
	return err == nil
}
