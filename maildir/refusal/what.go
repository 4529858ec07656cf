package refusal

// What is one thing that can be wrong.
type What int

// The things that can be wrong, by what they are about. What each means stands in the table of
// sentences, under the same name.
const (
	_ What = iota

	// Projects.

	EmptyProjectKey
	ProjectKeyUnusable
	ProjectKeyRelative
	ProjectKeyUnread
	ProjectKeyIsFile
	ProjectKeyElsewhere
	ProjectIsAbove
	UnknownProject
	ProjectAmbiguous
	UnknownProjectOfGuest
	UnknownProjectInStore
	ProjectRemoved
	TooManyProjects
	ProjectUnread
	ProjectNoFolder

	// Agents.

	UnknownAgent
	UnknownAddress
	NoBroadcast
	AgentNameUnusable
	AgentNameCase
	AgentExists
	AgentsUnread
	HintUnusable
	HintReserved
	HintTaken
	HintChanged
	HintIsSession
	SenderReserved
	NotAnAddress
	StatusUnknown

	// Texts.

	TextTooLong
	TextNotUTF8
	TextBreaksLine
	TextHoldsNUL

	// Messages and threads.

	NoRecipient
	TooManyRecipients
	SubjectTooLong
	ImportanceUnknown
	TextOnlyAndHTML
	TooManyReferences
	BodyUnusable
	MailboxFull
	KeyReused
	MessageTooLarge
	HeaderTooLarge
	FanoutTooLarge
	SenderGone
	UnknownMessage
	MessageIsThread
	UnknownThread
	ThreadOfMessage
	NotInInbox
	OwnMessage
	NotInMailbox
	NowhereFound
	MessageAmbiguous
	IDAmbiguous
	MarkBlocked
	StaysRead
	NothingToUndo
	NotUndone
	ChangedSince
	ClaimTaken
	ClaimOver
	AmendedSince
	AmendmentMalformed
	OffsetBeyond
	OffsetInCharacter

	// Files saved in an outbox.

	SavedMalformed
	SavedSender
	SavedHasID
	SavedUnderID
	SavedEmpty
	SavedAgain
	SavedBlind

	// The history.

	UnknownCommit
	ManyCommits
	NoCommitThen
	OutsideTree

	// Search.

	QueryTooLong
	QueryEmpty
	QueryNoWord
	QueryNoValue
	QuerySeveral
	QueryState
	QueryFilterInside
	QueryTime
	QueryPlain
	QueryMistaken
	QueryWildcard
	QueryForeign
	QueryCut
	SummaryCommandFailed
	CursorUnknown

	// Claims.

	NoPaths
	TooManyPaths
	LeaseOutOfRange
	PathUnclaimable
	ClaimFileBlocked
	ClaimsUnread

	// Attachments.

	TooManyAttachments
	AttachmentUnnamed
	AttachmentUnusable
	FileTooLarge
	FilesTooLarge
	AttachmentAltered
	AttachmentNotForGuest
	UnknownAttachment
	AttachmentBlocked
	NoAttachment
	AttachmentTooLarge
	AttachmentOdd
	ImageLeft
	ImagesUnread
	ImageKept
	ImageRecoded
	ImageNotInline
	ImageURIDamaged

	// Mailboxes and addresses.

	UnknownMailbox
	MailboxNameUnusable
	MailboxNameCase
	MailboxNotYours
	TooManyMailboxes
	MailboxNotEmpty
	MessageIDMalformed
	AddressBreaksLine
	AddressUnclosed
	AddressMalformed
	NoAddress
	AddressElsewhere

	// Hooks.

	UnknownHook
	HookAmbiguous
	HookEventUnknown
	HookProgramRelative
	HookCommandUnusable
	HookCommandTooLong
	HookTrustMisplaced
	HookTimeoutOutOfRange
	HookNameUnusable
	HookExists
	HookNameTaken
	TooManyHooks
	HookNotRunnable

	// The disk and the server.

	NothingWritten
	WriteUnsure
	DiskStuck
	Stopping
	TreeRestless
	PathUnread
	HistoryHeld
	HistoryLate
	HistoryUnwritten
	EditUncommitted

	// The store's own files.

	NotAStore
	StoreUnusable
	StoreUnwritable
	StoreInUse
	StoreUnlockable
	StoreUnread
	LockFileWrong
	LogFileWrong
	SecretFileWrong
	SecretMalformed
	SecretUnread
	SecretUnwritten
	KeyOld
	KeyOldInTheWay
	KeyMalformed
	TrustedFileWrong
	TrustedLockWrong
	TrustedLineUnusable
	PublicKeyMalformed
	PublicKeyUnnamed
	KeyNameUnusable
	KeyIsOwn
	KeyNameTaken
	UnknownTrustedKey
	OwnersFileWrong
	OwnersDamaged
	OwnersTooLarge
	HooksFileWrong
	HooksDamaged
	HooksTooLarge
	HooksLogWrong

	// The guard of a code repository.

	RepositoryPathUnusable
	RepositoryUnread
	RepositoryNoWorkTree
	RepositoryBare
	RepositoryInside

	whats // how many there are, and one
)
