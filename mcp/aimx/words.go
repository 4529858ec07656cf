package aimx

import (
	"mailtree/maildir"
	"mailtree/maildir/refusal"
	"mailtree/mcp/tool"
)

// denied is the complete refusal for a caller without permission. It contains neither a reason nor a name.
const denied = "EACCES not authorized"

// noEmail is the refusal for an email that is not in any folder of the mailbox.
const noEmail = "Email '{=name}' not found in mailbox '{=other}'."

// words defines the wording of the tools' refusals. Programs written for aimx depend on the exact text of many
// refusals. See docs/reference/email.md, "Wording of refusals".
var words = refusal.Words{
	Args: map[refusal.Field]string{
		refusal.Message:     "id",
		refusal.Recipients:  "to",
		refusal.To:          "to",
		refusal.Subject:     "subject",
		refusal.Body:        "body",
		refusal.HTML:        "html_body",
		refusal.InReplyTo:   "reply_to",
		refusal.References:  "references",
		refusal.Attachments: "attachments",
		refusal.FileOffset:  "offset",
		refusal.HookEvent:   "event",
		refusal.HookCommand: "cmd",
		refusal.HookName:    "name",
		refusal.HookTimeout: "timeout_secs",
		refusal.HookTrust:   "fire_on_untrusted",
	},
	Phrases: tool.Phrases(map[string]string{
		"make a project":       "The user who runs the server can create one.",
		"find agents":          "",
		"make an agent":        "mailbox_create creates a mailbox.",
		"find messages":        "email_list lists the emails.",
		"find threads":         "email_list lists the emails.",
		"read a thread":        "",
		"name the reader":      "",
		"list the inbox":       "email_list lists the emails.",
		"look anywhere":        "email_list lists the emails.",
		"answer somebody else": "To answer somebody else, use email_send with reply_to.",
		"name one project":     "Specify one of them with --project.",
		"go on":                "pass next_offset from the previous response",
	}),
	Says: map[refusal.What]string{
		refusal.UnknownProjectOfGuest: "No project {name}. Only the user who runs the server can create projects: " +
			"use an existing one, or the default one with --project " + maildir.DefaultProject + ".",
		refusal.UnknownMailbox:      "mailbox-not-found: {=name}",
		refusal.MailboxNameUnusable: "Validation: The mailbox name {name} cannot be used: {why}.",
		refusal.MailboxNameCase:     "Validation: The mailbox name {name} differs from your mailbox {other} only in case.",
		refusal.MailboxNotYours:     denied,
		refusal.MailboxNotEmpty:     "NONEMPTY: inbox={count} sent={count 2}: pass force: true to delete the mail too",
		refusal.NotInInbox:          noEmail,
		refusal.NotInMailbox:        noEmail,
		refusal.UnknownHook:         "Hook '{=name}' not found",
		refusal.HookProgramRelative: "hook has non-absolute cmd[0]",
		refusal.HookTrustMisplaced:  "fire_on_untrusted is on_receive only",
		refusal.HookExists: "This hook already exists as {name} with timeout_secs {count}: delete it " +
			"first, or pass a name to keep both.",
	},
}

// notAuthorized returns the refusal for a caller whose OS user the server does not know.
func notAuthorized() error { return tool.Refused(refusal.ErrDenied, denied) }
