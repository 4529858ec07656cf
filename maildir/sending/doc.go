// Package sending sends messages. It checks a draft and its recipients, reads attachments, and turns a draft into a
// reply. It plans the files of the message, and the marks of the message that a reply answers. Agents send through
// maildir.Box. Saved files are sent through package outbox.
package sending
