// Package access gives each OS user access to their own mailboxes, for the email tools and for the commands about
// mailboxes.
//
// The caller passes the OS user to New once, and View.Box checks a mailbox's owner once. A user can do only the things
// that View and Box have methods for.
package access
