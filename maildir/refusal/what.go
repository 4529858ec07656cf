package refusal

// What is the text and the kind of a refusal. The text has a placeholder in braces for each fact of the Error
// (Words.fact) and for each of the reader's phrases. The text itself does not mention any tool, argument or setting.
// Their names come from {field}, {arg} and the phrases, in each reader's words. Two Whats with the same kind and text
// are equal.
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

// Unavailable returns a What for an operation that is currently impossible.
func Unavailable(text string) What { return What{ErrUnavailable, text} }

// Note returns a What for a note about an operation that succeeded. A note is not a refusal.
func Note(text string) What { return What{nil, text} }

// These texts are used in several places, compared by code, or worded differently by a toolset's contract (Words.Says).
// All other texts are in the code that refuses the operation.
var (
	// Projects.

	ProjectKeyRelative = Invalid("{field} {name} is neither an absolute path such as /home/me/backend nor a project's slug. " +
		"{near} {all projects}")
	UnknownProjectOfGuest = NotFound("No project {name}. Only the user who runs the server can create projects: " +
		"use an existing one.")

	// Agents.

	StatusUnknown = Invalid("{field} {name} is not valid: use ready, work or offline.")

	// Texts.

	TextTooLong = TooLarge("{field} is {count} bytes long, over the limit of {limit}: shorten it.")

	// Messages and threads.

	ImportanceUnknown = Invalid("{field} {name} is not valid: use low, normal, high or urgent.")
	UnknownThread     = NotFound("No thread {name} {arg} in project {=other}. {near} {in} {find threads}")
	NotInInbox        = NotFound("Message {name} {arg} is not in the inbox of {=other}. {list the inbox}")
	NotInMailbox      = NotFound("Message {name} {arg} is not in the mailbox {other}.")
	NowhereFound      = NotFound("No {=other} {name} in any project. {look anywhere}")
	MarkBlocked       = Conflict("{=other} in the mail tree cannot be used as a mark ({why}). Remove {=other}, " +
		"then try again.")
	HoldBlocked = Conflict("{=other} in the mail tree is not a readable file ({why}), so the hold cannot be written. " +
		"Remove {=other}, then try again.")
	NotUndone = Conflict("The last action of {=other} ({why}) shares a commit with another action, so it cannot be " +
		"undone on its own. {undo something else}")
	ChangedSince = Conflict("{=other} has changed since the {why} operation, so the operation cannot be undone. {undo " +
		"something else}")
	ChangedSinceUndone = Conflict("{=other} has changed since the {why} operation was undone, so the operation cannot be " +
		"redone. {redo something else}")
	ClaimTaken = Conflict("{=other} has claimed {name} or a part of it in the meantime, so the release " +
		"cannot be undone. {undo something else}")
	AmendedSince = Conflict("Someone else has changed message {name} {arg} in the meantime. Read it again, " +
		"then repeat your change.")
	OffsetBeyond      = Invalid("{field} is {count}, but the text has only {limit} bytes: {go on}.")
	OffsetInCharacter = Invalid("{field} is {count}, which is in the middle of a character: {go on}.")

	// Files saved in an outbox.

	SavedMalformed = Invalid("The file is not a valid message: {why}.")

	// Claims.

	NoPaths = Invalid("No paths were given {arg}: pass at least one path or glob relative to the code repository's root, such as " +
		"app/api/*.py.")
	TooManyPaths = TooLarge("You passed {count} paths {arg}, over the limit of {limit}: claim folders instead.")

	// Attachments.

	TooManyAttachments = TooLarge("The message would have {count} attachments {arg}, over the limit of {limit}: send " +
		"them in several messages.")
	AttachmentUnusable = Invalid("The attachment {name} {arg} cannot be used: {why}.")
	AttachmentAltered  = Conflict("The attachment {name} {arg} is no longer the file that was sent: {why}. " +
		"Ask the attachment's sender to send it again.")

	// Mailboxes and addresses.

	UnknownMailbox      = NotFound("No mailbox {name} {arg}.")
	MailboxNameUnusable = Invalid("The mailbox name {name} {arg} cannot be used: {why}.")
	MailboxNameCase     = Invalid("The mailbox name {name} {arg} differs from your mailbox {other} only in case: " +
		"use {other}, or a different name.")
	MailboxNotYours = Denied("The mailbox {name} {arg} belongs to another user: use one of yours.")
	MailboxNotEmpty = Conflict("The mailbox {name} {arg} is not empty (inbox: {count}, sent: {count 2}). To delete " +
		"it, confirm that its mail should be deleted too.")

	MailboxFull = Unavailable("The mailbox of {=name} is full: it has {count} unread messages, and the limit is {limit} " +
		"({limit of unread mail}). Nothing was sent; try again when {=name} has read some.")

	// Hooks.

	UnknownHook         = NotFound("None of your mailboxes has a hook {name} {arg}.")
	HookProgramRelative = Invalid("{field} specifies the program {name}, which is not an absolute path: use an " +
		"absolute path such as /usr/local/bin/wake.")
	HookTrustMisplaced = Invalid("{field} applies only to the event on_receive: omit it.")
	HookExists         = Exists("This hook already exists as {name} with a time limit of {count} seconds: delete " +
		"it first, or give the new hook a name to keep both.")

	// The disk and the server.

	NothingWritten = Unavailable("{why}; nothing was changed. {look closer}, then try again.")
	WriteUnsure    = Unavailable("{why}, and the server could not undo its partial changes. The operation " +
		"may take effect now, or the next time the server starts. {look closer}, and check the result before you try again.")
	PathUnread = Unavailable("The server currently cannot read {other} in the mail tree ({why}), which it needs " +
		"for this call. Nothing was changed. The server retries automatically: try again in a moment. {if it stays so}")
	EditUncommitted = Unavailable("The file was edited by hand, and the server does not commit the edit because " +
		"{committing of edits} is off. Commit it with git add and git commit, then try again.")

	// The store's own files.

	StoreUnusable = Unavailable("The store {=other} cannot be used: {why}. Set {place of the store} to a writable " +
		"folder.")
	TrustedFileWrong = Unavailable("The store's trusted_keys is {why}. Replace it with a valid file, or remove " +
		"it; until then the server trusts only this store's own seals.")
)
