// Package query parses the searches that users and models type.
//
//	plan users            both words, anywhere in subject or body, ignoring case and accents
//	"build plan"          the words next to each other
//	mig*                  words with this prefix
//	a OR b, a NOT b, -b   either; a without b. NOT and - apply to the next word, phrase or group
//	(a OR b) c            a group
//	from:Ann cc:Bob       filters; also to: (recipients and cc), subject:, body:, importance:, has:file
//	thread:T after:2025-10-23 before:2d is:unread   filters of the whole query
//
// A word with punctuation is treated as code: user_id, /api/users, fooBar.baz and f(x) are phrases made of their words.
// OR between two filters joins only these filters. For example, "from:Ann OR from:Bob plan" finds "plan" in mail from
// either person. A filter next to words also applies to the other alternatives of an OR, unless those alternatives have
// their own filters. For example, "from:Ann a OR b" finds only mail from Ann.
//
// Parse depends only on the query language, not on the index. The index depends only on Expr, not on the query
// language.
package query
