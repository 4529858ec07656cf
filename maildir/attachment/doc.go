// Package attachment stores the files that messages bring along: it gathers the files that a sender names,
// stores each under the hash of its content, and finds them again by that name.
//
// # In
//
// [Intake.Gather] reads the files that a sender names. If the sender asks for it, Gather also reads the
// images that a markdown body shows by a path or a data URI; the body then names the copies. Package media
// detects what each file is, and converts images. Gather may read:
//
//   - files below the project's work tree, below a folder of Settings.Roots, and below the mail tree itself,
//     except the folders of agents: an outbox copy names bcc recipients (Invariants I7, I8);
//   - nothing hidden, and nothing through a link;
//   - for a user other than the store's owner, only files of that user, and nothing in the mail tree.
//
// A file that cannot be read is an error. An image of the body that cannot be read is only a note, and the
// body keeps the name that its sender wrote. Files are held in memory, so an Intake gathers for at most two
// messages at a time and converts one image at a time.
//
// # Stored
//
// A file lies at attachments/<first two of sha1>/<sha1><extension>, once for all messages. [File.Plan]
// plans it as part of the operation that delivers the message. Two contents can be made to share a SHA-1,
// and a person may have put another file at the name. So an existing file is compared byte for byte and
// never replaced, and a message that needs another file at the same name is refused.
//
// # Out
//
// [Read] and [Find] read a file again, [Check] compares all files with their names, and [Unnamed] lists the
// files that no message names.
package attachment
