// Package index defines the index as package maildir uses it: the interface Index, its rows and queries, and Room,
// the space that an answer has for messages. Package indexer implements it.
package index

import (
	"context"
	"strings"
	"time"

	"mailtree/maildir/claim"
	"mailtree/maildir/format"
	"mailtree/maildir/query"
	"mailtree/maildir/tree"
)

// AllProblems is the limit for Index.Problems that returns all problems.
const AllProblems = -1

// Index answers queries about the trees quickly. Package indexer implements it. An Index has all projects of a
// store; project is always a slug.
//
// The index is a function of the tree (docs/architecture.md, "Overview"). Only Ingest and Reconcile write rows, and
// they read the content from the files. All methods are safe for concurrent use. Errors of the database are
// returned unchanged: they are faults, not answers. A missing row is a nil result, not an error.
type Index interface {
	// Attach adds a project; it must be called before any other method for the project. For a known project it only
	// replaces the tree.
	Attach(ctx context.Context, project string, tree *tree.Tree) error

	// Detach removes a project whose tree is gone, with its rows and changes. It records one change, see
	// Change.RemovesProject. No other call for the project may be in progress.
	Detach(ctx context.Context, project string) error

	// Ingest brings the rows of the files at paths up to date with the tree, in one transaction. It returns the
	// changes in the order of recording, without paths that were already up to date. A path that is or was a folder
	// means every file below it. An unreadable file becomes a problem, not an error. A file that cannot be read
	// because of a fault of the machine keeps its rows and is listed in Ingested.Unreadable.
	//
	// written, which may be nil, has the content and state of files that the caller has just written. Ingest uses
	// these instead of reading the files. The next comparison reads those files again whose times do not prove that
	// no other program wrote to them.
	Ingest(ctx context.Context, project string, paths []string, written map[string]tree.Written) (Ingested, error)

	// Reconcile compares the whole tree with the rows (size, times, inode; content if these differ or are
	// too recent to trust) and ingests the differences. progress may be nil; it is called with the number
	// of files seen so far.
	Reconcile(ctx context.Context, project string, progress func(done int)) (Ingested, error)

	// Differing returns the paths at which tree and rows may differ. It changes nothing. Others may write at the
	// same time.
	Differing(ctx context.Context, project string) ([]string, error)

	// Changes returns at most limit changes of all projects recorded after the mark, oldest first.
	Changes(ctx context.Context, after int64, limit int) ([]Change, error)
	// NewestChanges returns at most limit changes of one project that were recorded before the mark, newest first.
	// If before is 0, it starts with the newest change.
	NewestChanges(ctx context.Context, project string, before int64, limit int) ([]Change, error)
	// LastChange returns the mark of the newest change, or 0 if there is none.
	LastChange(ctx context.Context) (int64, error)

	Agent(ctx context.Context, project, name string) (*AgentRow, error) // nil if there is none
	Agents(ctx context.Context, project string) ([]AgentRow, error)     // by name; without Program, Model, Task
	// LastRead returns, by name, the newest time of a read mark of each agent that has one.
	LastRead(ctx context.Context, project string) (map[string]time.Time, error)
	// AgentsAfter returns, by name and with all fields, at most limit agents whose names come after the
	// given name.
	AgentsAfter(ctx context.Context, project, after string, limit int) ([]AgentRow, error)

	// Message returns a message, or nil if there is none. With body it includes as much of the body as room allows.
	Message(ctx context.Context, project, id string, body BodyWanted, room *Room) (*MessageRow, error)
	// FromElsewhere returns, without its body, the oldest message from another domain with that Message-ID
	// (Message.MessageID), or nil if there is none.
	FromElsewhere(ctx context.Context, project, messageID string) (*MessageRow, error)
	// Files returns the paths of a message's files: canonical, copies and marks, including ignored ones.
	Files(ctx context.Context, project, id string) ([]string, error)
	// Body returns n bytes of a message's body, starting at offset. It returns fewer bytes at the end of the body,
	// and "" if there is no such message.
	Body(ctx context.Context, project, id string, offset, n int64) (string, error)
	// ShortBodies returns, by id, the bodies of at most 8 KiB of a thread's messages after a cursor.
	ShortBodies(ctx context.Context, project, thread string, after int64) (map[string]string, error)
	// Thread returns the messages of a thread, oldest first, including the message whose id is the thread's id. It
	// returns [] if there is no such thread.
	Thread(ctx context.Context, q ThreadQuery) ([]MessageRow, error)
	// Keyed returns every message of the sender with that idempotency key, oldest first, with BCC from the sender's
	// copy.
	Keyed(ctx context.Context, project, from, key string) ([]MessageRow, error)

	// IDKeyed returns the id of the newest message with the given idempotency key that the agent received or sent,
	// or "" if there is none.
	IDKeyed(ctx context.Context, project, agent, key string) (string, error)
	// Delivery returns an agent's copy, or nil if there is none. body and room are as for Message.
	Delivery(ctx context.Context, project, agent, id string, body BodyWanted, room *Room) (*Delivery, error)
	// Deliveries returns an agent's copies of the given messages, without bodies, in any order.
	Deliveries(ctx context.Context, project, agent string, ids []string) ([]Delivery, error)
	Inbox(ctx context.Context, q InboxQuery) ([]Delivery, Counts, error)                // newest first, with the counts at the same moment
	OldestUnread(ctx context.Context, project, agent string, n int) ([]Delivery, error) // oldest first, without bodies, at most n
	// Awaiting returns the deliveries to q.Agent that still need an acknowledgement, and, as KindSent, the agent's
	// own messages with such deliveries to others. They are ordered newest first and have no bodies.
	Awaiting(ctx context.Context, q InboxQuery) ([]Delivery, error)
	// Receipts returns, for each message, a receipt of each agent that has a copy, sorted by name, without
	// DeliveredAt.
	Receipts(ctx context.Context, project string, ids ...string) (map[string][]Receipt, error)
	// Attached returns, sorted by name, the agents whose inbox or outbox has a message that lists the attachment
	// with that SHA-1 (in hex).
	Attached(ctx context.Context, project, sum string) (agents []string, err error)
	Counts(ctx context.Context, project, agent string) (Counts, error)

	// Due returns, in any order, two groups of messages. Messages that may wait for an agent are unread, need its
	// acknowledgement, or were received recently. Messages whose recipients the agent may wait for are the agent's
	// own messages that need acknowledgements or were sent recently. Due leaves out archived messages.
	Due(ctx context.Context, q DueQuery) ([]Due, error)
	// Replied returns, by the cursor of each message, who has written in the message's thread after it.
	Replied(ctx context.Context, project, agent string, cursors []int64) (map[int64]Replied, error)
	// Outlines returns, by the cursor of each message, an outline of the message and its thread.
	Outlines(ctx context.Context, project string, cursors []int64) (map[int64]Outline, error)
	Box(ctx context.Context, q BoxQuery) ([]BoxRow, error) // by file name, last first; [] past the end

	// Search finds messages. It returns ErrInvalid for a cursor that it did not return.
	Search(ctx context.Context, q SearchQuery) (Found, error)
	// CountMatches counts the messages that Search finds, up to most. It returns 0 if a prefix search takes too
	// long.
	CountMatches(ctx context.Context, q SearchQuery, most int) (int, error)
	// Threads returns the threads of the messages that a query finds, sorted by the newest of these messages. It
	// returns ErrInvalid for a cursor that it did not return.
	Threads(ctx context.Context, q ThreadsQuery) (FoundThreads, error)

	Claims(ctx context.Context, project string) ([]claim.Row, error) // every valid claim file, live or not, by created, agent, path
	// ClaimsAt returns the valid claims among the files at paths, in the same order.
	ClaimsAt(ctx context.Context, project string, paths []string) ([]claim.Row, error)
	Problems(ctx context.Context, project string, most int) ([]format.Problem, error) // by path; "" for all projects

	// CountProblems counts the problems of a project.
	CountProblems(ctx context.Context, project string) (int, error)

	// Newest returns at most limit of the newest messages of all projects, newest first, with project, id,
	// thread, sender and subject.
	Newest(ctx context.Context, limit int) ([]MessageRow, error)
	// ProjectsWith returns the projects that have the named item: an agent (what is format.KindProfile), a message
	// id (format.KindCanonical) or a thread (format.KindOther). Projects with the most recent activity come first.
	ProjectsWith(ctx context.Context, what format.Kind, name string) ([]string, error)
	// Names completes a prefix: it returns at most limit names of agents (format.KindProfile) or threads
	// (format.KindOther), ignoring case, or ids of messages (format.KindCanonical).
	Names(ctx context.Context, project string, what format.Kind, prefix string, limit int) ([]string, error) // project "" for all
	Stats(ctx context.Context) (Stats, error)
}

// Ingested is the result of an ingest.
type Ingested struct {
	Changes    []Change          // in the order of recording
	Unreadable []tree.Unreadable // by path: their rows are unchanged, and the caller must ingest them again
	Untimed    []string          // marks without a time in the whole tree; only from Reconcile
}

// Change is one difference that Ingest found between the tree and the rows.
type Change struct {
	Seq     int64
	Project string
	Path    string // in the project's tree; "" for the project itself
	Kind    format.Kind
	Op      string // "added", "changed" or "removed"; a canonical message is only added if the index has no copy of it
	Agent   string // the agent of the folder, claim or profile; the sender for canonical messages
	ID      string // message id, if there is one
	Thread  string // the message's thread, if there is one
	At      time.Time
}

// RemovesProject reports whether the change is the removal of the whole project.
func (c *Change) RemovesProject() bool { return c.Kind == format.KindProject && c.Path == "" }

// The values of Change.Op.
const (
	Added   = "added"
	Changed = "changed"
	Removed = "removed"
)

// AgentRow is an agent of the tree. An agent exists as long as there is any file of a known kind below its folder.
// Without a valid profile its other fields are empty.
type AgentRow struct {
	format.Profile
	HasProfile bool      // a valid profile.json
	Status     string    // ready, work, offline; "" if there is no status file
	LastActive time.Time // newest time of sent, read, acknowledged, claimed, inception; zero if none
	Counts
}

// Counts counts one agent's mail.
type Counts struct {
	Total    int `json:"total"`  // messages in the inbox
	Unread   int `json:"unread"` // unread messages in the inbox
	Archived int `json:"-"`      // included in Total, but not shown in lists
	Sent     int `json:"sent_count"`
}

// MessageRow is a message as the index stores it.
type MessageRow struct {
	Project        string    // slug
	format.Message           // BCC is empty unless documented; Body only if requested
	Path           string    // the file from which the content was read
	Cursor         int64     // position in time order; opaque
	Receipts       []Receipt // of its recipients; nil unless documented

	// Astray says that the message was read from the inbox of an agent that is not its recipient, so a user or
	// program put it there by hand. Such a message is not verified.
	Astray bool

	BodyBytes int64 // of the whole body
	BodyFrom  int64 // offset of Body in the whole body
	BodyNext  int64 // offset of the rest of the body, if a Room had no space for it; 0: Body reaches the end
}

// IsQuestion reports whether a message asks for an answer: see IsQuestion.
func (m *MessageRow) IsQuestion() bool { return IsQuestion(m.Subject) }

// IsQuestion reports whether a message with that subject asks for an answer, which means that the subject ends with
// a question mark. A subject that begins with "Re:" is not a question, because a reply repeats the subject of the
// question.
func IsQuestion(subject string) bool {
	subject = strings.TrimSpace(subject)
	ends := strings.HasSuffix(subject, "?") || strings.HasSuffix(subject, "？")
	return ends && WithoutRe(subject) == subject
}

// WithoutRe returns a subject without the "Re:" at the beginning of replies.
func WithoutRe(subject string) string {
	for len(subject) > 3 && strings.EqualFold(subject[:3], "re:") {
		subject = strings.TrimSpace(subject[3:])
	}
	return subject
}

// Readers returns the agents other than the sender who have read the message, from its receipts.
func (m *MessageRow) Readers() []string {
	all := []string{}
	for _, r := range m.Receipts {
		if r.Read && r.Agent != m.From {
			all = append(all, r.Agent)
		}
	}
	return all
}

// BodyWanted says whether to read bodies.
type BodyWanted bool

// Values of BodyWanted.
const (
	WithBody    BodyWanted = true
	WithoutBody BodyWanted = false
)

// Delivery is one agent's copy of a message, with the marks beside it.
type Delivery struct {
	MessageRow        // the canonical content; BCC contains at most the holder
	Agent      string // the holder
	Kind       string // to, cc, bcc; KindSent, KindThread
	CopyPath   string // the inbox copy; "" if there is none
	Marks
	Archived bool // hidden from the inbox's lists
}

// The Kind of a message that is shown to an agent although the agent has no copy. It counts as read.
const (
	KindSent   = "sent"   // the agent sent it
	KindThread = "thread" // it is in a thread that the agent requested
)

// Marks record what a recipient did with its copy.
type Marks struct {
	Read    bool         `json:"read"`
	ReadAt  format.Stamp `json:"read_ts,omitzero"` // zero: unread, or marked by hand without a time
	Acked   bool         `json:"acknowledged"`
	AckedAt format.Stamp `json:"ack_ts,omitzero"`
}

// Receipt is the state of one recipient's delivery.
type Receipt struct {
	Agent       string       `json:"agent"`
	Kind        string       `json:"kind"`                      // to, cc, bcc
	Delivered   bool         `json:"delivered"`                 // the recipient's copy exists
	DeliveredAt format.Stamp `json:"delivered_ts,omitzero"`     // zero: no copy, or not written by this server
	AnnouncedAt format.Stamp `json:"announced_ts,omitzero"`     // zero: no session got a notice, or it is forgotten
	Status      string       `json:"delivery_status,omitempty"` // for an address at another domain: an outgoing.State
	Reply       string       `json:"delivery_reply,omitempty"`  // the last reply of its server
	Marks
}

// InboxQuery selects deliveries of one agent, newest first.
type InboxQuery struct {
	Project    string // slug; set by Box.Inbox
	Agent      string
	Since      time.Time // created after this; zero: all
	UrgentOnly bool      // high and urgent
	UnreadOnly bool
	// Quiet leaves out mail from other domains, except from Trusted senders whose domain authenticated them.
	Quiet    bool
	Trusted  []string // in lower case: addresses, or @DOMAIN for every address of a domain
	Archived bool     // include archived messages
	Bodies   bool
	// AwaitingAck selects deliveries that lack a required acknowledgement: in this inbox, or sent by the agent. The
	// only other fields that apply then are Bodies, Limit and Before.
	AwaitingAck bool
	Limit       int    // default 20, at most 200
	Before      int64  // cursor: only rows before it in time order; 0: start with the newest
	Peek        bool   // another reader than the agent: does not count as the agent's activity
	ReplyTo     string // only replies to this message; "": all
	Room        *Room  // the page ends when it is full; nil: only Limit limits the page
	// ID and Thread are for Box.Inbox and override the other fields. ID selects only this message, received or
	// sent. Thread selects this thread, oldest first; Before is then a cursor of such a page. If both are "", the
	// query selects the inbox.
	ID, Thread string
}

// DueQuery is a query for Index.Due.
type DueQuery struct {
	Project, Agent string
	Since          time.Time // messages since this time are recent
	Most           int       // limit for each kind: unread, urgent and unread, asking, recent, sent and asking, sent
	Open           bool      // leaves out the bcc recipients of the agent's own messages
}

// Due is a message that may wait for an agent, or whose recipients the agent may wait for.
type Due struct {
	Cursor     int64
	Thread     string // its own id if it is not in a thread
	From       string
	Subject    string
	Importance string
	Kind       string   // to, cc, bcc; KindSent: the agent's own
	Unread     bool     // by the agent
	Asks       bool     // an acknowledgement is still missing
	ID         string   // of the agent's own message
	Of         []string // for an own message: with Asks the agents that have not acknowledged, by name; otherwise To
}

// Replied says who has written after a message in its thread.
type Replied struct {
	ByAgent  bool // the agent of the query
	ByOthers bool // anyone other than the message's sender
}

// Outline is the part of a message and its thread that a list of threads shows.
type Outline struct {
	ID        string // of the message
	Created   time.Time
	Beginning string // of the message's body: at most 500 characters
	Subject   string // of the thread's first message
	Messages  int    // in the thread
	Files     int    // attachments of all messages
}

// ThreadQuery selects messages of one thread, oldest first.
type ThreadQuery struct {
	Project  string // slug; set by Project.ThreadPage
	Thread   string
	Bodies   bool
	Receipts bool      // for Project.ThreadPage: with receipts, as in Project.Message
	Agent    string    // for Project.ThreadPage: with this agent's copies; "": without copies
	Limit    int       // 0: all
	After    int64     // cursor: only messages after it in time order; 0: start with the oldest
	MostBody int64     // most bytes of each body, from its beginning; 0: all
	MostText int64     // most bytes of all bodies together; used only with MostBody
	Newest   bool      // for Project.ThreadPage: the newest messages, in time order
	Since    time.Time // only messages created at or after it; zero: all
	Room     *Room     // the page ends when it is full
}

// BoxQuery selects copies in one agent's inbox or outbox.
type BoxQuery struct {
	Project string // slug; set by Box.List
	Agent   string // set by Box.List
	Sent    bool   // the outbox
	ID      string // only this message; "": all
	Prefix  string // only ids with this prefix; ID and Before must then be empty; "": all
	Before  string // only ids whose file names come before this id's file name; "": all

	HideArchived bool // for the inbox: leave out archived messages

	Limit  int // number of rows; 0 means none
	Offset int
}

// BoxRow is one copy in an inbox or outbox.
type BoxRow struct {
	MessageRow        // the canonical content, without its body; BCC only in a sent row
	CopyPath   string // the copy
	Read       bool   // for an inbox row
	Holders    int    // for a sent row: how many agents have it in their inbox
}

// SearchQuery is a search.
type SearchQuery struct {
	query.Query
	Project string // slug
	Rank    bool   // rank the newest matches by bm25; otherwise newest first
	Limit   int
	Cursor  string // only hits after this Hit.Next; "": from the first
}

// Found is the result of a search.
type Found struct {
	Hits   []Hit
	Ranked int  // in a ranked search: how many of the newest matches were ranked; otherwise 0
	Cut    bool // the search stopped early, because it matched words by prefix
}

// ThreadsQuery selects threads.
type ThreadsQuery struct {
	query.Query        // the threads of the messages that it finds; zero: all
	Project     string // slug
	Agent       string // whose unread messages are counted
	Limit       int
	Cursor      string // only threads after this FoundThreads.Next; "": from the first
}

// FoundThreads is a page of threads.
type FoundThreads struct {
	Threads []ThreadRow
	Next    string // cursor of the next page, which repeats no thread of earlier pages; "" at the end
	Cut     bool   // the search stopped early, because it matched words by prefix
}

// ThreadRow is a thread.
type ThreadRow struct {
	MessageRow        // its newest message that the query found; Body is the beginning of the body
	Thread     string // its id
	Title      string // the subject of its first message
	Messages   int    // number of its messages
	Unread     int
	Files      int      // attachments of all messages
	People     []string // the authors of its messages, the latest first
}

// Hit is one message that a search found.
type Hit struct {
	MessageRow
	Snippet string // matched text with **marks** around the terms, on one line
	Matched string // the same text unchanged, with MarkOpen and MarkClose around the terms
	Next    string // cursor of the following hits
}

// FTS5 marks terms with these bytes, which readable bodies do not contain.
const (
	MarkOpen  = "\x01"
	MarkClose = "\x02"
)

// Stats counts the rows of all projects.
type Stats struct {
	Projects, Agents, Messages, Deliveries, Problems int
	Unread                                           int // unread deliveries
}
