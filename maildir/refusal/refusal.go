// Package refusal is why the mail refuses an operation, as data: what is said, of which kind it is,
// in which field the fault lies, with which value.
//
// What is said stands where it is refused, with a place in braces for each fact:
//
//	&refusal.Error{What: refusal.Invalid("{field} {name} is not a path: ..."), Field: refusal.Project, Name: key}
//
// Words make the sentence of it for one reader: the clients of a toolset, whose tools and arguments
// the sentence names; the person at a terminal; or a log, for which Error() names no tool, no
// argument and no setting. A toolset's contract may give a whole sentence word for word: such a What
// has a name in what.go. A new phrase is added to the table phrases, and to each Words that has
// something to say for it.
package refusal

import "errors"

// The closed set of kinds. Every refusal is of exactly one; errors.Is tells which, and Code gives
// the name that goes over the wire (docs/tools.md, "Refusals").
var (
	ErrNotFound    = errors.New("not found")
	ErrExist       = errors.New("already exists")
	ErrInvalid     = errors.New("invalid")
	ErrConflict    = errors.New("conflict")
	ErrDenied      = errors.New("denied")
	ErrTooLarge    = errors.New("too large")
	ErrUnavailable = errors.New("unavailable")
)

// Error is one refusal. All but What may be empty. It never holds SQL, a stack or a path that the
// reader may not know.
type Error struct {
	What   What
	Kind   error    // one of the sentinels above; nil: that of What
	Field  Field    // the field of the request that was wrong
	Name   string   // the value that was wrong, as it was given
	More   []string // further values, wrong in the same way
	Other  string   // what it is compared with or lies in: a project, an agent, a path
	ID     string   // the message that it is about
	Why    string   // a clause that gives the reason
	Counts []int    // how many, or how large, in the order that the sentence has
	Limit  int      // how many, or how large, it may be
	Near   []string // names close to the one that was not found, nearest first
	All    []string // all names that there are, where they are few; of a folder, the projects below it
	In     []string // the projects that have what was not found in this one
	Err    error    // the cause, for the log; only {cause} shows it
}

// Over refuses what is more, or larger, than it may be.
func Over(what What, field Field, n, limit int) *Error {
	return &Error{
		What:   what,
		Field:  field,
		Counts: []int{n},
		Limit:  limit,
	}
}

// Error is the sentence for a log.
func (e *Error) Error() string { return (&Words{}).Say(e) }

// Unwrap lets errors.Is see the kind and the cause.
func (e *Error) Unwrap() []error {
	var all []error
	for _, err := range []error{e.kind(), e.Err} {
		if err != nil {
			all = append(all, err)
		}
	}
	return all
}

func (e *Error) kind() error {
	if e.Kind != nil {
		return e.Kind
	}
	return e.What.kind
}

// Own is a refusal of a package outside the mail, which alone knows what was wrong and says it in a
// sentence of its own: about the form of the arguments, or about a code repository.
type Own struct {
	Kind error
	Text string   // the whole sentence
	Hint string   // how to mend the call, where a contract gives Text word for word
	Near []string // as of Error
	Err  error    // the cause, for the log; may be nil
}

// Error is the sentence.
func (o *Own) Error() string { return o.Text }

// Unwrap lets errors.Is see the kind and the cause.
func (o *Own) Unwrap() []error {
	if o.Err == nil {
		return []error{o.Kind}
	}
	return []error{o.Kind, o.Err}
}

// Near are the names close to the one that err says is not found; nil where it says none.
func Near(err error) []string {
	var e *Error
	var o *Own
	switch {
	case errors.As(err, &e):
		return e.Near
	case errors.As(err, &o):
		return o.Near
	}
	return nil
}

// Hint is what err says beside its sentence; "" where there is no more to say.
func Hint(err error) string {
	var o *Own
	if errors.As(err, &o) {
		return o.Hint
	}
	return ""
}

// Code names the kind of err as it goes over the wire: not_found, exists, invalid, conflict,
// denied, too_large, unavailable; "internal" for anything else, "" for nil. See docs/tools.md,
// "Refusals".
func Code(err error) string {
	if err == nil {
		return ""
	}
	for _, k := range []struct {
		kind error
		code string
	}{
		{ErrNotFound, "not_found"}, {ErrExist, "exists"}, {ErrInvalid, "invalid"}, {ErrConflict, "conflict"},
		{ErrDenied, "denied"}, {ErrTooLarge, "too_large"}, {ErrUnavailable, "unavailable"},
	} {
		if errors.Is(err, k.kind) {
			return k.code
		}
	}
	return "internal"
}
