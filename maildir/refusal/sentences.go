package refusal

// sentence is how a refusal is said, and of which kind it is; nil for a note about something that
// was done. Keys in braces stand for facts (Words.fact) and phrases.
type sentence struct {
	kind error
	text string
}

// sentences say what happened, with which value, and what to do. They name no tool, no argument and
// no setting: {field}, {arg} and the phrases do, in each reader's words.
var sentences = [whats]sentence{

	// Projects.

	EmptyProjectKey: {ErrInvalid, "{field} is empty: give the absolute path of the code base, such as /home/me/backend, or a " +
		"project's slug."},
	ProjectKeyUnusable: {ErrInvalid, "{field} {name} is not a path: it is too long or holds control characters."},
	ProjectKeyRelative: {ErrInvalid, "{field} {name} is neither an absolute path such as /home/me/backend nor a project's slug. " +
		"{near} {all projects}"},
	ProjectKeyUnread: {ErrUnavailable, "{field} {name} cannot be looked up now: {why}. Try again."},
	ProjectKeyIsFile: {ErrInvalid, "{field} {name} is a file, or lies below one: give the absolute path of the code base's folder," +
		" such as /home/me/backend."},
	ProjectKeyElsewhere: {ErrInvalid, "{field} {name} lies in {=other}, where no code base is: give the absolute path of the code " +
		"base's folder, such as /home/me/backend."},
	ProjectIsAbove: {nil, "{field} {name} lies in the code base {=other}, whose project it means: paths of claims are relative " +
		"to {=other}."},
	UnknownProject:   {ErrNotFound, "No project {name} {arg}. {near} {all projects} {make a project}"},
	ProjectAmbiguous: {ErrConflict, "Several projects are called {name}: {choices}. {name one project}"},
	UnknownProjectOfGuest: {ErrNotFound, "No project {name}, and only the user who runs the server can make one. Name a project " +
		"that exists."},
	ProjectRemoved:        {ErrNotFound, "The mail of project {name} was removed while the call waited."},
	UnknownProjectInStore: {ErrNotFound, "The store {=other} has no project {name} {arg}. {near} {projects below} {make a project}"},
	TooManyProjects: {ErrTooLarge, "The store has {count} projects, and no more are made from {limit} on ({limit of projects}): " +
		"name one of them {arg}, move a folder that is no longer needed out of the store's {=other}, or start the server with a" +
		" higher limit."},
	ProjectUnread:   {ErrUnavailable, "The mail of the project {name} cannot be read: {why}."},
	ProjectNoFolder: {ErrInvalid, "{=other} is not a folder."},

	// Agents.

	UnknownAgent: {ErrNotFound, "No agent {names} {arg} in project {=other}. {near} {in} {all agents} {make an agent}"},
	NotAnAddress: {ErrInvalid, "No agent is named {name} {arg}, and {cause}."},
	UnknownAddress: {ErrNotFound, "No agent {names} {arg} in project {=other}: a name with a domain is somebody elsewhere, where no " +
		"mail goes yet. {near} {all agents} {make an agent}"},
	NoBroadcast: {ErrNotFound, "No agent of project {=other} is named {name} {arg}, and no name means everybody: list the names. " +
		"Its agents: {choices}."},
	AgentNameUnusable: {ErrInvalid, "The agent name {name} {arg} cannot be used: {why}."},
	AgentNameCase:     {ErrConflict, "The agent name {name} {arg} differs from {other} only in case: use {other}, or another name."},
	AgentExists:       {ErrConflict, "There is an agent {name} {arg} already."},
	AgentsUnread:      {ErrUnavailable, "The agents cannot be read: {why}."},
	HintUnusable:      {nil, "{field} {name} cannot be a name ({why}), so a name was made."},
	HintReserved:      {nil, "{field} {name} is reserved, so a name was made."},
	HintTaken: {nil, "The name {=other} is taken, so a new one was made. If {=other} is you from an earlier session, simply use " +
		"it: an identity needs no second registration."},
	SenderReserved: {ErrInvalid, "{field} {name} is a name under which the server itself speaks: nothing is sent under it. " +
		"Use an agent of another name."},
	HintIsSession: {nil, "You are {=other} already: the session that you run in is that agent, and is told of its mail."},
	HintChanged:   {nil, "{field} {name} was made into a valid name."},
	StatusUnknown: {ErrInvalid, "{field} {name} is none of ready, work, offline: use one of them."},

	// Texts.

	TextTooLong:    {ErrTooLarge, "{field} has {count} bytes, over the limit of {limit}: shorten it."},
	TextNotUTF8:    {ErrInvalid, "{field} {name} is not valid UTF-8: send text."},
	TextBreaksLine: {ErrInvalid, "{field} {name} holds a line break or control character: write it on one line."},
	TextHoldsNUL:   {ErrInvalid, "{field} {name} holds a NUL character: send text."},

	// Messages and threads.

	NoRecipient:       {ErrInvalid, "The message has no recipient {arg}: name at least one agent."},
	TooManyRecipients: {ErrTooLarge, "{count} recipients {arg}, over the limit of {limit}: send it in parts."},
	SubjectTooLong:    {ErrTooLarge, "{field} has {count} bytes, over the limit of {limit}: put the rest into the body."},
	ImportanceUnknown: {ErrInvalid, "{field} {name} is none of low, normal, high, urgent: use one of them."},
	TextOnlyAndHTML:   {ErrInvalid, "A message cannot be text only and have HTML {arg}: choose one."},
	TooManyReferences: {ErrTooLarge, "{count} references {arg}, over the limit of {limit}: name the newest."},
	BodyUnusable:      {ErrInvalid, "{field} is not valid UTF-8 text or holds a NUL character: send text, and files as attachments."},
	MailboxFull: {ErrUnavailable, "The mailbox of {=name} is full: {count} unread messages, the limit is {limit} " +
		"({limit of unread mail}). Nothing was sent; try again when {=name} has read some."},
	KeyReused: {ErrConflict, "{field} {name} was used by {=other} for other content to the same recipients (message {id}): use a " +
		"new one for a new message."},
	MessageTooLarge: {ErrTooLarge, "The message has {count} bytes, over the limit of {limit}: send large text as an attachment or " +
		"in parts."},
	HeaderTooLarge: {ErrTooLarge, "The message's header is too large ({count} bytes): name fewer recipients or attachments."},
	FanoutTooLarge: {ErrTooLarge, "The message with a body of {count} bytes would put {count 3} bytes into inboxes (recipients: " +
		"{count 2}), over the limit of {limit} ({limit of fan-out}). Send the text as an attachment, which is stored once, or " +
		"to fewer recipients at a time."},
	SenderGone: {ErrNotFound, "Message {id} was written by {name}, who is not an agent of project {=other} and has no inbox. " +
		"{answer somebody else}"},
	UnknownMessage:  {ErrNotFound, "No message {name} {arg} in project {=other}. {near} {in} {find messages}"},
	MessageIsThread: {ErrNotFound, "{name} {arg} is a thread of project {=other} and no message. {read a thread}"},
	UnknownThread:   {ErrNotFound, "No thread {name} {arg} in project {=other}. {near} {in} {find threads}"},
	ThreadOfMessage: {nil, "{name} is a message in the thread {=other}, so that thread is answered."},
	NotInInbox:      {ErrNotFound, "Message {name} {arg} is not in the inbox of {=other}. {list the inbox}"},
	OwnMessage: {ErrInvalid, "You ({=other}) sent message {name} {arg}: it is not in your inbox, and its recipients acknowledge it " +
		"({why})."},
	NotInMailbox:     {ErrNotFound, "Message {name} {arg} is not in the mailbox {other}."},
	NowhereFound:     {ErrNotFound, "No {=other} {name} in any project. {look anywhere}"},
	MessageAmbiguous: {ErrConflict, "Message {name} is in several projects: {choices}. {name one project}"},
	IDAmbiguous:      {ErrConflict, "{name} {arg} is short for several messages: {choices}. Write more of the id."},
	MarkBlocked:      {ErrConflict, "{=other} in the mail tree cannot be read as a mark ({why}), so the mark cannot be made: remove it."},
	StaysRead:        {ErrConflict, "Message {name} {arg} is acknowledged, so it stays read."},
	NothingToUndo: {ErrNotFound, "{=other} has lately sent, changed, read, acknowledged, archived, deleted, claimed or released nothing " +
		"here that is not undone yet."},
	NotUndone: {ErrConflict, "The last thing that {=other} did is a {why}, which shares a commit with another one, and is not taken " +
		"back so. {undo something else}"},
	ChangedSince: {ErrConflict, "{=other} has changed since, so that the {why} is not undone. {undo something else}"},
	ClaimTaken: {ErrConflict, "{=other} has claimed {name} or a part of it meanwhile, so that the release is not undone. " +
		"{undo something else}"},
	ClaimOver: {ErrConflict, "The claim on {name} would be over since {why}, so that the release is not undone: claim it again. " +
		"{undo something else}"},
	AmendedSince:       {ErrConflict, "Message {name} {arg} was changed by somebody else meanwhile. Read it again, and make the change anew."},
	AmendmentMalformed: {ErrInvalid, "The changed text cannot be taken: {why}."},
	OffsetBeyond:       {ErrInvalid, "{field} is {count}, but the text has {limit} bytes: {go on}."},
	OffsetInCharacter:  {ErrInvalid, "{field} is {count}, which is within a character of the text: {go on}."},

	// Files saved in an outbox.

	SavedMalformed: {ErrInvalid, "It is no message: {why}."},
	SavedSender: {ErrInvalid, "{field} is {name}, but the file lies in the outbox of {other}: leave the sender out, or move the " +
		"file."},
	SavedHasID: {ErrConflict, "It has the id {name}, as mail has that was sent: take the id out to send it as a new message."},
	SavedUnderID: {ErrConflict, "{name} was sent before, and a file of that name is a copy of it: give the file another name to " +
		"send it as a new message."},
	SavedEmpty: {ErrInvalid, "It has no text: write it below the header."},
	SavedAgain: {ErrConflict, "The same was sent before, as message {id}, and is not sent twice: change the text, or remove the " +
		"file."},
	SavedBlind: {ErrNotFound, "A name in bcc is no agent's of project {=other}. It is not repeated here, where others can read it: " +
		"mend bcc, or take the name out."},

	// The history.

	UnknownCommit: {ErrNotFound, "The history has no commit {name} {arg}: give a name as the history shows it, or a time."},
	ManyCommits:   {ErrInvalid, "Several commits begin with {name} {arg}: give more of the name."},
	NoCommitThen:  {ErrNotFound, "{field} is {=name}, and the history begins at {=other}: give a time from then on."},
	OutsideTree:   {ErrInvalid, "{name} is no path below the project's mail: give one such as agents/BlueLake or messages/2026."},

	// Search.

	QueryTooLong: {ErrTooLarge, "{field} has {count} bytes, over the limit of {limit}: keep it to a few words."},
	QueryEmpty: {ErrInvalid, "{field} is empty: give words, \"a phrase\", pre*, AND, OR, NOT, or from: to: cc: subject: " +
		"thread: importance: after: before:."},
	QueryNoWord: {ErrInvalid, "{field} {name} has no letter or digit, and nothing else is searched for: give a word of what you " +
		"look for, or * for every message."},
	QueryNoValue: {ErrInvalid, "{name} {arg} has no value: write it as {=name}VALUE, or quote the word to search for it."},
	QuerySeveral: {ErrInvalid, "{name} {arg} is not one value: each filter has one. Write {=other}."},
	QueryState: {ErrInvalid, "{name} {arg} is not searched: neither what an agent has read nor what is attached is. Search by words, " +
		"from: to: cc: subject: thread: importance: after: before:. {list unread}"},
	QueryFilterInside: {ErrInvalid, "{name} {arg} concerns the whole query: write it once, outside of OR, NOT and their " +
		"parentheses, or search twice."},
	QueryTime: {ErrInvalid, "{name} {arg} is not a time: write after:2025-10-23 or after:2025-10-23T15:22:14Z."},
	QueryPlain: {nil, "{field} has quotes, parentheses or operators that do not fit together, so every word of it was searched for as " +
		"it stands: close each quote and parenthesis, and put a word on both sides of AND and OR."},
	QueryMistaken: {nil, "{=name} is no filter, so it was searched for as it stands: to filter, write {=other}. In quotes it is text."},
	QueryWildcard: {nil, "{name} {arg} was searched for as the words in it: only a * at the end of a word stands for more letters, as in " +
		"dep*."},
	QueryForeign: {nil, "Nothing was found. {name} {arg} was searched for as the words in it, because it means nothing else here: " +
		"use words, \"phrases\", prefix*, AND OR NOT -word ( ), and from: to: cc: subject: body: thread: importance: after: before:."},
	QueryCut: {nil, "The search took too long, so this is what was found so far: use whole words, or beginnings of three letters, " +
		"as in dep*."},
	SummaryCommandFailed: {nil, "The command that summarizes threads failed ({why}), so this is made from the structure of the " +
		"messages alone."},
	CursorUnknown: {ErrInvalid, "{field} {name} is not one that an earlier page gave: pass it as it was given, or leave it out."},

	// Claims.

	NoPaths: {ErrInvalid, "No paths {arg}: name at least one path or glob relative to the code repository's root, such as " +
		"app/api/*.py."},
	TooManyPaths:     {ErrTooLarge, "{count} paths {arg}, over the limit of {limit}: claim folders."},
	LeaseOutOfRange:  {ErrInvalid, "A lease of {=name} {arg} is out of range: 60 seconds to 30 days (2592000)."},
	PathUnclaimable:  {ErrInvalid, "The path {name} {arg} cannot be claimed: {why}."},
	ClaimFileBlocked: {ErrConflict, "The claim file {=other} is in the way and cannot be read ({why}): remove it."},
	ClaimsUnread:     {ErrUnavailable, "The claims cannot be read: {why}."},

	// Attachments.

	TooManyAttachments: {ErrTooLarge, "{count} attachments {arg}, over the limit of {limit}: send them in parts."},
	AttachmentUnnamed:  {ErrInvalid, "The attachment {name} {arg} has an empty or invalid name: give a path."},
	AttachmentUnusable: {ErrInvalid, "The attachment {name} {arg} cannot be used: {why}."},
	FileTooLarge:       {ErrTooLarge, "The file {name} {arg} has {count} bytes, over the limit of {limit} for one file."},
	FilesTooLarge: {ErrTooLarge, "The file {name} {arg} has {count} bytes, and with it this message would bring along more than " +
		"the limit of {limit} bytes: send it in another one."},
	AttachmentAltered: {ErrConflict, "The attachment {name} {arg} is not what was sent under that name: the file holds {why}. " +
		"Nothing was sent; ask its sender for it again."},
	AttachmentNotForGuest: {ErrNotFound, "The attachment {name} {arg} cannot be read for you, since the server lends its rights to" +
		" no other user: you can attach files of your own only, of at most {limit} MiB, in the project's code base (the top of " +
		"a Git work tree) or {folders of attachments}; no hidden folders, no links. Put the text into the body, or have the " +
		"user who runs the server send the file."},
	UnknownAttachment: {ErrNotFound, "The attachment {name} {arg} was not found, or is not where attachments may be read from: the" +
		" project's code base (the top of a Git work tree), the mail tree, or {folders of attachments}; no hidden folders, no " +
		"links."},
	AttachmentBlocked: {ErrConflict, "The attachment {name} {arg} cannot be stored because of what lies at {=other} in the mail " +
		"tree: {why}. Nothing was sent. Move that file away {list of such files}, and send again."},
	NoAttachment: {ErrNotFound, "No attachment {name} in project {=other}: give the sha1 of one that a message names."},
	AttachmentTooLarge: {ErrTooLarge, "The attachment {name} has {count} bytes, over the limit of {limit} for one answer: read the " +
		"file {=other}."},
	AttachmentOdd: {nil, "The attachment {name} {arg} is not stored as its name says: {why}."},
	ImageLeft:     {nil, "{cause} So {field} still names the image as it was written."},
	ImagesUnread: {nil, "{field} is too long to find every image in it: those that still have the name that you wrote were not " +
		"sent along."},
	ImageKept:       {nil, "The image {name} {arg} was not made WebP: {why}."},
	ImageRecoded:    {nil, "The image {name} {arg} was made WebP with some loss of detail: {count} bytes instead of {limit}."},
	ImageNotInline:  {nil, "The image {name} has {count} bytes, over the limit of {limit} for images in {field}, so it is a file."},
	ImageURIDamaged: {ErrInvalid, "The data URI {name} {arg} cannot be decoded."},

	// Mailboxes and addresses.

	UnknownMailbox:      {ErrNotFound, "No mailbox {name} {arg}."},
	MailboxNameUnusable: {ErrInvalid, "The mailbox name {name} {arg} cannot be used: {why}."},
	MailboxNameCase: {ErrInvalid, "The mailbox name {name} {arg} differs from your mailbox {other} only in case: use that one, or " +
		"another name."},
	MailboxNotYours: {ErrDenied, "The mailbox {name} {arg} belongs to somebody else: use one of yours."},
	TooManyMailboxes: {ErrTooLarge, "User {=name} owns {count} mailboxes, and the limit is {limit}: delete one that is no longer " +
		"needed, then try again."},
	MailboxNotEmpty: {ErrConflict, "The mailbox {name} {arg} is not empty: {count} in its inbox, {count 2} sent. It is deleted " +
		"only where its mail is meant to be deleted too."},
	MessageIDMalformed: {ErrInvalid, "{name} {arg} is no Message-ID and no id of a message: write it such as {=other} or " +
		"msg_20251023_3a51c0f7b3dc3a7e."},
	AddressBreaksLine: {ErrInvalid, "The address {name} {arg} holds a line break or control character: write addresses on one " +
		"line, separated by commas."},
	AddressUnclosed: {ErrInvalid, "A quotation mark in {name} {arg} is not closed: write addresses such as \"Bob\" <{=other}>, " +
		"separated by commas."},
	AddressMalformed: {ErrInvalid, "{name} {arg} is no address: write one such as {=other} or \"Bob\" <{=other}>, several separated " +
		"by commas."},
	NoAddress: {ErrInvalid, "No recipient in {name} {arg}: give an address such as {=other}, several separated by commas."},
	AddressElsewhere: {ErrUnavailable, "This server has no gateway to other domains ({gateway}), so mail reaches only addresses at" +
		" {=other}, and nothing was sent: {names} cannot be reached."},

	// Hooks.

	UnknownHook:      {ErrNotFound, "No hook {name} {arg} on a mailbox of yours."},
	HookAmbiguous:    {ErrConflict, "{count} hooks of several users have the name {name}: take the right one out of hooks.json."},
	HookEventUnknown: {ErrInvalid, "{field} {name} is none of on_receive, after_send: use one of them."},
	HookProgramRelative: {ErrInvalid, "{field} names the program {name}, which is not an absolute path: give one, such as " +
		"/usr/local/bin/wake."},
	HookCommandUnusable:   {ErrInvalid, "{field} holds a NUL character or invalid UTF-8: send text."},
	HookCommandTooLong:    {ErrTooLarge, "{field} has {count} bytes, over the limit of {limit}: put it into a script."},
	HookTrustMisplaced:    {ErrInvalid, "{field} is for the event on_receive only: leave it out."},
	HookTimeoutOutOfRange: {ErrInvalid, "{field} is {count}: it must be from 1 to {limit}."},
	HookNameUnusable: {ErrInvalid, "The hook name {name} {arg} cannot be used: letters, digits, '.', '_' and '-', at most {limit}," +
		" the first a letter or digit."},
	HookExists: {ErrExist, "This hook exists as {name} with a time limit of {count} seconds: delete it first, or give this one a " +
		"name to have both."},
	HookNameTaken: {ErrExist, "The hook name {name} {arg} is taken by another hook, on mailbox {other}: pass another name, or " +
		"delete that hook first."},
	TooManyHooks: {ErrTooLarge, "The mailbox {name} has {limit} hooks, which is the limit: delete one that is no longer needed."},
	HookNotRunnable: {ErrUnavailable, "Hooks run as the owner of the mailbox (uid {count}), which this server cannot do: it runs " +
		"as uid {count 2}, not as root."},

	// The disk and the server.

	NothingWritten: {ErrUnavailable, "{why}; nothing was changed. {look closer}, then try again."},
	WriteUnsure: {ErrUnavailable, "{why}, and what was written could not be taken back: it may be done now, or after the server's " +
		"next start. {look closer}, and look before you try again."},
	DiskStuck: {ErrUnavailable, "The disk does not answer; whether the operation still happens is not known. {look closer}, and " +
		"look before you try it again (a message with an idempotency key can be sent again, it is delivered once)."},
	Stopping:     {ErrUnavailable, "The server is stopping; nothing was changed. Try again when it is back."},
	TreeRestless: {ErrUnavailable, "The files of this mail change faster than they can be read; nothing was changed. Try again."},
	PathUnread: {ErrUnavailable, "{other} in the mail tree cannot be looked at now ({why}), and the answer depends on it; nothing " +
		"was changed. The server looks again by itself: try again in a moment. {if it stays so}"},
	HistoryHeld:      {ErrUnavailable, "{why}"},
	HistoryLate:      {ErrUnavailable, "The audit did not get its turn in time; try again."},
	HistoryUnwritten: {ErrUnavailable, "The audit could not be written; see the server's log, then try again."},
	EditUncommitted: {ErrUnavailable, "The file was changed by hand and that change is not in Git: commit it with git add and git " +
		"commit ({committing of edits} is off, so the server does not), then try again."},

	// The store's own files.

	NotAStore: {ErrInvalid, "The folder {=other} holds other files and no mail store: set {place of the store} to an empty or new " +
		"folder."},
	StoreUnusable: {ErrUnavailable, "The store {=other} cannot be used: {why}. Set {place of the store} to a folder that can be " +
		"written."},
	StoreUnwritable: {ErrUnavailable, "The store {=other} cannot be written: {why}. Check its permissions and whether the disk is " +
		"full or read-only, or set {place of the store} to another folder."},
	StoreInUse: {ErrConflict, "The store {=other} is in use by process {=name}: use that one, stop it, or set {place of the store}" +
		" to another folder."},
	StoreUnlockable: {ErrUnavailable, "The store {=other} cannot be locked: {why}."},
	StoreUnread:     {ErrUnavailable, "The store cannot be read: {why}."},
	LockFileWrong:   {ErrUnavailable, "{=other} is {why}: no server can take the store with it: remove it, and start again."},
	LogFileWrong:    {ErrUnavailable, "{=other} is {why}: a server in the background cannot log there: move it elsewhere."},
	SecretFileWrong: {ErrUnavailable, "{=other} is {why}: put the file there that belongs there, or remove this one and a new one " +
		"is made."},
	SecretMalformed: {ErrUnavailable, "{=other} does not hold at least 32 hex digits: mend it, or delete it and a new one is made."},
	SecretUnread:    {ErrUnavailable, "The store's {=other} cannot be read: {why}."},
	SecretUnwritten: {ErrUnavailable, "The store's {=other} could not be written: {why}."},
	KeyOld:          {ErrUnavailable, "The store's key is of an older version; the next start of the server makes a new one."},
	KeyOldInTheWay:  {ErrUnavailable, "{=other} is of an older version and cannot be renamed: {why}."},
	KeyMalformed: {ErrUnavailable, "{=other} does not hold a private key of this store: mend it, or delete it and a new one is " +
		"made; mail that it sealed is shown as unverified then."},
	TrustedFileWrong: {ErrUnavailable, "The store's trusted_keys is {why}: put the right file there, or remove it; until then only" +
		" this store's own seals are believed."},
	TrustedLockWrong:    {ErrUnavailable, "The store's trusted_keys.lock is {why}: remove it."},
	TrustedLineUnusable: {ErrInvalid, "The store's trusted_keys, line {count}: {cause}"},
	PublicKeyMalformed:  {ErrInvalid, "{name} is not a public key, which has 43 letters, digits, - and _. {show a key}"},
	PublicKeyUnnamed:    {ErrInvalid, "The public key {=other} has no name behind it: write what you call that machine, such as laptop."},
	KeyNameUnusable: {ErrInvalid, "The name {name} of a trusted key is over {limit} bytes or holds control characters: take " +
		"another one."},
	KeyIsOwn: {ErrInvalid, "The public key {=name} is this store's own, which is always believed."},
	KeyNameTaken: {ErrConflict, "The name {name} is taken by the key {=other}: take another name, or forget that key first " +
		"{forget a key}."},
	UnknownTrustedKey: {ErrNotFound, "No trusted key is named {name}. {list the keys}"},
	OwnersFileWrong:   {ErrUnavailable, "The store's owners.json is {why}: put the right file there; until then no mailbox has an owner."},
	OwnersDamaged:     {ErrUnavailable, "The store's owners.json is damaged ({why}): mend it; until then no mailbox has an owner."},
	OwnersTooLarge: {ErrTooLarge, "The store's owners.json would have {count} bytes, over the limit of {limit}: delete mailboxes " +
		"that are no longer needed."},
	HooksFileWrong: {ErrUnavailable, "The store's hooks.json is {why}: put the right file there, or remove this one; until then no" +
		" hook runs."},
	HooksDamaged: {ErrUnavailable, "The store's hooks.json is damaged ({why}): mend it; until then no hook runs."},
	HooksTooLarge: {ErrTooLarge, "The store's hooks.json would have {count} bytes, over the limit of {limit}: delete hooks that " +
		"are no longer needed."},
	HooksLogWrong: {ErrUnavailable, "The store's hooks.log is {why}: put the file there that belongs there, or nothing. Until then " +
		"no hook runs."},

	// The guard of a code repository.

	RepositoryPathUnusable: {ErrInvalid, "{name} {arg} cannot be the path of a repository: give the path of a Git work tree."},
	RepositoryUnread:       {ErrNotFound, "{name} {arg} is no folder that can be read: give the path of a Git work tree."},
	RepositoryNoWorkTree:   {ErrInvalid, "{name} {arg} is no Git work tree that can be used here ({why}): give the path of one."},
	RepositoryBare: {ErrInvalid, "{name} {arg} is a bare repository: nobody commits there, so that there is nothing to guard. " +
		"Install the guard in its work trees."},
	RepositoryInside: {ErrInvalid, "{name} {arg} lies in the .git folder of a repository: give the path of its work tree."},
}

// phrases are the keys that a reader's Words give a meaning, and what they mean in a log.
var phrases = map[string]string{
	"make a project":         "",
	"make an agent":          "",
	"find agents":            "",
	"find messages":          "",
	"find threads":           "",
	"read a thread":          "",
	"list unread":            "",
	"list the inbox":         "",
	"look anywhere":          "",
	"answer somebody else":   "",
	"name one project":       "Name one of them.",
	"go on":                  "go on where the answer before ended",
	"limit of projects":      "the limit of projects",
	"limit of unread mail":   "the depth of a mailbox",
	"limit of fan-out":       "the limit of one message in all inboxes",
	"folders of attachments": "the folders that are set up for attachments",
	"gateway":                "none is set up, or this version has no use for it",
	"committing of edits":    "committing of edits",
	"place of the store":     "the store's place",
	"look closer":            "See the server's log",
	"if it stays so":         "See the server's log if it stays so.",
	"list of such files":     "",
	"show a key":             "",
	"forget a key":           "",
	"list the keys":          "",
	"undo something else":    "",
}
