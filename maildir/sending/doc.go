// Package sending sends messages: it checks a draft and its recipients, reads attachments, turns a draft into a reply,
// and plans the files of the message and the marks of the message that a reply answers. Agents send through maildir.Box,
// saved files through package outbox.
package sending
