package clients

import "mailtree/clients/edit"

// By default, a client asks the user before it calls a tool that the user has not allowed yet. A session that was woken
// by mail waits at that prompt until the user answers, and gets no notices of new mail until then. At the user's
// request, setup can therefore allow mailtree's tools.

// permission describes how to make a client allow mailtree's tools without a prompt. The zero value means that there is
// no known way to do this.
type permission struct {
	item string   // the text that setup adds to list, with the entry's name appended
	list []string // the path of the list in the client's hooks file
	key  edit.Key // a key to set in the entry; used instead of item and list

	hinted bool // the client asks only about tools whose hints mark them as destructive; see docs/reference/tools.md
}

// AsksFor reports whether the client's configuration files make the client ask the user before it calls mailtree's
// tools. The result is false if CanAllow reports false, or if the client asks only about destructive tools. AsksFor
// returns the same errors as Add.
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

// allowed reports whether the client's file for the setup's scope already allows mailtree's tools. It returns the same
// errors as Add.
func (s Setup) allowed() (bool, error) {
	p := s.Client.permission
	file, err := s.config()
	if p.item != "" {
		file, err = s.hooksFile()
	}
	if err != nil { // the client has no file in this scope
		return false, nil
	}
	f, err := open(s.base(), file)
	if err != nil {
		return false, err
	}
	if p.item != "" {
		has, err := s.Client.hooks.format.HasItem(f.data, p.list, p.item+s.name())
		return has, s.Client.fileError(file, err)
	}
	got, err := s.Client.format.Get(f.data, s.path())
	entry, _ := got.(map[string]any)
	return p.key.Name != "" && entry[p.key.Name] == p.key.Value, s.Client.fileError(file, err)
}

// CanAllow reports whether setup can allow mailtree's tools.
func (c Client) CanAllow() bool { return c.permission.item != "" || c.permission.key.Name != "" }

// allowPart returns the part that adds the permission to the client's hooks file. It returns errNoHooks if the client
// has no hooks file.
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
