// Package markdown reads GitHub-Flavored Markdown bodies: it finds the first heading, makes excerpts, HTML and
// lines for a terminal, and rewrites image destinations. It knows Markdown, but nothing about mail. No other
// package imports goldmark.
//
//	FirstHeading  reads at most 16 KiB; for a missing subject, in ingest
//	PlainText     reads at most 8 KiB; for excerpts
//	RewriteImages reads at most Limit, data URIs not counted; when a message is sent
//	Render        reads bodies of at most Limit; for users who read a message in a browser
//	RenderWith    the same, with images
//	Terminal      the same, for users who read it at a terminal
//
// No function panics, starts a goroutine, logs or keeps state. All functions are safe for concurrent use,
// and a result depends only on the body's bytes.
//
// # Why it is bounded
//
// goldmark takes quadratic time for emphasis delimiters, brackets, nesting and unclosed code spans, and it cannot
// be canceled. A malicious body of Limit bytes takes up to 0.6 s. A table with mostly missing cells would take
// gigabytes, so such a table stays text.
package markdown
