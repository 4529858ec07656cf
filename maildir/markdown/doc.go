// Package markdown reads GitHub-Flavored Markdown bodies: it finds the first heading, makes excerpts
// and HTML, and points images elsewhere. It knows Markdown and nothing of mail, and it is the only
// importer of goldmark.
//
//	FirstHeading  reads at most 16 KiB; for a missing subject, in ingest
//	PlainText     reads at most 8 KiB; for excerpts
//	RewriteImages reads at most Limit, data URIs not counted; where a message is sent
//	Render        reads bodies of at most Limit; for people who read a message in a browser
//
// No function panics, starts a goroutine, logs or keeps state, and all may be called concurrently. A
// result is a function of the body's bytes.
//
// # Why it is bounded
//
// goldmark is quadratic in several things: emphasis delimiters, brackets, nesting, unclosed code
// spans. It cannot be cancelled. A body of Limit that is made to be slow takes up to 0.6 s; a table
// whose cells are mostly missing would take gigabytes, so such a table stays text.
package markdown
