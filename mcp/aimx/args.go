package aimx

import (
	"fmt"
	"math"
	"strings"

	"mailtree/maildir"
	"mailtree/mcp/tool"
)

// The arguments that several tools share, and the checks of their form.

func mailboxArg() tool.Prop {
	return tool.Need("mailbox", tool.Str("name of a mailbox of yours", "task-42"))
}

func idArg() tool.Prop {
	return tool.Need("id", tool.Str("email id, as email_list shows it", "msg_20251023_3a51c0f7b3dc3a7e"))
}

func folderArg() tool.Prop {
	return tool.May("folder", tool.OneOf("side of the mailbox", inbox, inbox, sent))
}

// offsetArg continues a list or a text that was too long for one answer.
func offsetArg(about string) tool.Prop {
	return tool.May("offset", tool.Num(about, 0, math.MaxInt32, 0))
}

// goesOn is the second text of an answer that is cut. The first text is a list or a file, which has
// no place for such a note.
func goesOn(next int) string {
	if next == 0 {
		return ""
	}
	return fmt.Sprintf("This is not all: pass offset %d for what follows.", next)
}

func variantArgs() []tool.Prop {
	return []tool.Prop{
		tool.May("text_only", tool.Flag("the body is plain text, no markdown; not with html_body")),
		tool.May("html_body", tool.Str("the body in HTML, kept as it is beside the body as text; not with text_only", "<p>Hello</p>")),
	}
}

// The folders of a mailbox.
const (
	inbox = "inbox"
	sent  = "sent"
)

// folder reports whether the call means the outbox.
func folder(a *tool.Args) (outbox bool) {
	if !a.Has("folder") {
		return false
	}
	f := a.Text("folder")
	if a.Err() == nil && f != inbox && f != sent {
		a.Fail(tool.Invalid(`Invalid folder '%s': expected "inbox" or "sent".`, tool.Clip(f)))
	}
	return f == sent
}

func emailID(a *tool.Args) string {
	id := a.Text("id")
	switch {
	case a.Err() != nil:
	case id == "":
		a.Fail(tool.Invalid("Email ID cannot be empty."))
	case strings.Contains(id, "..") || strings.ContainsAny(id, "/\\\x00"):
		a.Fail(tool.Invalid("Email ID contains invalid characters."))
	}
	return id
}

func variants(a *tool.Args) maildir.Variants {
	v := maildir.Variants{TextOnly: a.Flag("text_only"), HTML: a.Text("html_body")}
	if a.Err() == nil && v.TextOnly && a.Has("html_body") {
		a.Fail(tool.Invalid("text_only and html_body are mutually exclusive: pass one of them."))
	}
	return v
}

// line reads an argument that must be one line of text.
func line(a *tool.Args, name string) string { return oneLine(a, name, a.Text(name)) }

func oneLine(a *tool.Args, name, s string) string {
	if a.Err() == nil && strings.ContainsAny(s, "\r\n") {
		a.Fail(tool.Invalid("%s is %q, which contains a line break (CR or LF): write it on one line.", name, tool.Clip(s)))
	}
	return s
}

// newName checks the name of a new mailbox, as far as this toolset has rules beyond the domain's
// for agents.
func newName(a *tool.Args) string {
	name := a.Text("name")
	rule := ""
	switch {
	case a.Err() != nil:
	case reserved(name) || maildir.ServerName(name):
		rule = "reserved"
	case name == "":
		rule = "the name is empty"
	case strings.ContainsFunc(name, notInName):
		rule = "invalid character: the name must match [a-z0-9._-]+"
	case strings.Contains(name, ".."):
		rule = "the name contains .."
	case strings.HasPrefix(name, ".") || strings.HasSuffix(name, "."):
		rule = "the name begins or ends with ."
	}
	if rule != "" {
		a.Fail(tool.Invalid("Validation: %s", rule))
	}
	return name
}

func notInName(r rune) bool {
	return (r < 'a' || r > 'z') && (r < '0' || r > '9') && !strings.ContainsRune("._-", r)
}

// reserved reports whether the name is kept for mail that no mailbox takes.
func reserved(name string) bool { return name == "catchall" || name == "aimx-catchall" }
