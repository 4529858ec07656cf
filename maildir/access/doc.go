// Package access gives each user of the operating system access to their own mailboxes, for the email tools and for the
// commands about mailboxes.
//
// New takes the user once, and View.Box checks the owner of a mailbox once. A user can do what View and Box have methods
// for, and nothing else.
package access
