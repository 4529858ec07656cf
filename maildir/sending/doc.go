// Package sending sends messages. It checks a draft and its recipients, reads attachments, and turns a draft into a
// reply. It plans the message's files and, for a reply, the marks on the original message. Agents send through
// maildir.Box, and package outbox sends saved files.
package sending
