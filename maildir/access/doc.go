// Package access gives each OS user access to their own mailboxes, for the email tools and for the commands about
// mailboxes.
//
// The caller passes the OS user to New, and View.Box checks the mailbox's owner when it opens the mailbox. A user can
// do only what the methods of View and Box allow.
package access
