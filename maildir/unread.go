package maildir

import (
	"errors"
	"slices"
	"strings"
	"syscall"

	"mailtree/maildir/format"
	"mailtree/maildir/refusal"
	"mailtree/maildir/retry"
	"mailtree/maildir/tree"
)

// Unread lists what a fault of the machine keeps the index from looking at, by path; it is tried
// again by itself.
func (p *Project) Unread() []tree.Unread { return p.waiting.All() }

// noteUnread takes what an ingest of the paths asked could not look at.
func (p *Project) noteUnread(asked []string, left []tree.Unread) {
	fresh := p.waiting.Update(asked, left, func(due []string) { p.Edited(due, onlyThere) })
	if len(fresh) > 0 {
		p.store.cfg.Log.Warn("files not looked at; they are tried again",
			"project", p.slug, "files", len(fresh), "first", fresh[0].Path, "error", fresh[0].Err)
	}
}

// needRead refuses a decision that hangs on files at or below the places, where one of them, or a
// folder above, could not be looked at. Errors: ErrUnavailable.
func (p *Project) needRead(places ...string) error {
	return p.refuseUnread(func(path string) bool {
		return path == "." || slices.ContainsFunc(places, func(place string) bool {
			return retry.Covers(path, []string{place}) || strings.HasPrefix(place, path+"/")
		})
	})
}

// needReadAgent is needRead for the folder of an agent whatever the case of its name.
func (p *Project) needReadAgent(name string) error {
	return p.refuseUnread(func(path string) bool {
		rest, isAgents := strings.CutPrefix(path, format.AgentsDir+"/")
		folder, _, _ := strings.Cut(rest, "/")
		return path == "." || path == format.AgentsDir || isAgents && strings.EqualFold(folder, name)
	})
}

// needReadMessage is needRead for the files of a message, wherever they lie.
func (p *Project) needReadMessage(id string) error {
	return p.refuseUnread(func(path string) bool {
		at := format.Locate(path)
		return at.ID == id || at.Kind == format.KindOther || path == "."
	})
}

func (p *Project) refuseUnread(decides func(path string) bool) error {
	if u, is := p.waiting.Any(decides); is {
		return &Error{
			What:  refusal.PathUnread,
			Other: u.Path,
			Why:   plainCause(u.Err),
			Err:   u.Err,
		}
	}
	return nil
}

// plainCause is what the system says of err, without paths.
func plainCause(err error) string {
	var no syscall.Errno
	if errors.As(err, &no) {
		return no.Error()
	}
	return "an unknown fault"
}
