// Package outgoing stores messages to other domains, and the results of their delivery.
//
// A message has an Item for each recipient at another domain. Each Item has its own file below format.QueueDir, which
// is written in the same operation as the message. The queue (gateway/out) replaces the file whenever the item's
// state changes. When the item has ended, the queue moves the file to the folder "ended".
//
// Each file is signed (package signed), and files without this store's signature are ignored. The folder is in a
// working tree, so a `git pull` could add such a file (I8). See docs/reference/email.md, "The gateway".
package outgoing

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"log/slog"
	"path"
	"slices"
	"strings"
	"time"

	"mailtree/maildir/format"
	"mailtree/maildir/signed"
	"mailtree/maildir/tree"
)

// State is the delivery state of a message for one recipient.
type State string

// These are the delivery states. For an item that is Queued or Deferred, the next attempt is at the time Next. Sent,
// Failed and Unknown are final, with these exceptions: a bounce changes Sent and Unknown to Failed, and a user can
// change Unknown and Failed to Queued.
const (
	Queued   State = "queued"
	Deferred State = "deferred" // an attempt failed; the server will try again
	Sending  State = "sending"  // the complete message may have been transmitted
	Sent     State = "sent"
	Unknown  State = "unknown" // the complete message was transmitted, but no reply came
	Failed   State = "failed"
)

// Item is a message to one recipient.
type Item struct {
	ID        string    `json:"id"`         // the item's id, as returned by ID
	Project   string    `json:"project"`    // slug
	Message   string    `json:"message"`    // message id; the sender gets one report for all items of a message
	MessageID string    `json:"message_id"` // Message-ID as in the email, without < and >
	From      string    `json:"from"`       // envelope sender
	To        string    `json:"to"`
	State     State     `json:"state"`
	Attempts  int       `json:"attempts,omitempty"`
	Queued    time.Time `json:"queued"`
	Next      time.Time `json:"next"`               // time of the next attempt, in the states Queued and Deferred
	Reply     string    `json:"reply,omitempty"`    // the last reply from the recipient's server
	Reported  bool      `json:"reported,omitempty"` // the sender was notified that delivery failed or may have failed
}

// Ended reports whether nothing is left to do for the item.
func (i *Item) Ended() bool {
	return i.State == Sent || i.Reported && (i.State == Failed || i.State == Unknown)
}

// Domain returns the domain of the recipient.
func (i *Item) Domain() string { return i.To[strings.LastIndexByte(i.To, '@')+1:] }

// Pending reports whether the item may still be sent.
func (i *Item) Pending() bool { return i.State == Queued || i.State == Deferred || i.State == Sending }

// Worst returns the state to report for several items: Failed if any item has failed, otherwise Unknown if any item is
// unknown, and otherwise the state that is furthest from Sent.
func Worst(items []Item) State {
	order := []State{Failed, Unknown, Queued, Deferred, Sending, Sent}
	worst := slices.MinFunc(items, func(a, b Item) int { return slices.Index(order, a.State) - slices.Index(order, b.State) })
	return worst.State
}

// ID returns the id of the item for a message and a recipient.
func ID(message, to string) string {
	sum := sha256.Sum256([]byte(to))
	return message + "-" + hex.EncodeToString(sum[:6])
}

// Path returns the path where an item's file is stored until the item has ended.
func Path(id string) string { return format.QueueDir + "/" + id + ".json" }

const endedDir = format.QueueDir + "/ended"

func endedPath(id string) string { return endedDir + "/" + id + ".json" }

// keepEnded is how long an ended item's file is kept.
const keepEnded = 90 * 24 * time.Hour

// Encode returns the bytes of an item's file.
func Encode(key []byte, i *Item) ([]byte, error) {
	return signed.Encode(key, label, i)
}

// label identifies the files of this package. See package signed.
const label = "mailtree queue"

// Folder is a project's queue.
type Folder struct {
	Tree    *tree.Tree
	Project string // slug
	Key     []byte // the store's key
	Log     *slog.Logger
}

// errForeign means that this store did not write the file as an item of this project under that file name.
var errForeign = errors.New("it is damaged, or this store did not write it under this name")

// load reads a file. It returns fs.ErrNotExist, errForeign, or any error from the file system.
func (f *Folder) load(file string) (*Item, error) {
	data, _, err := f.Tree.Read(file, format.MaxSmall)
	var bad *tree.FormatError
	switch {
	case errors.As(err, &bad):
		return nil, errForeign
	case err != nil:
		return nil, err
	}
	i := &Item{}
	if !signed.Decode(f.Key, label, data, i) || i.Project != f.Project || i.ID != ID(i.Message, i.To) || path.Base(file) != i.ID+".json" {
		return nil, errForeign
	}
	return i, nil
}

// Get returns the item with the given id, or nil if there is none. An ended item takes precedence over another item
// with the same id, so that restoring an old file does not send the message again.
func (f *Folder) Get(id string) (*Item, error) {
	for _, file := range []string{endedPath(id), Path(id)} {
		i, err := f.load(file)
		switch {
		case err == nil:
			return i, nil
		case errors.Is(err, errForeign):
			f.Log.Warn("ignoring a file in the outgoing mail queue", "project", f.Project, "path", file, "error", err)
		case !errors.Is(err, fs.ErrNotExist):
			return nil, err
		}
	}
	return nil, nil
}

// Open returns the items that have not ended. It also removes the files left by an interrupted Save. If it returns an
// error, it still returns the items that it could read.
func (f *Folder) Open() (all []Item, err error) {
	entries, err := f.Tree.List(format.QueueDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		id, ok := strings.CutSuffix(e.Name(), ".json")
		if !ok {
			continue
		}
		i, ferr := f.Get(id)
		if i != nil && i.Ended() { // a server was killed before it removed the file
			ferr = f.Tree.RemoveRun(Path(id))
		} else if i != nil {
			all = append(all, *i)
		}
		err = errors.Join(err, ferr)
	}
	return all, err
}

// Since returns the items queued at or after the given time, whether or not they have ended.
func (f *Folder) Since(at time.Time) (all []Item, err error) {
	for _, dir := range []string{format.QueueDir, endedDir} { // in this order, so that no item that ends during the loop is missed
		entries, err := f.Tree.List(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		for _, e := range entries {
			id, ok := strings.CutSuffix(e.Name(), ".json")
			if !ok || slices.ContainsFunc(all, func(i Item) bool { return i.ID == id }) {
				continue
			}
			if st, err := f.Tree.Stat(dir + "/" + e.Name()); err == nil && time.Unix(0, st.MTime).Before(at) {
				continue
			}
			i, err := f.Get(id)
			if err != nil {
				return nil, err
			}
			if i != nil && !i.Queued.Before(at) {
				all = append(all, *i)
			}
		}
	}
	return all, nil
}

// Save durably writes an item. Afterwards, the item has exactly one file.
func (f *Folder) Save(i *Item) error {
	data, err := Encode(f.Key, i)
	if err != nil {
		return err
	}
	to, from := Path(i.ID), endedPath(i.ID)
	if i.Ended() {
		to, from = from, to
	}
	if err := f.Tree.SaveRun(to, data); err != nil {
		return err
	}
	if err := f.Tree.RemoveRun(from); err != nil {
		return err
	}
	return tree.IgnoreGone(f.Tree.SyncFolder(path.Dir(from)))
}

// Prune removes the files of items that ended more than keepEnded before now.
func (f *Folder) Prune(now time.Time) error {
	entries, err := f.Tree.List(endedDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		file := endedDir + "/" + e.Name()
		st, serr := f.Tree.Stat(file)
		if serr == nil && now.Sub(time.Unix(0, st.MTime)) > keepEnded {
			err = errors.Join(err, f.Tree.RemoveRun(file))
		}
	}
	return err
}
