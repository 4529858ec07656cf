package format

import (
	"slices"
	"strings"
)

// ValidName reports whether a given agent name can be used.
// See docs/tree.md, "An agent".
func ValidName(name string) bool { return CheckName(name) == "" }

// CheckName says what is wrong with an agent's name, "" when nothing is.
func CheckName(name string) string {
	switch {
	case name == "":
		return "it is empty"
	case len(name) > 64:
		return "longer than 64 characters"
	case !PlainName(name):
		return "use letters, digits, '.', '_' and '-', the first a letter or digit"
	case strings.HasSuffix(name, "."):
		return "it ends with a dot"
	case Ignored(name):
		return "editors use such names for their own files"
	}
	stem, _, _ := strings.Cut(strings.ToLower(name), ".")
	if slices.Contains(windowsReserved, stem) {
		return "reserved on Windows"
	}
	return ""
}

// Postmaster writes to agents on the server's behalf: of files that they saved and that do not do
// what they probably meant. It is no agent, has no folder, and nobody can register its name. It
// tells of one thing once: the idempotency key of its message names that.
const Postmaster = "Postmaster"

// ServerName reports whether a name, in any case, is one under which the server itself speaks: Postmaster
// writes to agents, mailtree commits. No agent gets it, and nothing is sent from its outbox.
func ServerName(name string) bool {
	return slices.Contains([]string{"postmaster", "mailtree", "system"}, strings.ToLower(name))
}

var windowsReserved = []string{"con", "prn", "aux", "nul", "com0", "com1", "com2", "com3", "com4", "com5", "com6", "com7", "com8", "com9",
	"lpt0", "lpt1", "lpt2", "lpt3", "lpt4", "lpt5", "lpt6", "lpt7", "lpt8", "lpt9"}
