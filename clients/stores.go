package clients

import (
	"encoding/json"
	"slices"
	"strings"

	"mailtree/maildir/lazy"
)

// Variables returns the sorted names of the environment variables that determine where clients keep their files.
func Variables() (names []string) {
	for _, c := range List() {
		for _, p := range []place{c.user, c.userNotes, c.hooks.user} {
			if p.env != "" {
				names = append(names, p.env)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Uses describes what a setup's files already contain.
type Uses struct {
	Stores []string // the stores that our entry and hooks use, without duplicates; "" is the default store
	URL    string   // the URL in our entry, which does not identify the store; "" if there is none
	ByHand string   // command of the entry that Remove leaves in place because a user edited it; empty if there is no such entry
}

// storeFlag matches the --store flag in one of our commands, as formatted by shell.
var storeFlag = lazy.Regexp(` --store (` + anyWord + `)`)

// Uses returns what the setup's files contain. It returns the same errors as Add.
func (s Setup) Uses() (u Uses, err error) {
	_, leads, err := s.Entry()
	if err != nil {
		return u, err
	}
	var commands []string
	switch {
	case leads == nil:
	case s.byHand(leads):
		u.ByHand = leads.String()
	case leads.URL != "":
		u.URL = leads.URL
	default:
		commands = append(commands, shell(append([]string{program}, leads.Args...)))
	}
	hooks, err := s.hookCommands()
	if err != nil {
		return u, err
	}
	for _, c := range append(commands, hooks...) {
		store := ""
		if m := storeFlag().FindStringSubmatch(c); m != nil {
			store = unquote(m[1])
		}
		if !slices.Contains(u.Stores, store) {
			u.Stores = append(u.Stores, store)
		}
	}
	return u, nil
}

// hookCommands returns the commands of our hooks in the client's file.
func (s Setup) hookCommands() (commands []string, err error) {
	file, err := s.hooksFile()
	if err != nil || s.Toolset != "" {
		return nil, nil
	}
	f, err := open(s.base(), file)
	if err != nil {
		return nil, err
	}
	if s.Client.hooks.plugin {
		var words []string
		_, rest, _ := strings.Cut(string(f.data), "\nconst command = ")
		line, _, _ := strings.Cut(rest, "\n")
		if s.pluginPart(file).ours(f.data) && json.Unmarshal([]byte(line), &words) == nil {
			commands = append(commands, shell(words))
		}
		return commands, nil
	}
	names, err := s.Client.hooks.format.GetHandlers(f.data, s.handlers())
	return names.All, s.Client.fileError(file, err)
}

// unquote removes the quotes that shell may have put around a word.
func unquote(word string) string {
	if quoted, ok := strings.CutPrefix(word, "'"); ok {
		return strings.ReplaceAll(strings.TrimSuffix(quoted, "'"), `'\''`, "'")
	}
	return word
}
