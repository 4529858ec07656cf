package aimx

import (
	"errors"
	"fmt"
	"strings"

	"mailtree/maildir"
	"mailtree/mcp/tool"
)

// The texts of the contract. Spec: TOOLS.md aimx, column errors.

var errDenied error = &maildir.Error{Kind: maildir.ErrDenied, Text: "EACCES not authorized"}

// wording rewords what the domain says: who may not gets no reason.
func wording(err error, r *tool.Refusal) {
	if errors.Is(err, maildir.ErrDenied) {
		r.Error, r.Near = errDenied.Error(), []string{}
	}
	r.Error = strings.Replace(r.Error, maildir.AgentHint, "mailbox_create makes a mailbox.", 1)
	r.Error = strings.Replace(r.Error, maildir.RecipientHint, "email_send with reply_to answers it to somebody else.", 1)
}

func reword(kind error, format string, a ...any) error {
	return &maildir.Error{Kind: kind, Text: fmt.Sprintf(format, a...)}
}

func noMailbox(name string) error {
	return reword(maildir.ErrNotFound, "mailbox-not-found: %s", tool.Clip(name))
}

// noProject is said to a guest, who cannot make one.
func noProject(key string) error {
	return reword(maildir.ErrNotFound, "No project %s, and only the user who runs the server can make one: name a project that exists, or the default one with --project %s.", tool.Clip(key), maildir.DefaultProject)
}

// invalid is a refused name; others stay.
func invalid(err error) error {
	if errors.Is(err, maildir.ErrInvalid) {
		return reword(maildir.ErrInvalid, "Validation: %s", err)
	}
	return err
}

// noEmail is said when a message is not in the mailbox; others stay.
func noEmail(err error, id, mailbox string) error {
	if errors.Is(err, maildir.ErrNotFound) {
		return reword(maildir.ErrNotFound, "Email '%s' not found in mailbox '%s'.", tool.Clip(id), tool.Clip(mailbox))
	}
	return err
}

func noHook(err error, name string) error {
	if errors.Is(err, maildir.ErrNotFound) {
		return reword(maildir.ErrNotFound, "Hook '%s' not found", tool.Clip(name))
	}
	return err
}
