// Package query reads what people and models type into a search.
//
//	plan users            both words, anywhere in subject or body, whatever their case and accents
//	"build plan"          the words next to each other
//	mig*                  words that begin so
//	a OR b, a NOT b, -b   either; a without b. NOT and - concern the next word, phrase or group
//	(a OR b) c            a group
//	from:Ann cc:Bob       filters; also to: (recipients and cc), subject:, body:, importance:
//	thread:T after:2025-10-23 before:2025-11-01   filters of the whole query
//
// What has punctuation is code: user_id, /api/users, fooBar.baz and f(x) are phrases of their
// words. OR between two filters joins just these: "from:Ann OR from:Bob plan" is a plan of either.
// A filter beside words concerns the other side of OR too, unless that has filters of its own:
// "from:Ann a OR b" is all from Ann.
//
// Parse knows the language and nothing of the index; the index knows Expr and nothing of the
// language.
package query
