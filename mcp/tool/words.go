package tool

import "maps"

// phrases contains the phrases in refusals that all toolsets share, because they name settings or commands.
var phrases = map[string]string{
	"limit of projects":      "MAX_PROJECTS",
	"limit of unread mail":   "MAILBOX_DEPTH",
	"limit of fan-out":       "MAX_FANOUT_BYTES",
	"folders of attachments": "ATTACHMENT_ROOTS",
	"limit of emails":        "GATEWAY_RATE",
	"gateway": "GATEWAY_ALLOW lists the domains that mail may go to (* allows all). The user who " +
		"runs the server can add this domain.",
	"committing of edits": "COMMIT_EXTERNAL",
	"place of the store":  "MCP_MAIL_STORE (or --store)",
	"undo something else": "`mailtree undo ID` undoes the last action on a message (`mailtree undo --list` lists " +
		"what can be undone), `mailtree rm ID` deletes a message, `mailtree release` releases paths.",
	"list what to undo":        "`mailtree undo --list` lists what can be undone.",
	"shorten an id":            "",
	"redo something else":      "`mailtree redo ID` redoes the last undone action on a message.",
	"look closer":              "See `mailtree doctor` and the server's log",
	"if it stays so":           "If the problem persists, see /health and the server's log.",
	"list of such files":       "(`mailtree doctor` lists all such files)",
	"claim without the others": "with CLAIM_OFFLINE=local, the server grants machine-local claims in the meantime",
	"give an address":          "The user who runs the server can give it one: `mailtree mailbox create {=name} --project {=other}`",
	"turn the sync on":         "To share it, run `mailtree sync on`.",
	"choose the project": "If the problem persists, choose the project with `mailtree link PROJECT`. `mailtree help new project` " +
		"explains how to create a separate one.",
	"show a key":    "To print a machine's key, run `mailtree key show` there.",
	"forget a key":  "(`mailtree key distrust {=other}`)",
	"list the keys": "Run `mailtree key list` to see the names.",
}

// Phrases returns own, the phrases of one toolset or of the command line, together with the shared phrases.
func Phrases(own map[string]string) map[string]string {
	all := maps.Clone(phrases)
	maps.Copy(all, own)
	return all
}
