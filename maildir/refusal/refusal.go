// Package refusal represents refusals of operations as data: the text, the kind, the field at fault, and the field's
// value.
//
// The code that refuses the operation contains the text. The text has a placeholder in braces for each fact:
//
//	&refusal.Error{What: refusal.Invalid("{field} {name} is not a path: ..."), Field: refusal.Project, Name: key}
//
// Words turn a refusal into a sentence for one kind of reader. For a toolset's clients, the sentence uses the names
// of the toolset's tools and arguments. There are also Words for users at a terminal and for logs. Error() uses the
// words for logs, which do not mention any tool, argument or setting. If a toolset's contract fixes the wording of a
// sentence, what.go gives the sentence's What a name. Each new phrase must be added to the table phrases, and to each
// Words that has a text for it.
package refusal

import "errors"

// These are the kinds of refusals. Every refusal has exactly one kind, which errors.Is finds. Code returns the name
// that clients get (docs/reference/tools.md, "Refusals").
var (
	ErrNotFound    = errors.New("not found")
	ErrExist       = errors.New("already exists")
	ErrInvalid     = errors.New("invalid")
	ErrConflict    = errors.New("conflict")
	ErrDenied      = errors.New("denied")
	ErrTooLarge    = errors.New("too large")
	ErrUnavailable = errors.New("unavailable")
)

// Error is a refusal. All fields except What may be empty. An Error never contains SQL, a stack trace, or a path that
// the reader is not allowed to know.
type Error struct {
	What   What
	Kind   error    // one of the kinds above; if nil, the kind of What
	Field  Field    // the request's field that is at fault
	Name   string   // the value at fault, as it was given
	More   []string // other values with the same fault
	Other  string   // what Name is compared with or contained in: a project, an agent, a path
	ID     string   // id of the message that the refusal is about
	Why    string   // the reason, as a clause
	Counts []int    // numbers or sizes, in the order in which the sentence uses them
	Limit  int      // the largest allowed number or size
	Near   []string // names similar to the unknown name, nearest first
	All    []string // all existing names if there are only a few; for a folder, the projects below it
	In     []string // other projects in which Name exists
	Err    error    // the cause, for the log; the sentence contains it only as {cause}
}

// Over returns the refusal for a number or size n that exceeds limit.
func Over(what What, field Field, n, limit int) *Error {
	return &Error{
		What:   what,
		Field:  field,
		Counts: []int{n},
		Limit:  limit,
	}
}

// Error returns the sentence for a log.
func (e *Error) Error() string { return (&Words{}).Say(e) }

// Unwrap lets errors.Is find the kind and the cause.
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

// Own is a refusal from a package outside maildir. Its text is a complete sentence about the format of arguments or
// about a code repository.
type Own struct {
	Kind error
	Text string   // the whole sentence
	Hint string   // how to correct the call; used if a contract determines the wording of Text
	Near []string // the same as Error.Near
	Err  error    // the cause, for the log; may be nil
}

// Error returns the sentence.
func (o *Own) Error() string { return o.Text }

// Unwrap lets errors.Is find the kind and the cause.
func (o *Own) Unwrap() []error {
	if o.Err == nil {
		return []error{o.Kind}
	}
	return []error{o.Kind, o.Err}
}

// Near returns the names similar to the unknown name in err, or nil if there are none.
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

// Hint returns the hint of err, or "" if there is none.
func Hint(err error) string {
	var o *Own
	if errors.As(err, &o) {
		return o.Hint
	}
	return ""
}

// Code returns the name that clients get for err's kind: not_found, exists, invalid, conflict, denied, too_large or
// unavailable. It returns "internal" for other errors and "" for nil. See docs/reference/tools.md, "Refusals".
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
