package format

import (
	"slices"
	"strings"
)

// ValidName reports whether name is a valid agent name. See docs/reference/tree.md, "An agent".
func ValidName(name string) bool { return CheckName(name) == "" }

// CheckName returns what is wrong with an agent's name, or "" if the name is valid.
func CheckName(name string) string {
	switch {
	case name == "":
		return "it is empty"
	case len(name) > 64:
		return "it is longer than 64 characters"
	case !PlainName(name):
		return "use letters, digits, '.', '_' and '-', beginning with a letter or digit"
	case strings.HasSuffix(name, "."):
		return "it ends with a dot"
	case Ignored(name):
		return "editors use names like this for their own files"
	}
	stem, _, _ := strings.Cut(strings.ToLower(name), ".")
	if slices.Contains(windowsReserved, stem) {
		return "it is reserved on Windows"
	}
	return ""
}

// NameOfWindow returns the agent name for a tmux window, which is the window's name without spaces. The agent's own
// name may differ in case. NameOfWindow returns "" if the result is not a valid agent name. See
// docs/reference/agentmail.md, "Who is who".
func NameOfWindow(window string) string {
	name := strings.Join(strings.Fields(window), "")
	if !ValidName(name) {
		return ""
	}
	return name
}

// Postmaster is the sender of the server's own messages to agents. These messages report saved files that did not have
// the intended effect, undelivered mail, and invalid claims. Postmaster is not an agent and has no folder, and no agent
// can register that name. Postmaster reports each issue only once, because the message's idempotency key identifies the
// issue.
const Postmaster = "Postmaster"

// ServerName reports whether a name is reserved for the server, ignoring case. The server sends mail to agents as
// Postmaster, and commits as mailtree. No agent can have a reserved name, and mail in an outbox with a reserved name
// is not sent.
func ServerName(name string) bool {
	return slices.Contains([]string{"postmaster", "mailtree", "system"}, strings.ToLower(name))
}

var windowsReserved = []string{"con", "prn", "aux", "nul", "com0", "com1", "com2", "com3", "com4", "com5", "com6", "com7", "com8", "com9",
	"lpt0", "lpt1", "lpt2", "lpt3", "lpt4", "lpt5", "lpt6", "lpt7", "lpt8", "lpt9"}
