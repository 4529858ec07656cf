// Package sending sends messages. It checks a draft and its recipients, reads attachments, and turns a draft into a
// reply. It plans the files of the message, and the marks on the message that a reply answers. Agents send through
// maildir.Box, and package outbox sends saved files.
package sending
