package maildir

import (
	"context"
	"errors"

	"mailtree/maildir/access"
	"mailtree/maildir/format"
	"mailtree/maildir/refusal"
)

// User is a store with the access rights of one OS user. A guest is any OS user other than root and the user that the
// server runs as. A User is safe for concurrent use.
type User struct {
	s      *Store
	by     Caller
	origin format.Origin
}

// As returns the store with the access rights of an OS user. The user's messages get the given origin.
func (s *Store) As(by Caller, origin format.Origin) User { return User{s, by, origin} }

// Project is like Store.Project. If a guest asks for an unknown project, the refusal lists no similar names.
func (u User) Project(ctx context.Context, key string) (*View, error) {
	p, err := u.s.Project(ctx, key)
	var e *Error
	if errors.As(err, &e) && u.s.core.IsForeignUser(u.by) {
		untold := *e
		untold.Near, untold.All = nil, nil
		return nil, &untold
	}
	if err != nil {
		return nil, err
	}
	return p.As(u.by, u.origin), nil
}

// EnsureProject is like Store.EnsureProject, but a guest may create only the default project. Each project uses the
// server's files and memory, and a guest could create any number of projects. For any other project that does not
// exist, a guest gets ErrNotFound, without similar names.
func (u User) EnsureProject(ctx context.Context, key string) (*View, error) {
	if key == DefaultProject || !u.s.core.IsForeignUser(u.by) {
		p, err := u.s.EnsureProject(ctx, key)
		if err != nil {
			return nil, err
		}
		return p.As(u.by, u.origin), nil
	}
	v, err := u.Project(ctx, key)
	if errors.Is(err, ErrNotFound) {
		return nil, &Error{What: refusal.UnknownProjectOfGuest, Name: key}
	}
	return v, err
}

// As returns the project with the access rights of an OS user. The user's messages get the given origin.
func (p *Project) As(by Caller, origin format.Origin) *View {
	marks := func(agent string, origin format.Origin) access.Marks { return p.Box(agent, origin) }
	return access.New(access.Parts{Mail: p.mail, Post: p.Post, Sender: p.sender, Marks: marks}, by, origin)
}
