package query

import "time"

// Query is a parsed search.
type Query struct {
	Expr          Expr      // nil matches every message
	Thread        string    // messages in this thread, and the message with this id; empty for any thread
	After, Before time.Time // created at or after After, and before Before; zero for no limit
	Unread        bool      // only messages that are unread in the searching agent's inbox

	// Mistaken is a word that is a filter in other search engines but is searched for as text here. Meant is mailtree's
	// equivalent filter. Both fields are empty if there is no such word.
	Mistaken, Meant string

	// Wild is the first word with a wildcard in a place where mailtree does not support one, as in *ploy and de?loy.
	// The word's parts are searched for. Wild is "" if there is no such word.
	Wild string

	// Foreign is the first word that is an operator or a filter in other search engines but not here, as in NEAR(a b),
	// plan^2 and foo:bar. The word's parts are searched for. Foreign is "" if there is no such word.
	Foreign string

	// Lower is the first "and", "or" or "not" that is not in capitals. It is searched for as a word. Lower is "" if
	// there is no such word.
	Lower string

	// Unspaced is the first word in a script without spaces between words, such as Chinese. The index does not split
	// such text into words. A search finds a run of such characters only by its beginning. Unspaced is "" if there is
	// no such word.
	Unspaced string

	// Plain means that quotes, parentheses or operators were unbalanced, so that every word is searched for as text.
	Plain bool
}

// Expr is a condition on messages: And, Or, Not, Term or Filter. A nil Expr matches every message.
type Expr any

// And matches messages that match all of its parts. It is never empty.
type And []Expr

// Or matches messages that match any of its parts. It is never empty.
type Or []Expr

// Not matches messages that Of does not match.
type Not struct{ Of Expr }

// Term is a word or phrase. Text contains a letter or digit.
type Term struct {
	Text   string
	Prefix bool   // the last word is a prefix
	In     Column // where to search
}

// Column is a part of a message.
type Column int

// These are the parts of a message that can be searched.
const (
	Anywhere Column = iota
	Subject
	Body
)

// Filter matches messages by the exact value of a header field.
type Filter struct {
	Key   Key
	Value string
}

// Key is a field that a Filter compares.
type Key string

// These are the values of Key. Parse moves Thread, After, Before and Is into Query, so a Filter never has them.
const (
	From       Key = "from"
	To         Key = "to" // to or cc
	CC         Key = "cc"
	Importance Key = "importance" // low, normal, high, urgent
	Has        Key = "has"        // the value is always HasFile
	Thread     Key = "thread"
	After      Key = "after"
	Before     Key = "before"
	Is         Key = "is" // the value is always "unread"
)

// HasFile is the value of a filter with the key Has. It means that the message has an attachment.
const HasFile = "file"

// ofWhole reports whether the filter applies to the whole query.
func (k Key) ofWhole() bool { return k == Thread || k == After || k == Before || k == Is }

// keys maps words to filters. A word is a filter only if a colon follows. Any other word before a colon, as in
// std::vector and http://x, is part of the text to search for.
var keys = map[string]Key{
	"from": From, "sender": From, "to": To, "cc": CC, "subject": inSubject, "body": inBody, "importance": Importance,
	"thread": Thread, "thread_id": Thread, "after": After, "since": After, "before": Before, "until": Before,
	"is": Is, "has": Has,
}

// These keys are not filters. Their values are searched for in one column.
const (
	inSubject Key = "subject"
	inBody    Key = "body"
)

// Map returns e with each Filter replaced by the result of change. If change returns nil, Map removes the filter. Map
// returns nil if nothing is left.
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

// all returns the And of several expressions. It returns a single expression unchanged, and nil if there are none. It
// flattens nested Ands.
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

// anyOf returns the Or of several expressions. It returns a single expression unchanged, and nil if there are none.
func anyOf(of []Expr) Expr {
	if len(of) < 2 {
		return all(of)
	}
	return Or(of)
}
