package query

import "time"

// Query is a search as it was understood.
type Query struct {
	Expr          Expr      // nil: every message
	Thread        string    // messages of this thread, and the one whose id it is; "": of any
	After, Before time.Time // created at or after, created before; zero: no bound

	// Mistaken is what looks like a filter that another search knows, and is searched for as it
	// stands; Meant is the filter that does the same here. "": there is none.
	Mistaken, Meant string

	// Wild is the first word with a wildcard that means nothing here, as in *ploy and de?loy. Its
	// words are searched for. "": there is none.
	Wild string

	// Foreign is the first word that is an operator or a filter in other searches and means nothing
	// here, as in NEAR(a b), plan^2 and foo:bar. Its words are searched for. "": there is none.
	Foreign string

	// Plain says that quotes, parentheses or operators did not fit together, so that every word of
	// the text is searched for as it stands.
	Plain bool
}

// Expr says which messages match. It is And, Or, Not, Term or Filter; nil matches every message.
type Expr any

// And matches what all of it match. It is not empty.
type And []Expr

// Or matches what any of it match. It is not empty.
type Or []Expr

// Not matches what Of does not.
type Not struct{ Of Expr }

// Term is one word or phrase. Text has a letter or digit.
type Term struct {
	Text   string
	Prefix bool   // the last word may go on
	In     Column // where it stands
}

// Column is a part of a message.
type Column int

// The columns of a message that are searched.
const (
	Anywhere Column = iota
	Subject
	Body
)

// Filter matches messages by a field of their header, exactly.
type Filter struct {
	Key   Key
	Value string
}

// Key is a field that Filter compares.
type Key int

// The fields of Filter. Parse puts Thread, After and Before into Query and leaves no Filter of
// them.
const (
	From Key = iota + 1
	To       // to or cc
	CC
	Importance // low, normal, high, urgent
	Thread
	After
	Before
)

// Map gives e with each Filter replaced by what change makes of it. A nil takes the filter out; Map
// is nil where nothing is left.
func Map(e Expr, change func(Filter) Expr) Expr {
	each := func(all []Expr) (kept []Expr) {
		for _, x := range all {
			if x = Map(x, change); x != nil {
				kept = append(kept, x)
			}
		}
		return kept
	}
	switch e := e.(type) {
	case And:
		return all(each(e))
	case Or:
		return anyOf(each(e))
	case Not:
		if of := Map(e.Of, change); of != nil {
			return Not{of}
		}
		return nil
	case Filter:
		return change(e)
	}
	return e
}

// all is And of several, one as it is, and nil of none. An And within it is part of it.
func all(of []Expr) Expr {
	var flat And
	for _, x := range of {
		if inner, ok := x.(And); ok {
			flat = append(flat, inner...)
		} else {
			flat = append(flat, x)
		}
	}
	switch len(flat) {
	case 0:
		return nil
	case 1:
		return flat[0]
	}
	return flat
}

// anyOf is Or of several, one as it is, and nil of none.
func anyOf(of []Expr) Expr {
	if len(of) < 2 {
		return all(of)
	}
	return Or(of)
}
