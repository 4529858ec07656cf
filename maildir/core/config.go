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

// Config specifies the location of a store and how to open it. Root, OpenIndex and OpenHistory are required. For every
// other field, the zero value means the documented default.
type Config struct {
	Root string // absolute path; created if it is missing

	// OpenIndex opens the index. It is called after Open has acquired the lock and has removed the leftovers of a crash
	// from the trees. The argument trees contains the trees by slug. OpenIndex may fill a new index from these trees
	// immediately, but maildir.Open reconciles the index in any case. The caller must close the index after closing the
	// store.
	OpenIndex func(ctx context.Context, trees map[string]*tree.Tree) (index.Index, error)
	// OpenHistory opens the history of a project's tree and creates the repository if it is missing.
	OpenHistory func(k *store.Keeper) (history.Log, error)

	// Clone clones the mail at url, both the repository and the files, into the empty folder dir. If Clone is nil,
	// projects cannot join mail from other machines.
	Clone func(ctx context.Context, dir, url string) error

	MaxFile      int64                           // maximum size of a message file in bytes; 0 means tree.MaxFile
	MaxFanout    int64                           // maximum of file size times recipients, in bytes; 0 means sending.MaxFanout
	MaxProjects  int                             // maximum number of projects; 0 means maildir.MaxProjects
	Files        int                             // maximum number of file descriptors for operations; 0 means 512
	MailboxDepth int                             // maximum number of unread messages in a mailbox; 0 means sending.MailboxDepth
	Format       int                             // highest project format to use; 0 means projectformat.Highest
	Scope        storedir.Scope                  // determines the project of a path inside a Git working tree
	Attachments  attachment.Settings             // limits and settings of attachments
	Domains      address.Domains                 // domains of the mailbox addresses; empty means mailtree.local
	Outside      Outside                         // which mail may be sent to other domains
	User         func() int                      // returns the uid of the store's user; nil means the process's effective uid
	Patience     time.Duration                   // how long a caller of an operation waits for the disk; 0 means 30 s
	SyncInterval time.Duration                   // time between polls; 0 means peers.SyncInterval, negative means no polling
	ClaimAlone   bool                            // grant local claims while other machines are unreachable
	GoneLook     time.Duration                   // time between checks for clients that have exited; 0 means one minute
	Progress     func(project string, files int) // called during the first reconcile; may be nil
	// Refine runs the command that the user has configured to summarize a thread's text. If there is no summary, the
	// error gives the reason. Refine is nil if no command is configured.
	Refine func(ctx context.Context, thread []byte) (string, error)
	// Observe is called after each writing operation, in the caller's goroutine, with the duration and the error. If
	// op has no paths, the operation had nothing to do. Observe may be nil.
	Observe func(op writer.Op, took time.Duration, err error)

	Now       func() time.Time     // nil means time.Now
	Monotonic func() time.Time     // monotonic clock for other machines' leases and for saved files; nil means time.Now
	Rand      io.Reader            // nil means crypto/rand
	Log       *slog.Logger         // nil discards the log
	Step      func(name string)    // for fault tests: called by the writer around each possible crash point; may be nil
	Fail      func(p string) error // for fault tests: the value of Tree.Fail for every tree
}

// Outside configures mail to other domains. The zero value allows no such mail.
type Outside struct {
	Allow []string // domains in lower case; "*" means all
	Rate  int      // emails that a mailbox may send in an hour; 0 means post.OutsideRate
	// Queued is called with the queued items once they are durable and indexed. It must not block. Queued may be nil.
	Queued func(items []outgoing.Item)
}

// Allows reports whether mail may be sent to an address of another domain.
func (o *Outside) Allows(address string) bool {
	_, domain, _ := strings.Cut(address, "@")
	return slices.Contains(o.Allow, "*") || slices.Contains(o.Allow, domain)
}
