package clients

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"mailtree/clients/edit"
	"mailtree/maildir/lazy"
)

// hooks describes how a client runs `mailtree hook CLIENT` on its events. The zero value means that the client does not
// run hooks.
type hooks struct {
	user    place       // the user's hooks file
	project string      // a project's file, relative to the code base; "" if there is none
	format  edit.JSON   // the format of both files
	path    []string    // the path of the object that contains the events
	flat    bool        // handlers are directly in the events' lists, not in groups
	root    []edit.Key  // other keys at the root of the file
	handler handlerForm // returns a handler in the client's form
	events  []hookEvent
	missing func(text string) any // returns the answer that shows the text when a session starts
	fresh   string                // the matcher for the start of a new session; "" if the client has none that was tested
	guarded bool                  // the handlers' commands never fail, as in all plugins; see guard
	plugin  bool                  // the hooks file is a module that contains nothing but our code
	top     bool                  // in a subfolder, the client also reads the project file at the top of the code base
	trust   string                // what the user must do before the hooks run; "" if nothing needs to be done
	off     func(Setup) []setting
}

// hookEvent is an event on which the client runs our command.
type hookEvent struct {
	name    string
	matcher string // selects tools or starts of sessions, in the client's syntax; "" means all of them
	seconds int    // the command's timeout in seconds
	wait    bool   // the command waits for mail in the background, and wakes the session
	missing bool   // the command only reports that mailtree is missing; only in plugins
}

// handlerForm returns a handler in its client's form.
type handlerForm func(e hookEvent, l line) []edit.Key

// line is a handler's command line, for a POSIX shell and for PowerShell.
type line struct{ posix, powershell string }

// errNoHooks means that a client has no hooks file, or no hooks file for projects.
var errNoHooks error = missingFile("no hooks file")

//go:embed plugin/opencode.js
var opencodePlugin string

// These are the lines of the module that Setup.plugin replaces. They define the command, the entry, and the text that
// the model gets if mailtree is missing.
const (
	pluginCommand = `const command = ["mailtree", "hook", "opencode"]`
	pluginEntry   = `const entry = null`
	pluginMissing = `const missing = ""`
)

// command returns the command that the client runs on an event. Its bytes must never change, because some clients ask
// the user to trust a hook again whenever its command changes.
func (s Setup) command(e hookEvent) []string {
	command := []string{program, "hook", s.Client.Name}
	if e.wait {
		command = append(command, "--wait")
	}
	if s.Missing != "" {
		command = append(command, "--plugin")
	}
	if s.Store != "" {
		command = append(command, "--store", s.Store)
	}
	return command
}

// line returns the command line of the handler for an event.
func (s Setup) line(e hookEvent) line {
	command := s.command(e)
	switch h := s.Client.hooks; {
	case e.missing:
		return line{posix: found + "|| echo " + shell([]string{s.sayMissing()})}
	case s.Missing != "" && e.name == sessionStart && !e.wait && h.missing != nil && h.fresh == "":
		return guardLoudly(command, s.sayMissing())
	case h.guarded, s.Missing != "":
		return guard(command)
	}
	return line{posix: shell(command)}
}

// sessionStart is the event on which a plugin reports that mailtree is missing. Every client whose plugins run commands
// uses this name.
const sessionStart = "SessionStart"

// sayMissing returns the answer that reports that mailtree is missing, in the client's form.
func (s Setup) sayMissing() string {
	answer, _ := json.Marshal(s.Client.hooks.missing(s.Missing)) // cannot fail: the answer contains only strings
	return string(answer)
}

// forUser returns an answer that makes the client show the text to the user.
func forUser(text string) any {
	return map[string]string{"systemMessage": text}
}

// forModel returns an answer that passes the text to the model. Copilot CLI shows answers only to the model.
func forModel(text string) any {
	return map[string]string{"additionalContext": text}
}

// forQwen is like forModel, but in the form that Qwen Code expects.
func forQwen(text string) any {
	return map[string]any{"hookSpecificOutput": map[string]string{"hookEventName": sessionStart, "additionalContext": text}}
}

// hooksFile returns the file for the client's hooks.
func (s Setup) hooksFile() (string, error) {
	h := s.Client.hooks
	switch {
	case len(h.user.files) == 0, s.Scope == Project && h.project == "":
		return "", fmt.Errorf("%s has %w", s.Client.Title, errNoHooks)
	case s.Scope == Project:
		return filepath.Join(s.Dir, h.project), nil
	}
	return h.user.find(s.Site), nil
}

// Hooks describes the hooks in a client's file.
type Hooks struct {
	File  string
	Scope Scope // whether the file is the user's or the project's
	Have  int
	Want  int    // number of hooks that the setup would write
	Some  bool   // the file contains hooks of ours, even if they are outdated
	Old   bool   // a hook stops waiting for mail after eight hours, as in earlier setups
	Trust string // what the user must do before the hooks run; "" if nothing needs to be done
}

// Hooks describes the hooks in the client's file. It returns the zero value if the client does not run hooks, or if the
// Toolset is not "". It returns the same errors as Add.
func (s Setup) Hooks() (Hooks, error) {
	file, err := s.hooksFile()
	if err != nil || s.Toolset != "" {
		return Hooks{}, nil
	}
	h := Hooks{File: file, Scope: s.Scope, Trust: s.Client.hooks.trust}
	f, err := open(s.base(), file)
	if err != nil {
		return h, err
	}
	if s.Client.hooks.plugin {
		h.Want, h.Some = 1, s.pluginPart(file).ours(f.data)
		if bytes.Equal(f.data, s.plugin()) {
			h.Have = 1
		}
		return h, nil
	}
	all := s.handlers()
	h.Want = len(all.Want)
	names, err := s.Client.hooks.format.GetHandlers(f.data, all)
	h.Have, h.Some = names.Wanted, len(names.All) > 0
	h.Old = slices.ContainsFunc(names.All, func(name string) bool { return strings.HasSuffix(name, oldWait) })
	return h, s.Client.fileError(file, err)
}

// ReadsTop reports whether a client that is started in a subfolder of a code base runs the hooks in the project's file
// at the top of the code base.
func (c Client) ReadsTop() bool { return c.hooks.top }

// HooksAlone returns a hooks file that contains only what Add would add. If the client has no hooks file, it returns
// errNoHooks.
func (s Setup) HooksAlone() ([]byte, error) {
	p, err := s.hooksPart()
	if err != nil {
		return nil, err
	}
	return p.put(nil)
}

// handlers returns the handlers that the hooks file must contain.
func (s Setup) handlers() edit.Handlers {
	h := s.Client.hooks
	all := edit.Handlers{Path: h.path, Known: s.Client.ownHandler, Root: h.root}
	events := h.events
	if s.Missing != "" && h.fresh != "" {
		events = append([]hookEvent{{name: sessionStart, matcher: h.fresh, seconds: 5, missing: true}}, events...)
	}
	for _, e := range events {
		var group []edit.Key
		if e.matcher != "" {
			group = []edit.Key{{Name: "matcher", Value: e.matcher}}
		}
		keys := h.handler(e, s.line(e))
		if h.flat {
			keys = append(keys, group...)
		}
		all.Want = append(all.Want, edit.Handler{List: e.name, Group: group, Flat: h.flat, Keys: keys})
	}
	return all
}

// ownHandler returns a handler's command if Setup.command created the command, for any store. It returns "" for any
// other handler. If an earlier setup wrote the handler in another form, ownHandler appends a note to the command, so
// that setup replaces the handler and a check reports it as missing.
func (c Client) ownHandler(handler map[string]any) string {
	line, _ := handler["command"].(string)
	if text, ok := handler["bash"].(string); ok {
		line = text
	}
	if args, ok := handler["args"].([]any); ok {
		words := []string{line}
		for _, a := range args {
			text, _ := a.(string)
			words = append(words, text)
		}
		line = shell(words)
	}
	command, guarded := unguard(line)
	ours := ownCommand().MatchString(command) && strings.Fields(command)[2] == c.Name
	timeout, _ := handler["timeout"].(json.Number)
	switch {
	case !ours || guarded && !c.hooks.guarded:
		return ""
	case timeout == claudeOldWait && waits(command):
		return command + " " + oldWait
	case c.hooks.guarded && !guarded:
		return command + " (unguarded)"
	}
	return command
}

// oldWait is appended to the command of a handler that stops waiting for mail after eight hours.
const oldWait = "(28,800 s)"

// waits reports whether one of our commands waits for mail.
func waits(command string) bool { return strings.Contains(command, " --wait") }

// found is the beginning of shell commands that succeed without doing anything if mailtree is not on the PATH.
const found = "command -v " + program + " >/dev/null "

// guard returns a POSIX shell command that succeeds even if mailtree fails or is missing, because a client may treat a
// failed hook as a refusal. For example, Copilot CLI, which also runs a code base's hooks for Claude Code, denies every
// tool if such a hook fails. Only a waiting command returns its own exit status, because that status wakes the session.
func guard(command []string) line {
	text := shell(command)
	if waits(text) {
		return line{posix: found + "|| exit 0; exec " + text}
	}
	return line{
		posix:      found + "&& " + text + " || exit 0",
		powershell: "if (Get-Command " + program + " -ErrorAction SilentlyContinue) { " + text + " }; exit 0",
	}
}

// guardLoudly is like guard, but the command prints a line of text if mailtree is not on the PATH.
func guardLoudly(command []string, missing string) line {
	text := shell(command)
	return line{
		posix:      found + "|| { echo " + shell([]string{missing}) + "; exit 0; }; " + text + " || exit 0",
		powershell: "if (Get-Command " + program + " -ErrorAction SilentlyContinue) { " + text + " } else { '" + missing + "' }; exit 0",
	}
}

// unguard returns the command inside a line that guard created. It returns any other line unchanged, and false.
func unguard(line string) (command string, guarded bool) {
	if rest, ok := strings.CutPrefix(line, found+"|| exit 0; exec "); ok && waits(rest) {
		return rest, true
	}
	rest, ok := strings.CutPrefix(line, found+"&& ")
	if rest, whole := strings.CutSuffix(rest, " || exit 0"); ok && whole && !waits(rest) {
		return rest, true
	}
	return line, false
}

// ownCommand matches the commands that Setup.command returns, as formatted by shell.
var ownCommand = lazy.Regexp(`^` + program + ` hook [a-z]+( --wait)?( --plugin)?( --store ` + anyWord + `)?$`)

// anyWord matches one word as formatted by shell.
const anyWord = `([\w./@+-]+|'([^']|'\\'')*')`

// plainWord matches a word that needs no quotes in any shell.
var plainWord = lazy.Regexp(`^[\w./@+-]+$`)

// shell formats a command in shell syntax.
func shell(words []string) string {
	all := make([]string, len(words))
	for i, w := range words {
		if all[i] = w; !plainWord().MatchString(w) {
			all[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return strings.Join(all, " ")
}

// hooksPart returns the part for the client's hooks. It returns errNoHooks if the client has no hooks file.
func (s Setup) hooksPart() (part, error) {
	file, err := s.hooksFile()
	if err != nil {
		return part{}, err
	}
	if s.Client.hooks.plugin {
		return s.pluginPart(file), nil
	}
	form, all := s.Client.hooks.format, s.handlers()
	return part{
		file: file,
		put:  func(data []byte) ([]byte, error) { return form.PutHandlers(data, all) },
		cut:  func(data []byte) ([]byte, error) { return form.CutHandlers(data, all) },
		ours: func(data []byte) bool { held, _ := form.GetHandlers(data, all); return len(held.All) > 0 },
		empty: func(data []byte) bool {
			for _, k := range all.Root {
				data, _ = form.Cut(data, []string{k.Name})
			}
			return form.Empty(data)
		},
	}, nil
}

// pluginPart returns the part for a hooks file that contains nothing but our module.
func (s Setup) pluginPart(file string) part {
	head, _, _ := strings.Cut(opencodePlugin, "\n")
	ours := func(data []byte) bool { return strings.HasPrefix(string(data), head) }
	return part{
		file: file,
		put: func(data []byte) ([]byte, error) {
			if len(data) > 0 && !ours(data) {
				return nil, ErrNotOurFile
			}
			return s.plugin(), nil
		},
		cut: func(data []byte) ([]byte, error) {
			if !ours(data) {
				return data, nil
			}
			return nil, nil
		},
		ours:  ours,
		empty: func(data []byte) bool { return len(data) == 0 },
	}
}

// plugin returns the module that runs the command on the client's events. In a plugin, the module also contains the
// entry, and the text that the model gets if mailtree is missing.
func (s Setup) plugin() []byte {
	text := strings.Replace(opencodePlugin, pluginCommand, constant("command", s.command(hookEvent{})), 1)
	if s.Missing != "" {
		entry := map[string]any{}
		want := s.wanted(Server{Args: []string{"stdio"}})
		for _, k := range append(want.Keys, want.New...) {
			entry[k.Name] = k.Value
		}
		text = strings.Replace(text, pluginEntry, constant("entry", entry), 1)
		text = strings.Replace(text, pluginMissing, constant("missing", s.Missing), 1)
	}
	return []byte(text)
}

// constant returns a line of JavaScript that defines a constant.
func constant(name string, value any) string {
	data, _ := json.Marshal(value) // cannot fail: value contains only strings, lists and bools
	return "const " + name + " = " + strings.ReplaceAll(string(data), `","`, `", "`)
}
