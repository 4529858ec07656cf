package tool

import "maps"

// phrases are the phrases in refusals that all toolsets share, because they name settings and commands.
var phrases = map[string]string{
	"limit of projects":      "MAX_PROJECTS",
	"limit of unread mail":   "MAILBOX_DEPTH",
	"limit of fan-out":       "MAX_FANOUT_BYTES",
	"folders of attachments": "ATTACHMENT_ROOTS",
	"limit of emails":        "GATEWAY_RATE",
	"gateway":                "GATEWAY_ALLOW lists the domains that mail may go to (* is all): whoever runs the server can add this one.",
	"committing of edits":    "COMMIT_EXTERNAL",
	"place of the store":     "MCP_MAIL_STORE (or --store)",
	"undo something else": "`mailtree undo ID` takes back what was done to a message (`mailtree undo --list` names what can be), " +
		"`mailtree rm ID` removes one, `mailtree release` gives paths back.",
	"redo something else":      "`mailtree redo ID` does again what was undone of a message.",
	"look closer":              "See `mailtree doctor` and the server's log",
	"if it stays so":           "See /health and the server's log if it stays so.",
	"list of such files":       "(`mailtree doctor` names all such)",
	"claim without the others": "where CLAIM_OFFLINE=local is set, claims hold on this machine alone meanwhile",
	"give an address":          "The user who runs the server can give it one: `mailtree mailbox create {=name} --project {=other}`",
	"turn the sync on":         "`mailtree sync on` shares it.",
	"show a key":               "`mailtree key show` on the other machine prints it.",
	"forget a key":             "(`mailtree key distrust {=other}`)",
	"list the keys":            "`mailtree key list` shows the names.",
}

// Phrases returns the phrases of one toolset, or of the command line: its own phrases and the shared
// phrases.
func Phrases(own map[string]string) map[string]string {
	all := maps.Clone(phrases)
	maps.Copy(all, own)
	return all
}
