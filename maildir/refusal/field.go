package refusal

// Field is a field of a request. Its text is the noun for the field, as used in logs. Words.Args may replace the noun
// with the name of an argument.
type Field string

// These are the fields of requests.
const (
	Project     Field = "the project's key"
	Agent       Field = "the agent's name"
	From        Field = "the sender"
	Recipients  Field = "the list of recipients"
	To          Field = "the recipient" // a recipient in one of the lists
	CC          Field = "the cc recipient"
	BCC         Field = "the bcc recipient"
	Subject     Field = "the subject"
	Body        Field = "the body"
	HTML        Field = "the HTML"
	Importance  Field = "the importance"
	Thread      Field = "the thread's id"
	Key         Field = "the idempotency key"
	InReplyTo   Field = "the id of the message replied to"
	References  Field = "the list of references"
	Attachments Field = "the list of attachments"
	Message     Field = "the message's id"
	Offset      Field = "the offset"
	FileOffset  Field = "the offset in the file"
	Query       Field = "the query"
	Cursor      Field = "the cursor"
	Paths       Field = "the list of paths"
	Lease       Field = "the length of the lease"
	Reason      Field = "the reason"
	Program     Field = "the program"
	Model       Field = "the model"
	Task        Field = "the task"
	NameHint    Field = "the requested name"
	Mailbox     Field = "the mailbox's name"
	HookEvent   Field = "the hook's event"
	HookCommand Field = "the hook's command"
	HookName    Field = "the hook's name"
	HookTimeout Field = "the hook's time limit"
	HookTrust   Field = "the hook's setting for untrusted mail"
	Status      Field = "the status"
	Repository  Field = "the repository's path"
	Moment      Field = "the time"
)

// OfRecipients reports whether the field contains recipients.
func (f Field) OfRecipients() bool { return f == Recipients || f == To || f == CC || f == BCC }

// Fields lists all fields.
func Fields() []Field {
	return []Field{
		Project, Agent, From, Recipients, To, CC, BCC, Subject, Body, HTML, Importance, Thread, Key, InReplyTo, References, Attachments, Message,
		Offset, FileOffset, Query, Cursor, Paths, Lease, Reason, Program, Model, Task, NameHint, Mailbox,
		HookEvent, HookCommand, HookName, HookTimeout, HookTrust, Status, Repository, Moment,
	}
}
