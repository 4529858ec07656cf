// Package hold decides whether a hold stops an agent. A hold is a user's request that an agent change no more files.
// The guard and the clients' hooks then refuse the agent's commits and edits. A hold is only advisory, because neither
// of them sees the changes that shell commands make. See docs/reference/guard.md, "Holding an agent".
//
// This package reads the file of a hold directly, so the guard needs neither a server nor the index. Package holds
// writes the file.
package hold

import (
	"errors"
	"time"

	"mailtree/maildir/format"
	"mailtree/maildir/refusal"
	"mailtree/maildir/tree"
)

// Stops reports whether a hold exists and has not ended at the given time. A hold applies even if it seems to begin in
// the future, because another machine's clock may be ahead.
func Stops(h *format.Hold, now time.Time) bool { return h != nil && now.Before(h.Until) }

// Sentence returns text such as "robin holds AmberFox: wait for me". The name and the reason are untrusted.
func Sentence(h *format.Hold, agent string) string {
	text := h.By + " holds " + agent
	if h.Reason != "" {
		text += ": " + h.Reason
	}
	return text
}

// Read reads the file of the agent's hold. It returns nil if there is no such file, or if agent is not a valid agent
// name. If the file is invalid, the agent is not held, and Read returns the file's problem. Read returns
// ErrUnavailable for a machine fault.
func Read(t *tree.Tree, agent string) (*format.Hold, *format.Problem, error) {
	if !format.ValidName(agent) {
		return nil, nil, nil
	}
	path := format.HoldPath(agent)
	data, _, err := t.Read(path, format.MaxSmall)
	var h format.Hold
	if err == nil {
		h, err = format.ParseHold(data)
	}
	var bad *tree.FormatError
	switch fault := tree.FaultOf(err); {
	case fault == tree.NoFault:
		return &h, nil, nil
	case fault == tree.FaultGone:
		return nil, nil, nil
	case errors.As(err, &bad):
		return nil, &format.Problem{Path: path, Reason: bad.Reason, Line: bad.Line}, nil
	case fault == tree.FaultFile:
		return nil, &format.Problem{Path: path, Reason: tree.PlainFileError(err)}, nil
	}
	return nil, nil, &refusal.Error{What: refusal.Unavailable("A hold file cannot be read: {why}."), Why: tree.PlainFault(err), Err: err}
}
