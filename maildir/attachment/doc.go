// Package attachment stores the files attached to messages. It reads the files that a sender names, stores each file
// under the hash of its content, and finds stored files by that hash.
//
// # Gathering
//
// [Intake.Gather] reads the files that a sender names. If requested, Gather also reads the images that a markdown body
// includes by path or as data URIs. The body then refers to the stored copies. Package media detects the type of each
// file and converts images. Gather follows these rules:
//
//   - It reads files below the project's working tree, a folder in Settings.Roots, and the mail tree itself.
//     It does not read the agents' folders, because an outbox copy names bcc recipients (Invariants I7, I8).
//   - It does not read hidden files and does not follow links.
//   - For an OS user other than the store's owner, it reads only that user's files, and nothing in the mail tree.
//
// A file that cannot be read is an error. An image in the body that cannot be read only causes a note, and the body
// keeps the name that the sender wrote. Files are kept in memory, so an Intake gathers files for at most two messages
// at a time and converts one image at a time.
//
// # Storing
//
// A file is stored at attachments/<first two of sha1>/<sha1><extension>, once for all messages. [File.Plan] adds it to
// the operation that delivers the message. An attacker can create two different files with the same SHA-1, and a user
// may have put a different file under that name. Therefore an existing file is compared byte by byte and never
// replaced. If a message needs a different file under an existing name, the message is refused.
//
// # Reading and checking
//
// [Find] and [Read] find and read a stored file, [Check] compares all files with their names, and [Unnamed] lists the
// files that no message refers to.
package attachment
