// Package markdown reads the structure of a GitHub-Flavored Markdown body: key points, decisions,
// action items and questions; it points images elsewhere, and makes HTML. It knows Markdown and
// nothing of mail, and it is the only importer of goldmark.
//
// Five functions, all of them on goldmark's tree:
//
//	FirstHeading  at most 16 KiB; for a missing subject, in ingest
//	PlainText     at most 8 KiB; for excerpts
//	Parse         at most 256 KiB and about 200 ms; for summaries, which keep a [Parser]
//	RewriteImages the same, data URIs not counted; where a message is sent
//	Render        the same; for people who read a message in a browser
//
// # What holds for any body
//
//   - No function panics, starts a goroutine, logs or keeps state; all may be
//     called concurrently, but the methods of one [Parser].
//   - A result is a function of the body's bytes. Work is bounded by counting
//     it, so the bound gives the same answer on every machine; the clock
//     ([Deadline]) and the caller's context are a net below that, and an answer
//     that they cut says Truncated.
//   - Every string is one line of valid UTF-8 without control characters, trimmed, at most 300
//     runes ([FirstHeading]: 200), an ellipsis at its end where it was cut.
//   - An item is in one of Points, Decisions and Actions, never in two.
//   - Quotes ("> "), code blocks, code spans and HTML are what somebody or something else says:
//     Parse takes nothing from quotes, code and HTML blocks, and a code span inside a sentence is
//     text without meaning ("use `@x`?" is a question that mentions nobody).
//
// # Why it is bounded
//
// goldmark is quadratic in several things: emphasis delimiters of a paragraph (200 kB of "*a_ "
// take 7 s), brackets, unclosed code spans, nesting, link reference definitions, missing table
// cells. It cannot be cancelled, and a goroutine left behind would burn a core for seconds. So its
// parsers are wrapped (files blocks.go and inlines.go): each wrapper counts the work that its
// parser is about to do and, where a block asks for too much, declines, which makes goldmark take
// the markup as plain text and go on in linear time.
package markdown
