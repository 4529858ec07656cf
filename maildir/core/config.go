package core

import (
	"context"
	"io"
	"log/slog"
	"slices"
	"strings"
	"time"

	"mailtree/maildir/address"
	"mailtree/maildir/attachment"
	"mailtree/maildir/history"
	"mailtree/maildir/index"
	"mailtree/maildir/outgoing"
	"mailtree/maildir/store"
	"mailtree/maildir/storedir"
	"mailtree/maildir/tree"
	"mailtree/maildir/writer"
)

// Config says where a store is and how to open it. Root, OpenIndex and OpenHistory are required; the zero
// value of any other field means its documented default.
type Config struct {
	Root string // absolute path; created if it is missing

	// OpenIndex opens the index once the lock is held and no tree has leftovers of a crash. It may fill a new index
	// from the trees (by slug) at once; maildir.Open reconciles the index in any case. The caller closes the
	// index after Close.
	OpenIndex func(ctx context.Context, trees map[string]*tree.Tree) (index.Index, error)
	// OpenHistory opens the audit of a project's tree and creates the repository if it is missing.
	OpenHistory func(k *store.Keeper) (history.Log, error)

	// Clone makes the repository and the files of the mail at url in dir, an empty folder; nil: mail of other
	// machines cannot be joined.
	Clone func(ctx context.Context, dir, url string) error

	MaxFile      int64                           // bytes of a message file; 0: tree.MaxFile
	MaxFanout    int64                           // bytes of a message file times its recipients; 0: sending.MaxFanout
	MaxProjects  int                             // most projects that may be created; 0: maildir.MaxProjects
	Files        int                             // descriptors that operations in progress may hold; 0: 512
	MailboxDepth int                             // most unread messages in a mailbox for bounded drafts; 0: sending.MailboxDepth
	Scope        storedir.Scope                  // which project a path inside a Git work tree means
	Attachments  attachment.Settings             // limits and settings of attachments
	Domains      address.Domains                 // of the addresses of mailboxes; none: mailtree.local
	Outside      Outside                         // which mail may leave for other domains
	User         func() int                      // returns the uid of the store's user; nil: the process's effective uid
	Patience     time.Duration                   // how long a caller waits for the disk; 0: 30 s
	SyncInterval time.Duration                   // between looks at the shared repository; 0: peers.SyncInterval; less: only Sync.Now looks
	ClaimAlone   bool                            // claims are granted on this machine alone while other machines cannot be reached
	GoneLook     time.Duration                   // time between checks for clients that are gone; 0: a minute
	Progress     func(project string, files int) // called during the first reconcile; may be nil
	// Refine makes a summary of a thread's text by other means; nil: none is made. Its error says why there
	// is none.
	Refine func(ctx context.Context, thread []byte) (string, error)
	// Observe is called after each writing operation, in its caller's goroutine, with the duration and the
	// error. An operation without paths had nothing to do. It may be nil.
	Observe func(op writer.Op, took time.Duration, err error)

	Now       func() time.Time     // nil: time.Now
	Monotonic func() time.Time     // measures how long claims of other machines last and saved files rest, whatever Now says; nil: time.Now
	Rand      io.Reader            // nil: crypto/rand
	Log       *slog.Logger         // nil: discarded
	Step      func(name string)    // for fault tests: called by the writer around each point at which a crash may fall; may be nil
	Fail      func(p string) error // for fault tests: becomes Tree.Fail of every tree
}

// Outside says which mail may leave for other domains. The zero value allows none.
type Outside struct {
	Allow []string // domains in lower case; "*": all
	Rate  int      // most emails that a mailbox sends in an hour; 0: post.OutsideRate
	// Queued is told of what was queued, once that is durable and indexed. It must not block; it may be nil.
	Queued func(items []outgoing.Item)
}

// Allows reports whether mail may go to an address of another domain.
func (o *Outside) Allows(address string) bool {
	_, domain, _ := strings.Cut(address, "@")
	return slices.Contains(o.Allow, "*") || slices.Contains(o.Allow, domain)
}
