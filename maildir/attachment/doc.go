// Package attachment stores the files attached to messages. It gathers the files that a sender names, stores each under
// the hash of its content, and finds it by that name.
//
// # In
//
// [Intake.Gather] reads the files that a sender names. If requested, Gather also reads the images that a markdown body
// includes by path or as data URIs. The body then refers to the stored copies. Package media detects what each file is,
// and converts images. Gather may read:
//
//   - files below the project's work tree, below a folder in Settings.Roots, and below the mail tree itself, except the
//     agents' folders, because an outbox copy names bcc recipients (Invariants I7, I8);
//   - no hidden files, and no files behind a link;
//   - for an OS user other than the store's owner, only that user's files, and nothing in the mail tree.
//
// A file that cannot be read is an error. An image in the body that cannot be read only causes a note, and the body
// keeps the name that the sender wrote. Files are held in memory, so an Intake gathers files for at most two messages
// at a time and converts one image at a time.
//
// # Stored
//
// A file is stored at attachments/<first two of sha1>/<sha1><extension>, once for all messages. [File.Plan] adds it to
// the operation that delivers the message. An attacker can create two different files with the same SHA-1, and a user
// may have put a different file under that name. Therefore an existing file is compared byte by byte and never
// replaced. A message that needs a different file under an existing name is refused.
//
// # Out
//
// [Find] finds a stored file, [Read] reads it, [Check] compares all files with their names, and [Unnamed] lists the
// files that no message refers to.
package attachment
