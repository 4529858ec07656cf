// Package index is the index as the domain sees it: what it takes in, the rows that it gives back, the questions that it answers, and
// the room that an answer has for them. Package indexer is the one that keeps it.
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

// AllProblems asks Index.Problems for every one.
const AllProblems = -1

// Index is what the domain needs of the view of the tree that answers questions fast. The indexer
// package is the one implementation. It holds all projects of a store; project is always a slug.
//
// The index is a function of the tree (docs/architecture.md, "The house"): Ingest and Reconcile are
// the only ways in, and both are given nothing but names of files. Every method may be called from
// many goroutines at once. Errors of the database come back as they are: they are faults, not
// answers. "Not there" is a nil result, not an error.
type Index interface {
	// Attach makes a project known before anything of it is ingested; again for a known one it only
	// takes the tree.
	Attach(ctx context.Context, project string, tree *tree.Tree) error

	// Detach forgets a project and drops its rows and changes: its tree is gone. It records one
	// change, see Change.RemovesProject. No call for the project is under way.
	Detach(ctx context.Context, project string) error

	// Ingest brings the rows that come from the files at paths level with the tree, in one
	// transaction, and returns what changed in the order it was recorded, without the paths that
	// were level already. A path that is, or was, a folder stands for every file below it. A file
	// that cannot be read is a problem, not an error; one that a fault of the machine kept from
	// being looked at keeps its rows and is named in Unread.
	//
	// written, which may be nil, has what the caller has just put at paths: content and state are taken
	// from there, and the next look reads those whose times do not prove that nobody else wrote there.
	Ingest(ctx context.Context, project string, paths []string, written map[string]tree.Written) (Ingested, error)

	// Reconcile compares the whole tree with the rows (size, times, inode; content where these
	// differ or are too fresh to trust) and ingests what differs. progress may be nil; it is called
	// with files seen so far.
	Reconcile(ctx context.Context, project string, progress func(done int)) (Ingested, error)

	// Differing returns the paths at which tree and rows may differ, changing nothing; others may
	// write meanwhile.
	Differing(ctx context.Context, project string) ([]string, error)

	// Changes returns at most limit changes recorded after the mark, oldest first, of every
	// project.
	Changes(ctx context.Context, after int64, limit int) ([]Change, error)
	// NewestChanges returns the newest changes recorded of one project, newest first, at most limit.
	NewestChanges(ctx context.Context, project string, limit int) ([]Change, error)
	// LastChange is the mark of the newest change recorded, 0 when there is none.
	LastChange(ctx context.Context) (int64, error)

	Agent(ctx context.Context, project, name string) (*AgentRow, error) // nil when there is none
	Agents(ctx context.Context, project string) ([]AgentRow, error)     // by name; without Program, Model, Task
	// LastRead is the newest time of a read mark of each agent that has one, by name.
	LastRead(ctx context.Context, project string) (map[string]time.Time, error)
	// AgentsAfter lists by name, with all that is known of them, at most limit of those whose names
	// come after a name.
	AgentsAfter(ctx context.Context, project, after string, limit int) ([]AgentRow, error)

	// Message finds one, nil when there is none. With body it has its body, as far as room has room
	// for it.
	Message(ctx context.Context, project, id string, body BodyWanted, room *Room) (*MessageRow, error)
	// Files lists the files of a message by path: canonical, copies and marks, also those that do
	// not count.
	Files(ctx context.Context, project, id string) ([]string, error)
	// Body reads n bytes of a message's body from an offset on; fewer at its end, "" where there is
	// no such message.
	Body(ctx context.Context, project, id string, offset, n int64) (string, error)
	// ShortBodies reads the bodies of at most 8 KiB of a thread's messages behind a cursor, by id.
	ShortBodies(ctx context.Context, project, thread string, after int64) (map[string]string, error)
	// Thread lists a thread oldest first, also the message whose id it is; [] when there is none.
	Thread(ctx context.Context, q ThreadQuery) ([]MessageRow, error)
	// Keyed lists every message of that sender with that idempotency key, oldest first, with BCC of
	// the sender's copy.
	Keyed(ctx context.Context, project, from, key string) ([]MessageRow, error)

	// Delivery finds an agent's copy, nil when there is none. Body and room are as of Message.
	// IDKeyed is the id of the newest message with the sender's key that the agent got or sent; "" where there is none.
	IDKeyed(ctx context.Context, project, agent, key string) (string, error)
	Delivery(ctx context.Context, project, agent, id string, body BodyWanted, room *Room) (*Delivery, error)
	// Deliveries finds an agent's copies of those messages, without bodies, in any order.
	Deliveries(ctx context.Context, project, agent string, ids []string) ([]Delivery, error)
	Inbox(ctx context.Context, q InboxQuery) ([]Delivery, Counts, error)                // newest first, and the counts of the same moment
	OldestUnread(ctx context.Context, project, agent string, n int) ([]Delivery, error) // oldest first, without bodies, at most n
	// Awaiting lists, newest first and without bodies, the deliveries to q.Agent that ask for an
	// acknowledgement and have none, and as KindSent what the agent sent of which there are such
	// deliveries to others.
	Awaiting(ctx context.Context, q InboxQuery) ([]Delivery, error)
	// Receipts lists those who hold a copy of each of those messages, by name, without DeliveredAt.
	Receipts(ctx context.Context, project string, ids ...string) (map[string][]Receipt, error)
	Counts(ctx context.Context, project, agent string) (Counts, error)
	Box(ctx context.Context, q BoxQuery) ([]BoxRow, error) // by file name, last first; [] past the end

	// Search finds messages. Errors: ErrInvalid for a cursor that it did not give.
	Search(ctx context.Context, q SearchQuery) (Found, error)

	Claims(ctx context.Context, project string) ([]claim.Row, error) // every valid claim file, live or not, by created then agent then path
	// ClaimsAt lists those of the claim files at paths that are valid, in the same order.
	ClaimsAt(ctx context.Context, project string, paths []string) ([]claim.Row, error)
	Problems(ctx context.Context, project string, most int) ([]format.Problem, error) // by path; "" for all projects

	// CountProblems counts what Problems lists of a project.
	CountProblems(ctx context.Context, project string) (int, error)

	// Newest lists the newest messages of all projects, at most limit, last first: project, id,
	// thread, sender, subject.
	Newest(ctx context.Context, limit int) ([]MessageRow, error)
	// ProjectsWith finds the projects that hold what is named: an agent, a message id or a thread,
	// most recent activity first. what is format.KindProfile, format.KindCanonical, or
	// format.KindOther for a thread.
	ProjectsWith(ctx context.Context, what format.Kind, name string) ([]string, error)
	// Names completes: at most limit names that begin with prefix: agents (format.KindProfile) and
	// threads (format.KindOther) whatever the case, ids of messages (format.KindCanonical).
	Names(ctx context.Context, project string, what format.Kind, prefix string, limit int) ([]string, error) // project "" for all
	Stats(ctx context.Context) (Stats, error)
}

// Ingested is what the index did with the paths that it was given.
type Ingested struct {
	Changes []Change      // in the order they were recorded
	Unread  []tree.Unread // by path: rows stay as they were, the caller asks for them again
}

// Change is one difference that Ingest found between the tree and the rows.
type Change struct {
	Seq     int64
	Project string
	Path    string // in the project's tree; "" of the project itself
	Kind    format.Kind
	Op      string // "added", "changed" or "removed", of what the file means
	Agent   string // whose folder, claim or profile; the sender for canonical messages
	ID      string // message id, where there is one
	Thread  string // the thread of the message, where there is one
	At      time.Time
}

// RemovesProject reports whether the change tells that the whole project was removed.
func (c *Change) RemovesProject() bool { return c.Kind == format.KindProject && c.Path == "" }

// The values of Change.Op.
const (
	Added   = "added"
	Changed = "changed"
	Removed = "removed"
)

// AgentRow is an agent as the tree tells it. An agent exists while any file of a known kind lies
// below its folder; without a valid profile its other fields are empty.
type AgentRow struct {
	format.Profile
	HasProfile bool      // a valid profile.json
	Status     string    // ready, work, offline; "" when no status file says so
	LastActive time.Time // newest of sent, read, acknowledged, claimed, inception; zero when none
	Counts
}

// Counts of one agent's inbox.
type Counts struct {
	Total    int `json:"total" jsonschema:"emails in the inbox"`
	Unread   int `json:"unread" jsonschema:"of them unread"`
	Archived int `json:"-"` // of Total: lists leave them out
	Sent     int `json:"sent_count"`
}

// MessageRow is a message as the index keeps it.
type MessageRow struct {
	Project        string    // slug
	format.Message           // BCC is empty except where said; Body only where asked for
	Path           string    // the file that its content comes from
	Cursor         int64     // position in time order; opaque
	Receipts       []Receipt // of its recipients; nil except where said

	// Astray: it is read from an inbox whose agent the message does not name, so that somebody has put it
	// there by hand. It is not verified.
	Astray bool

	BodyBytes int64 // of the whole body
	BodyFrom  int64 // where in the body Body begins
	BodyNext  int64 // where in the body the rest begins, where a Room had no place for it; 0: Body goes to the end
}

// IsQuestion reports whether a message asks for an answer: its subject ends with a question mark.
func (m *MessageRow) IsQuestion() bool {
	subject := strings.TrimSpace(m.Subject)
	return strings.HasSuffix(subject, "?") || strings.HasSuffix(subject, "？")
}

// Readers are those who have read the message, by its receipts; not its sender.
func (m *MessageRow) Readers() []string {
	var all []string
	for _, r := range m.Receipts {
		if r.Read && r.Agent != m.From {
			all = append(all, r.Agent)
		}
	}
	return all
}

// BodyWanted says whether a read is to fill in bodies.
type BodyWanted bool

// Whether a body is read.
const (
	WithBody    BodyWanted = true
	WithoutBody BodyWanted = false
)

// Delivery is one agent's copy of a message, with the marks beside it.
type Delivery struct {
	MessageRow        // of the canonical content; BCC holds at most the holder
	Agent      string // the holder
	Kind       string // to, cc, bcc; KindSent, KindThread
	CopyPath   string // the inbox copy; "" where there is none
	Marks
	Archived bool // out of the inbox's lists
}

// The Kind of what an agent is shown although it has no copy. It counts as read.
const (
	KindSent   = "sent"   // the agent sent it
	KindThread = "thread" // it is in a thread that the agent asked for
)

// Marks are what a recipient did with its copy.
type Marks struct {
	Read    bool         `json:"read"`
	ReadAt  format.Stamp `json:"read_ts,omitzero"` // zero: unread, or marked by hand without a time
	Acked   bool         `json:"acknowledged"`
	AckedAt format.Stamp `json:"ack_ts,omitzero"`
}

// Receipt says how far one recipient is with a message.
type Receipt struct {
	Agent       string       `json:"agent"`
	Kind        string       `json:"kind"`                  // to, cc, bcc
	Delivered   bool         `json:"delivered"`             // its copy is there
	DeliveredAt format.Stamp `json:"delivered_ts,omitzero"` // zero: it is not there, or this server did not write it
	AnnouncedAt format.Stamp `json:"announced_ts,omitzero"` // zero: no session of the agent was told of it, or that is forgotten
	Marks
}

// InboxQuery selects deliveries of one agent, newest first.
type InboxQuery struct {
	Project    string // slug; set by Project.Inbox
	Agent      string
	Since      time.Time // created after this; zero: all
	UrgentOnly bool      // high and urgent
	UnreadOnly bool
	Archived   bool // also what is archived
	Bodies     bool
	// AwaitingAck asks for what nobody has acknowledged yet who should: in this inbox, or sent by
	// the agent. Of the rest Bodies, Limit and Before count.
	AwaitingAck bool
	Limit       int    // default 20, at most 200
	Before      int64  // cursor: only rows before it in time order; 0: from the newest
	Peek        bool   // somebody else looks: not a sign of the agent's activity
	ReplyTo     string // only replies to this message; "": all
	Room        *Room  // the page ends where it is full; nil: it has no bound but Limit
	// Of Project.Inbox, whatever else is asked: ID asks for this message alone, received or sent,
	// Thread for this thread, oldest first, where Before is a cursor of such a page. "": the inbox.
	ID, Thread string
}

// ThreadQuery selects messages of one thread, oldest first.
type ThreadQuery struct {
	Project  string // slug; set by Project.ThreadPage
	Thread   string
	Bodies   bool
	Receipts bool      // of Project.ThreadPage: with them, as Project.Message has them
	Agent    string    // of Project.ThreadPage: with this agent's copies; "": with nobody's
	Limit    int       // 0: all
	After    int64     // cursor: only messages after it in time order; 0: from the oldest
	MostBody int64     // of each body at most so many bytes, from its beginning; 0: all
	MostText int64     // and of all bodies together; it counts where MostBody does
	Newest   bool      // of Project.ThreadPage: the newest messages, in time order
	Since    time.Time // only messages created since; zero: all
	Room     *Room     // the page ends where it is full
}

// BoxQuery selects copies in one agent's inbox or outbox.
type BoxQuery struct {
	Project string // slug; set by Box.List
	Agent   string // set by Box.List
	Sent    bool   // the outbox
	ID      string // only this one; "": all
	Before  string // only ids whose file names come before that of this one; "": all

	HideArchived bool // of the inbox: without archived ones

	Limit  int // rows, as it stands: 0 is none
	Offset int
}

// BoxRow is one copy in an inbox or outbox.
type BoxRow struct {
	MessageRow        // of the canonical content, without its body; BCC in a sent row only
	CopyPath   string // the copy
	Read       bool   // of an inbox row
	Holders    int    // of a sent row: how many agents have it in their inbox
}

// SearchQuery is a search.
type SearchQuery struct {
	query.Query
	Project string // slug
	Rank    bool   // bm25 among the newest matches, else newest first
	Limit   int
	Cursor  string // only what comes after that Hit.Next; "": from the first
}

// Found is what a search finds.
type Found struct {
	Hits   []Hit
	Ranked int  // of a search by rank: how many of the newest matches were put into order; else 0
	Cut    bool // it ended before all was looked at: words were searched for by how they begin
}

// Hit is one message found.
type Hit struct {
	MessageRow
	Snippet string // matched text with **marks** around the terms, one line
	Next    string // cursor of what comes after it
}

// Stats counts the rows of all projects.
type Stats struct {
	Projects, Agents, Messages, Deliveries, Problems int
	Unread                                           int // deliveries that nobody has read
}
