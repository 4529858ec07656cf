// Package index defines the index as package maildir sees it. It contains the interface Index, the index's rows and
// queries, and Room, the space for messages in a response. Package indexer implements the interface.
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

// AllProblems is a limit for Index.Problems that selects all problems.
const AllProblems = -1

// Index answers queries about the trees. Package indexer implements it. An Index covers all projects of a store. The
// project parameter is always a slug.
//
// The index is a function of the tree (docs/explanation/architecture.md, "Overview"). Only Ingest and Reconcile write
// rows, and they read the content from the files. All methods are safe for concurrent use. If a row is missing, the
// result is nil, without an error. Database errors are returned unchanged.
type Index interface {
	// Attach adds a project. It must be called before any other method for that project. If the index already has the
	// project, Attach only replaces the tree.
	Attach(ctx context.Context, project string, tree *tree.Tree) error

	// Detach removes a project whose tree no longer exists, including its rows and changes. It records one change (see
	// Change.RemovesProject). No other call for the project may be in progress.
	Detach(ctx context.Context, project string) error

	// Ingest brings the rows of the files at paths up to date with the tree, in one transaction. It returns the changes
	// in the order in which they are recorded, without paths that were already up to date. For a path that is or was a
	// folder, Ingest processes every file below it. An invalid file becomes a problem, not an error. If a machine fault
	// prevents reading a file, the file keeps its rows and is listed in Ingested.Unreadable.
	//
	// If written is not nil, it contains the content and state of files that the caller has just written. Ingest uses
	// this content and state instead of reading the files. If the file's times do not rule out a later write by another
	// program, the next comparison reads the file again.
	Ingest(ctx context.Context, project string, paths []string, written map[string]tree.Written) (Ingested, error)

	// Reconcile compares the whole tree with the rows, and ingests the differences. It compares each file's size, times
	// and inode. If they differ or are too recent to trust, it also compares the content. progress is called with the
	// number of files seen so far, and may be nil.
	Reconcile(ctx context.Context, project string, progress func(done int)) (Ingested, error)

	// Differing returns the paths at which the tree and the rows may differ. It changes nothing, and other callers may
	// write concurrently.
	Differing(ctx context.Context, project string) ([]string, error)

	// Changes returns up to limit changes of all projects whose number (Change.Seq) is above after, oldest first.
	Changes(ctx context.Context, after int64, limit int) ([]Change, error)
	// NewestChanges returns up to limit changes of one project whose number is below before, newest first. If
	// before is 0, it starts with the newest change.
	NewestChanges(ctx context.Context, project string, before int64, limit int) ([]Change, error)
	// LastChange returns the number of the newest change, or 0 if there is none.
	LastChange(ctx context.Context) (int64, error)

	Agent(ctx context.Context, project, name string) (*AgentRow, error) // nil if there is none
	Agents(ctx context.Context, project string) ([]AgentRow, error)     // sorted by name, without Program, Model and Task
	// LastRead returns the time of each agent's newest read mark, by agent name. It omits agents without read marks.
	LastRead(ctx context.Context, project string) (map[string]time.Time, error)
	// AgentsAfter returns up to limit agents whose names come after the given name, sorted by name, with all fields
	// set.
	AgentsAfter(ctx context.Context, project, after string, limit int) ([]AgentRow, error)

	// Held returns the agents that have a valid hold, even an expired one, sorted by name. Program, Model and Task are
	// not set.
	Held(ctx context.Context, project string) ([]AgentRow, error)

	// Message returns a message, or nil if there is none. If the body is wanted, the result includes as much of the
	// body as room allows.
	Message(ctx context.Context, project, id string, body BodyWanted, room *Room) (*MessageRow, error)
	// FromElsewhere returns the oldest message from another domain with the given Message-ID (Message.MessageID),
	// without its body. It returns nil if there is none.
	FromElsewhere(ctx context.Context, project, messageID string) (*MessageRow, error)
	// Files returns the paths of all files that belong to a message: its canonical file, its copies and its marks,
	// including ignored files.
	Files(ctx context.Context, project, id string) ([]string, error)
	// Body returns n bytes of a message's body, starting at offset. It returns fewer bytes if the body ends earlier,
	// and "" if there is no such message.
	Body(ctx context.Context, project, id string, offset, n int64) (string, error)
	// ShortBodies returns the bodies of a thread's messages after a cursor, by message id. It omits bodies larger than
	// 8 KiB.
	ShortBodies(ctx context.Context, project, thread string, after int64) (map[string]string, error)
	// Thread returns the messages of a thread, oldest first. The message whose id is the thread's id is included.
	// Thread returns [] if there is no such thread.
	Thread(ctx context.Context, q ThreadQuery) ([]MessageRow, error)
	// Keyed returns all of the sender's messages with the given idempotency key, oldest first. BCC is taken from the
	// sender's copy.
	Keyed(ctx context.Context, project, from, key string) ([]MessageRow, error)

	// IDKeyed returns the id of the newest message with the given idempotency key that the agent received or sent. It
	// returns "" if there is none.
	IDKeyed(ctx context.Context, project, agent, key string) (string, error)
	// Delivery returns an agent's copy of a message, or nil if there is none. body and room are as for Message.
	Delivery(ctx context.Context, project, agent, id string, body BodyWanted, room *Room) (*Delivery, error)
	// Deliveries returns an agent's copies of the given messages, without bodies, in any order.
	Deliveries(ctx context.Context, project, agent string, ids []string) ([]Delivery, error)
	// Inbox returns deliveries, newest first, and the agent's counts. Both are from the same snapshot of the index.
	Inbox(ctx context.Context, q InboxQuery) ([]Delivery, Counts, error)
	// OldestUnread returns at most n unread deliveries, oldest first, without bodies.
	OldestUnread(ctx context.Context, project, agent string, n int) ([]Delivery, error)
	// Awaiting returns the deliveries to q.Agent that still need an acknowledgment. It also returns, as KindSent, the
	// agent's own messages that other agents still have to acknowledge. The result is sorted newest first and has no
	// bodies.
	Awaiting(ctx context.Context, q InboxQuery) ([]Delivery, error)
	// Receipts returns, for each message, one receipt for each agent that has a copy, sorted by name. DeliveredAt is
	// not set.
	Receipts(ctx context.Context, project string, ids ...string) (map[string][]Receipt, error)
	// Attached returns the agents with a message in their inbox or outbox that lists the attachment with the given
	// SHA-1 (in hex). The agents are sorted by name.
	Attached(ctx context.Context, project, sum string) (agents []string, err error)
	Counts(ctx context.Context, project, agent string) (Counts, error)

	// Due returns two groups of messages, in any order. The first group contains messages that may be waiting for the
	// agent: they are unread, need the agent's acknowledgment, or were received recently. The second group contains the
	// agent's own messages whose recipients the agent may be waiting for: they need acknowledgments or were sent
	// recently. Due omits archived messages.
	Due(ctx context.Context, q DueQuery) ([]Due, error)
	// Replied reports who has written in a message's thread since that message. The keys are the messages' cursors.
	Replied(ctx context.Context, project, agent string, cursors []int64) (map[int64]Replied, error)
	// Hidden returns the threads that the agent has hidden until a time after now. The keys are the threads' ids.
	Hidden(ctx context.Context, project, agent string, now time.Time) (map[string]Hidden, error)
	// Asked returns up to limit messages that were created since the given time and ask for an answer, newest first.
	Asked(ctx context.Context, project string, since time.Time, limit int) ([]Asked, error)
	// Acts returns up to limit times at which an agent wrote, read or acknowledged a message, newest first.
	Acts(ctx context.Context, project, agent string, limit int) ([]time.Time, error)
	// Outlines returns an outline of each message and its thread. The keys are the messages' cursors.
	Outlines(ctx context.Context, project string, cursors []int64) (map[int64]Outline, error)
	Box(ctx context.Context, q BoxQuery) ([]BoxRow, error) // sorted by file name in descending order; empty if the offset is past the end

	// Search finds messages. It returns ErrInvalid for a cursor that it did not return.
	Search(ctx context.Context, q SearchQuery) (Found, error)
	// CountMatches returns the number of messages that Search would find, or most if there are more. It returns 0 if a
	// prefix search takes too long.
	CountMatches(ctx context.Context, q SearchQuery, most int) (int, error)
	// Threads returns the threads of the messages that a query finds, sorted by the newest of these messages. It
	// returns ErrInvalid for a cursor that it did not return.
	Threads(ctx context.Context, q ThreadsQuery) (FoundThreads, error)

	// Claims returns the claims in all valid claim files, live or not, sorted by created, agent and path.
	Claims(ctx context.Context, project string) ([]claim.Row, error)
	// ClaimsAt returns the valid claims in the files at paths, sorted as in Claims.
	ClaimsAt(ctx context.Context, project string, paths []string) ([]claim.Row, error)
	// Problems returns a project's problems, or those of all projects if project is "", sorted by path. most limits the
	// number of results. AllProblems means no limit.
	Problems(ctx context.Context, project string, most int) ([]format.Problem, error)

	// CountProblems counts a project's problems.
	CountProblems(ctx context.Context, project string) (int, error)

	// Newest returns up to limit of the newest messages in all projects, newest first. Only project, id, thread, sender
	// and subject are set.
	Newest(ctx context.Context, limit int) ([]MessageRow, error)
	// ProjectsWith returns the projects that contain the named item, most recently active first. The argument what is
	// format.KindProfile for an agent, format.KindCanonical for a message id, and format.KindOther for a thread.
	ProjectsWith(ctx context.Context, what format.Kind, name string) ([]string, error)
	// Names completes a prefix. It returns up to limit names of agents (format.KindProfile) or threads
	// (format.KindOther), ignoring case, or up to limit message ids (format.KindCanonical). An empty project means all
	// projects.
	Names(ctx context.Context, project string, what format.Kind, prefix string, limit int) ([]string, error)
	Stats(ctx context.Context) (Stats, error)
}

// Ingested is the result of an ingest.
type Ingested struct {
	Changes    []Change          // in the order in which they were recorded
	Unreadable []tree.Unreadable // unreadable files, sorted by path; their rows are unchanged, and the caller must ingest the files again
	Untimed    []string          // all marks in the tree that have no time; set only by Reconcile
}

// Change is one difference that Ingest found between the tree and the rows.
type Change struct {
	Seq     int64
	Project string
	Path    string // path in the project's tree; empty for the project itself
	Kind    format.Kind
	Op      string // Added, Changed or Removed; a canonical message is Added only if the index has no copy of it
	Agent   string // the agent of the folder, claim or profile; the sender for canonical messages
	ID      string // message id, if any
	Thread  string // the message's thread, if any
	At      time.Time
}

// RemovesProject reports whether the change removes the whole project.
func (c *Change) RemovesProject() bool { return c.Kind == format.KindProject && c.Path == "" }

// The values of Change.Op.
const (
	Added   = "added"
	Changed = "changed"
	Removed = "removed"
)

// AgentRow is an agent in the tree. An agent exists as long as its folder contains any file of a known kind. If it has
// no valid profile, the fields of Profile except Name are empty.
type AgentRow struct {
	format.Profile
	HasProfile bool         // a valid profile.json exists
	Status     string       // ready, work, offline; empty if there is no status file
	Hold       *format.Hold // the hold, even an expired one; nil if there is no valid hold
	LastActive time.Time    // when the agent was created, or last sent, read, acknowledged or claimed something; zero if none of these
	// LastSubject is the subject of the newest message that the agent sent, or empty if there is none.
	LastSubject string
	Counts
}

// Counts contains the number of an agent's messages, by state.
type Counts struct {
	Total    int `json:"total"`  // messages in the inbox
	Unread   int `json:"unread"` // unread messages in the inbox
	Archived int `json:"-"`      // included in Total, but not shown in lists
	Sent     int `json:"sent_count"`
}

// MessageRow is a message as the index stores it.
type MessageRow struct {
	Project        string    // slug
	format.Message           // BCC is empty unless documented otherwise; Body is set only if requested
	Path           string    // the file from which the content was read
	Cursor         int64     // position in chronological order; opaque
	Question       bool      // whether the message asks its recipients for an answer (see package question)
	Receipts       []Receipt // the recipients' receipts; nil unless documented otherwise

	// Astray means that the message was read from the inbox of an agent that is not a recipient, so a user or program
	// must have put it there. Such a message is not verified.
	Astray bool

	BodyBytes int64 // size of the whole body
	BodyFrom  int64 // offset of Body in the whole body
	BodyNext  int64 // offset at which the body continues if it did not fit in a Room; 0 if Body reaches the end
}

// WithoutRe returns a subject without the "Re:" that begins a reply's subject.
func WithoutRe(subject string) string {
	for len(subject) > 3 && strings.EqualFold(subject[:3], "re:") {
		subject = strings.TrimSpace(subject[3:])
	}
	return subject
}

// Readers returns the agents other than the sender who have read the message, according to its receipts.
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

// The values of BodyWanted.
const (
	WithBody    BodyWanted = true
	WithoutBody BodyWanted = false
)

// Delivery is one agent's copy of a message, with its marks.
type Delivery struct {
	MessageRow        // the canonical content; BCC is empty or lists only the holder
	Agent      string // the holder
	Kind       string // to, cc, bcc, KindSent or KindThread
	CopyPath   string // the inbox copy; empty if there is none
	Marks
	Archived bool // hidden from inbox lists
}

// A Delivery has one of these values of Kind if the agent sees the message without having a copy in its inbox. Such a
// message is treated as read.
const (
	KindSent   = "sent"   // the agent sent the message
	KindThread = "thread" // the message is in a thread that the agent requested
)

// Marks record what a recipient has done with its copy.
type Marks struct {
	Read    bool         `json:"read"`
	ReadAt  format.Stamp `json:"read_ts,omitzero"` // zero if unread, or if a user wrote the mark without a time
	Acked   bool         `json:"acknowledged"`
	AckedAt format.Stamp `json:"ack_ts,omitzero"`
}

// Receipt is the state of one recipient's delivery.
type Receipt struct {
	Agent       string       `json:"agent"`
	Kind        string       `json:"kind"`                      // to, cc, bcc
	Delivered   bool         `json:"delivered"`                 // the recipient's copy exists
	DeliveredAt format.Stamp `json:"delivered_ts,omitzero"`     // zero if there is no copy or this server did not write it
	AnnouncedAt format.Stamp `json:"announced_ts,omitzero"`     // zero if no session got a notice or the record is gone
	Status      string       `json:"delivery_status,omitempty"` // for an address at another domain, an outgoing.State
	Reply       string       `json:"delivery_reply,omitempty"`  // the last reply from the recipient domain's server
	Marks

	// Unanswered means that the recipient has archived a message that asks for an answer, without answering it.
	Unanswered bool `json:"archived_unanswered,omitempty"`
}

// InboxQuery selects deliveries to one agent, newest first.
type InboxQuery struct {
	Project    string // slug; set by Box.Inbox
	Agent      string
	Since      time.Time // only messages created after this time; zero for all
	UrgentOnly bool      // only messages of high or urgent importance
	UnreadOnly bool
	// Quiet omits mail from other domains, unless the sender is in Trusted and was authenticated by the sender's
	// domain.
	Quiet    bool
	Trusted  []string // in lower case: an address, or @DOMAIN for every address at a domain
	Archived bool     // include archived messages
	Bodies   bool
	// AwaitingAck selects deliveries that lack a required acknowledgment, either in this inbox or sent by the agent.
	// If it is set, Bodies, Limit and Before are the only other filters that apply.
	AwaitingAck bool
	Limit       int    // default 20, at most 200
	Before      int64  // only rows chronologically before this cursor; 0 starts with the newest row
	Peek        bool   // the reader is not the agent, so the read does not count as the agent's activity
	ReplyTo     string // only replies to this message; empty for all
	Room        *Room  // the page ends when the Room is full; if nil, only Limit applies
	// ID and Thread are for Box.Inbox, and they override the other fields. ID selects only the message with that id,
	// received or sent. Thread selects the thread with that id, oldest first, and Before is then a cursor from a page
	// of that thread. If both fields are empty, the query selects the inbox.
	ID, Thread string
}

// DueQuery is a query for Index.Due.
type DueQuery struct {
	Project, Agent string
	Since          time.Time // messages since this time are considered recent
	Most           int       // limit for each group: unread, unread and urgent, read and asking, recent, sent and asking, sent
	Open           bool      // omit the bcc recipients of the agent's own messages
}

// Due is a message that may be waiting for an agent, or whose recipients the agent may be waiting for.
type Due struct {
	Cursor     int64
	Thread     string // the message's own id if it is not in a thread
	From       string
	Subject    string
	Importance string
	Kind       string // to, cc or bcc; KindSent for the agent's own message
	Unread     bool   // the agent has not read the message
	Asks       bool   // still waiting for an acknowledgment
	Question   bool   // the message asks for an answer (see package question)
	ID         string
	Of         []string // for the agent's own message: To or, if Asks is set, a sorted list of the agents that have not acknowledged it
}

// Replied reports who has written in a message's thread since that message.
type Replied struct {
	ByAgent  bool // the agent in the query has written to the message's sender
	ByOthers bool // an agent that received the message, or replied to it, has written
}

// Asked is a message that asks its recipients for an answer. See package question.
type Asked struct {
	ID      string
	Thread  string // the message's own id if it is not in a thread
	From    string
	Subject string
	Created time.Time

	// Settled is when the question was settled, or zero if it is open. A question is settled as soon as another agent
	// that received it, or replies to it, writes in the thread after it, or all recipients in to and cc with a copy in this project have
	// acknowledged it.
	Settled time.Time
}

// Hidden describes the messages of a thread that an agent has hidden.
type Hidden struct {
	Cursor int64     // cursor of the newest hidden message
	Until  time.Time // when the messages appear again
}

// Outline contains what a list of threads shows about a message and its thread.
type Outline struct {
	ID        string // the message's id
	Created   time.Time
	Beginning string // the first 500 characters of the message's body
	Subject   string // subject of the thread's first message
	Messages  int    // number of messages in the thread
	Files     int    // total number of attachments in the thread
}

// ThreadQuery selects messages of one thread, oldest first.
type ThreadQuery struct {
	Project  string // slug; set by Project.ThreadPage
	Thread   string
	Bodies   bool
	Receipts bool      // for Project.ThreadPage: include receipts, as in Project.Message
	Agent    string    // for Project.ThreadPage: include the copies of this agent; empty for none
	Limit    int       // 0 for all
	After    int64     // only messages chronologically after this cursor; 0 starts with the oldest message
	MostBody int64     // number of bytes to read from the beginning of each body; 0 for all
	MostText int64     // maximum total size of all bodies in bytes; used only with MostBody
	Newest   bool      // for Project.ThreadPage: the newest messages, in chronological order
	Since    time.Time // only messages created at or after this time; zero for all
	Room     *Room     // the page ends when the Room is full
}

// BoxQuery selects copies in one agent's inbox or outbox.
type BoxQuery struct {
	Project string // slug; set by Box.List
	Agent   string // set by Box.List
	Sent    bool   // select from the outbox instead of the inbox
	ID      string // only this message; empty for all
	Prefix  string // only ids with this prefix (requires empty ID and Before); empty for all
	Before  string // only messages whose file names sort before this id's file name; empty for all

	HideArchived bool // omit archived messages from the inbox

	Limit  int // number of rows; 0 means none
	Offset int
}

// BoxRow is one copy in an inbox or outbox.
type BoxRow struct {
	MessageRow        // the canonical content without the body; BCC only in a sent row
	CopyPath   string // path of the copy
	Read       bool   // in an inbox row: the owner has read the message
	Holders    int    // in a sent row: how many agents have the message in their inbox
}

// SearchQuery describes a search.
type SearchQuery struct {
	query.Query
	Project string // slug
	Agent   string // the agent whose unread messages are searched; used only if the query sets Unread
	Rank    bool   // rank the newest matches by bm25; otherwise sort newest first
	Limit   int
	Cursor  string // cursor from Hit.Next; empty to start with the first hit
}

// Found is the result of a search.
type Found struct {
	Hits   []Hit
	Ranked int  // in a ranked search, how many of the newest matches were ranked; otherwise 0
	Cut    bool // a search for words by prefix took too long and stopped early
}

// ThreadsQuery selects threads.
type ThreadsQuery struct {
	query.Query        // selects the threads of the messages that it finds; the zero Query selects all
	Project     string // slug
	Agent       string // the agent whose unread messages are counted, and selected if Unread is set
	Limit       int
	Cursor      string // cursor from FoundThreads.Next; empty to start with the first thread
}

// FoundThreads is a page of threads.
type FoundThreads struct {
	Threads []ThreadRow
	Next    string // cursor of the next page, which repeats no thread from earlier pages; empty at the end
	Cut     bool   // a search for words by prefix took too long and stopped early
}

// ThreadRow is a thread as a list shows it.
type ThreadRow struct {
	MessageRow        // the thread's newest message that the query found; Body is only the beginning of its body
	Thread     string // id of the thread
	Title      string // subject of the thread's first message
	Messages   int    // number of messages in the thread
	Unread     int
	Files      int      // total number of attachments in the thread
	People     []string // the authors of the thread's messages, most recent first
}

// Hit is one message that a search found.
type Hit struct {
	MessageRow
	Snippet string // matched text with **marks** around the terms, on one line
	Matched string // the same text unchanged, with MarkOpen and MarkClose around the terms
	Next    string // cursor for the hits after this one
}

// MarkOpen and MarkClose are the bytes that FTS5 puts around matched terms. Readable bodies do not contain them.
const (
	MarkOpen  = "\x01"
	MarkClose = "\x02"
)

// Stats contains the row counts of all projects.
type Stats struct {
	Projects, Agents, Messages, Deliveries, Problems int
	Unread                                           int // number of unread deliveries
}
