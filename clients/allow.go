package clients

import "mailtree/clients/edit"

// A client asks a person before it calls a tool, for each tool, unless the person has allowed the tool. A
// session that was woken by mail waits at that question until a person answers it, and is not told of
// further mail. So a set-up may allow the tools of the mail, if a person asks for that.

// permission is how a client is told to allow the tools of the mail without a question. The zero value
// means that this is unknown.
type permission struct {
	item string   // an item of a list in the file of the client's hooks, without the name of the entry
	list []string // the path of that list
	key  edit.Key // or a key in the entry

	hinted bool // the client asks only for tools whose hints say that they destroy something: see docs/tools.md
}

// AsksFor reports whether the client asks a person before it calls the mail's tools, as far as its own
// files say. It reports false if CanAllow does, and for a client whose question no tool of the mail raises. It
// returns the errors of Add.
func (s Setup) AsksFor() (bool, error) {
	if !s.Client.CanAllow() || s.Client.permission.hinted {
		return false, nil
	}
	for _, scope := range []Scope{User, Project} {
		at := s
		at.Scope = scope
		if allowed, err := at.allowed(); err != nil || allowed {
			return false, err
		}
	}
	return true, nil
}

// allowed reports whether a file in the setup's own scope allows the mail's tools. It returns the errors of
// Add.
func (s Setup) allowed() (bool, error) {
	p := s.Client.permission
	file, err := s.config()
	if p.item != "" {
		file, err = s.hooksFile()
	}
	if err != nil { // the scope has no file
		return false, nil
	}
	f, err := open(s.base(), file)
	if err != nil {
		return false, err
	}
	if p.item != "" {
		has, err := s.Client.hooks.format.HasItem(f.data, p.list, p.item+s.name())
		return has, fileError(file, err)
	}
	got, err := s.Client.format.Get(f.data, s.path())
	entry, _ := got.(map[string]any)
	return p.key.Name != "" && entry[p.key.Name] == p.key.Value, fileError(file, err)
}

// CanAllow reports whether a set-up can allow the tools of the mail.
func (c Client) CanAllow() bool { return c.permission.item != "" || c.permission.key.Name != "" }

// allowPart returns the permission as a part of the file of the client's hooks. It returns errNoHooks.
func (s Setup) allowPart() (part, error) {
	file, err := s.hooksFile()
	if err != nil {
		return part{}, err
	}
	form, p := s.Client.hooks.format, s.Client.permission
	item := p.item + s.name()
	return part{
		file:  file,
		put:   func(data []byte) ([]byte, error) { return form.PutItem(data, p.list, item) },
		cut:   func(data []byte) ([]byte, error) { return form.CutItem(data, p.list, item) },
		ours:  func(data []byte) bool { has, _ := form.HasItem(data, p.list, item); return has },
		empty: form.Empty,
	}, nil
}
