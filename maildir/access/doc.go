// Package access is what the users of the operating system may do with the mail of a store, each with their own mailboxes:
// for the email tools, which any user may call, and for the commands about mailboxes.
//
// Who asks is said once, when a View is made, and a View checks once who owns a mailbox, when it opens the Box. A user can
// do what View and Box have methods for, and nothing else.
package access
