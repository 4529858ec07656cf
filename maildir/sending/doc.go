// Package sending sends messages: it checks a draft and its recipients, reads attachments, turns a draft into a reply,
// and plans the files of the message with the marks that a reply makes. What an agent, a saved file and another domain
// need besides is in packages maildir, outbox and post.
package sending
