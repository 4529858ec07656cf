package aimx

import (
	"fmt"
	"strings"

	"mailtree/maildir"
	"mailtree/maildir/format"
	"mailtree/mcp/tool"
)

// This file contains the arguments that several tools share, and the checks of their syntax.

// pageRequest requests the next part of a list that was too long for one response.
type pageRequest struct {
	Offset int `json:"offset,omitempty" jsonschema:"next_offset of the previous response"`
}

// goesOn returns the note that follows a truncated response. The note goes in a second TextContent, because the first
// must contain only the list or the file.
func goesOn(next int) string {
	if next == 0 {
		return ""
	}
	return fmt.Sprintf("To see more, pass offset %d.", next)
}

// folder is one folder of a mailbox.
type folder string

// The folders of a mailbox.
const (
	inbox folder = "inbox"
	sent  folder = "sent"
)

// known returns a refusal unless the folder is inbox or sent.
func (f folder) known() error {
	if f != inbox && f != sent {
		return tool.Invalid(`Invalid folder '%s': expected "inbox" or "sent".`, tool.Clip(string(f)))
	}
	return nil
}

// emailID is the id of a message.
type emailID string

// usable returns a refusal if the id is malformed.
func (id emailID) usable() error {
	switch {
	case id == "":
		return tool.Invalid("Email ID cannot be empty.")
	case strings.Contains(string(id), "..") || strings.ContainsAny(string(id), "/\\\x00"):
		return tool.Invalid("Email ID contains invalid characters.")
	}
	return nil
}

// variants contains the two alternatives to a Markdown body. A caller may pass only one of them.
type variants struct {
	TextOnly bool   `json:"text_only,omitempty" jsonschema:"the body is plain text, not markdown; cannot be combined with html_body"`
	HTML     string `json:"html_body,omitempty" jsonschema:"the body as HTML, sent unchanged with the text; cannot be combined with text_only" example:"<p>Hello</p>"`
}

// exclusive returns a refusal if a call passes both alternatives.
func (v variants) exclusive() error {
	if v.TextOnly && v.HTML != "" {
		return tool.Invalid("text_only and html_body are mutually exclusive: pass one of them.")
	}
	return nil
}

// checkName rejects names that this toolset does not allow for new mailboxes. The domain's rules for names apply too.
func checkName(name string) error {
	rule := ""
	switch {
	case reserved(name) || format.ServerName(name):
		rule = "reserved"
	case name == "":
		rule = "the name is empty"
	case strings.ContainsFunc(name, notInName):
		rule = "invalid character: the name must match [a-z0-9._-]+"
	case strings.Contains(name, ".."):
		rule = "the name contains '..'"
	case strings.HasPrefix(name, ".") || strings.HasSuffix(name, "."):
		rule = "the name begins or ends with '.'"
	}
	if rule != "" {
		return tool.Invalid("Validation: %s", rule)
	}
	return nil
}

func notInName(r rune) bool {
	return (r < 'a' || r > 'z') && (r < '0' || r > '9') && !strings.ContainsRune("._-", r)
}

// reserved reports whether a name is reserved for mail that does not belong to any mailbox.
func reserved(name string) bool { return maildir.ReservedMailbox(name) }
