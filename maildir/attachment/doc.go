// Package attachment is what messages bring along: from what a sender names to files that are named
// by their content, and from those names back to the files.
//
// # In
//
// [Intake.Gather] reads the files that a sender names and, where the sender asks for that, the images
// that a markdown body shows by a path or a data URI; the body then names the copies. Package media
// says what each file is, and converts images. What may be read:
//
//   - files below the project's work tree, below a folder of Settings.Roots, and below the mail tree
//     itself, but none of agents there: an outbox copy names bcc recipients (Invariants I7, I8);
//   - nothing hidden, and nothing through a link;
//   - for a user who is not the store's, that user's own files, and none of the mail tree.
//
// A file that cannot be read is an error. An image of the body that cannot be read is a note, and the
// body keeps the name that its sender wrote. Files are held in memory, so an Intake gathers for two
// messages at a time and converts one image at a time.
//
// # Stored
//
// A file lies at attachments/<first two of sha1>/<sha1><extension>, once for all messages.
// [File.Plan] plans it as part of the operation that delivers the message. Two contents can be made
// to share a SHA-1, and a person may have put something there: what lies at the name is compared
// byte for byte, never replaced, and a message that needs another file there is refused.
//
// # Out
//
// [Read] and [Find] read it again, [Check] compares all with their names, and [Unnamed] lists those
// that no message names.
package attachment
