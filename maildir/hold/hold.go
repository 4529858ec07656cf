// Package hold decides whether a hold stops an agent. With a hold, a user asks an agent to change no more files: the
// guard and the clients' hooks refuse the agent's edits and commits. A hold is advice, because they do not see what
// shell commands change. See docs/guard.md, "Holding an agent".
//
// The package reads the file of a hold directly, so the guard needs neither a server nor the index. Package holds writes
// the file.
package hold

import (
	"errors"
	"time"

	"mailtree/maildir/format"
	"mailtree/maildir/refusal"
	"mailtree/maildir/tree"
)

// Stops reports whether a hold stops its agent at the given time: it exists and has not ended. It applies even if it
// begins later, because another machine's clock may be ahead.
func Stops(h *format.Hold, now time.Time) bool { return h != nil && now.Before(h.Until) }

// Sentence says who holds an agent and why: "robin holds AmberFox: wait for me". Its texts are untrusted.
func Sentence(h *format.Hold, agent string) string {
	text := h.By + " holds " + agent
	if h.Reason != "" {
		text += ": " + h.Reason
	}
	return text
}

// Read reads the file of the agent's hold. It returns nil if there is no such file, or if agent is not an agent's name.
// If the file is invalid, it holds nobody, and Read returns its problem. Read returns ErrUnavailable for a machine fault.
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
	return nil, nil, &refusal.Error{What: refusal.Unavailable("The file of a hold cannot be read: {why}."), Why: tree.PlainFault(err), Err: err}
}
