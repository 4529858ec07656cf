package refusal

// What is the text and the kind of a refusal. The text has a placeholder in braces for each fact of the
// Error (Words.fact) and for each phrase of the reader. The text itself names no tool, argument or setting;
// {field}, {arg} and the phrases do, in each reader's words. Two Whats of the same kind and text are equal.
type What struct {
	kind error
	text string
}

// NotFound returns a What for a named thing that does not exist.
func NotFound(text string) What { return What{ErrNotFound, text} }

// Exists returns a What for a thing that already exists.
func Exists(text string) What { return What{ErrExist, text} }

// Invalid returns a What for a value that can never be valid.
func Invalid(text string) What { return What{ErrInvalid, text} }

// Conflict returns a What for a conflict with something that exists.
func Conflict(text string) What { return What{ErrConflict, text} }

// Denied returns a What for a caller without permission.
func Denied(text string) What { return What{ErrDenied, text} }

// TooLarge returns a What for a value over a limit.
func TooLarge(text string) What { return What{ErrTooLarge, text} }

// Unavailable returns a What for an operation that is impossible now.
func Unavailable(text string) What { return What{ErrUnavailable, text} }

// Note returns a What for a note about something that was done. A note is not a refusal.
func Note(text string) What { return What{nil, text} }

// Texts that several places use, that code compares, or that a toolset's contract words differently
// (Words.Says). All other texts are written where the operation is refused.
var (
	// Projects.

	ProjectKeyRelative = Invalid("{field} {name} is neither an absolute path such as /home/me/backend nor a project's slug. " +
		"{near} {all projects}")
	UnknownProjectOfGuest = NotFound("No project {name}, and only the user who runs the server can make one. Name a project that " +
		"exists.")

	// Agents.

	StatusUnknown = Invalid("{field} {name} is none of ready, work, offline: use one of them.")

	// Texts.

	TextTooLong = TooLarge("{field} has {count} bytes, over the limit of {limit}: shorten it.")

	// Messages and threads.

	ImportanceUnknown = Invalid("{field} {name} is none of low, normal, high, urgent: use one of them.")
	UnknownThread     = NotFound("No thread {name} {arg} in project {=other}. {near} {in} {find threads}")
	NotInInbox        = NotFound("Message {name} {arg} is not in the inbox of {=other}. {list the inbox}")
	NotInMailbox      = NotFound("Message {name} {arg} is not in the mailbox {other}.")
	NowhereFound      = NotFound("No {=other} {name} in any project. {look anywhere}")
	MarkBlocked       = Conflict("{=other} in the mail tree cannot be read as a mark ({why}), so the mark cannot be made: remove it.")
	NotUndone         = Conflict("The last thing that {=other} did is a {why}, which shares a commit with another one, and is not taken " +
		"back so. {undo something else}")
	ChangedSince       = Conflict("{=other} has changed since, so that the {why} is not undone. {undo something else}")
	ChangedSinceUndone = Conflict("{=other} has changed since, so that the {why} is not done again. {redo something else}")
	ClaimTaken         = Conflict("{=other} has claimed {name} or a part of it meanwhile, so that the release is not undone. {undo " +
		"something else}")
	AmendedSince      = Conflict("Message {name} {arg} was changed by somebody else meanwhile. Read it again, and make the change anew.")
	OffsetBeyond      = Invalid("{field} is {count}, but the text has {limit} bytes: {go on}.")
	OffsetInCharacter = Invalid("{field} is {count}, which is within a character of the text: {go on}.")

	// Files saved in an outbox.

	SavedMalformed = Invalid("It is no message: {why}.")

	// Claims.

	NoPaths = Invalid("No paths {arg}: name at least one path or glob relative to the code repository's root, such as " +
		"app/api/*.py.")
	TooManyPaths = TooLarge("{count} paths {arg}, over the limit of {limit}: claim folders.")

	// Attachments.

	TooManyAttachments = TooLarge("{count} attachments {arg}, over the limit of {limit}: send them in parts.")
	AttachmentUnusable = Invalid("The attachment {name} {arg} cannot be used: {why}.")
	AttachmentAltered  = Conflict("The attachment {name} {arg} is not what was sent under that name: the file holds {why}. Nothing " +
		"was sent; ask its sender for it again.")

	// Mailboxes and addresses.

	UnknownMailbox      = NotFound("No mailbox {name} {arg}.")
	MailboxNameUnusable = Invalid("The mailbox name {name} {arg} cannot be used: {why}.")
	MailboxNameCase     = Invalid("The mailbox name {name} {arg} differs from your mailbox {other} only in case: use that one, or " +
		"another name.")
	MailboxNotYours = Denied("The mailbox {name} {arg} belongs to somebody else: use one of yours.")
	MailboxNotEmpty = Conflict("The mailbox {name} {arg} is not empty: {count} in its inbox, {count 2} sent. It is deleted only " +
		"where its mail is meant to be deleted too.")

	MailboxFull = Unavailable("The mailbox of {=name} is full: {count} unread messages, the limit is {limit} ({limit of unread " +
		"mail}). Nothing was sent; try again when {=name} has read some.")

	// Hooks.

	UnknownHook         = NotFound("No hook {name} {arg} on a mailbox of yours.")
	HookProgramRelative = Invalid("{field} names the program {name}, which is not an absolute path: give one, such as " +
		"/usr/local/bin/wake.")
	HookTrustMisplaced = Invalid("{field} is for the event on_receive only: leave it out.")
	HookExists         = Exists("This hook exists as {name} with a time limit of {count} seconds: delete it first, or give this one a " +
		"name to have both.")

	// The disk and the server.

	NothingWritten = Unavailable("{why}; nothing was changed. {look closer}, then try again.")
	WriteUnsure    = Unavailable("{why}, and what was written could not be taken back: it may be done now, or after the server's " +
		"next start. {look closer}, and look before you try again.")
	PathUnread = Unavailable("{other} in the mail tree cannot be looked at now ({why}), and the answer depends on it; nothing was " +
		"changed. The server looks again by itself: try again in a moment. {if it stays so}")
	EditUncommitted = Unavailable("The file was changed by hand and that change is not in Git: commit it with git add and git " +
		"commit ({committing of edits} is off, so the server does not), then try again.")

	// The store's own files.

	StoreUnusable = Unavailable("The store {=other} cannot be used: {why}. Set {place of the store} to a folder that can be " +
		"written.")
	TrustedFileWrong = Unavailable("The store's trusted_keys is {why}: put the right file there, or remove it; until then only " +
		"this store's own seals are believed.")
)
