// Package markdown reads GitHub-Flavored Markdown bodies. It finds the first heading, produces excerpts, HTML and
// terminal output, and rewrites image destinations. The package does not depend on mail. No other package uses
// goldmark.
//
//	FirstHeading  reads at most 16 KiB; used during ingest if there is no subject
//	PlainText     reads at most 8 KiB; used for excerpts
//	RewriteImages reads at most Limit, not counting data URIs; used when a message is sent
//	Render        reads bodies of at most Limit; used to show a message in a browser
//	RenderWith    does the same, with images
//	Terminal      does the same for a terminal
//
// The functions do not panic, start goroutines, log or keep state. They are safe for concurrent use, and their
// results depend only on their arguments.
//
// # Limits
//
// goldmark takes quadratic time for emphasis delimiters, brackets, nesting and unclosed code spans, and it cannot be
// canceled. A malicious body of Limit bytes takes up to 0.6 s. A table whose cells are mostly missing would take
// gigabytes of memory, so such a table is left as text.
package markdown
