package postal

import (
	"mailtree/maildir/refusal"
	"mailtree/mcp/tool"
)

var words = refusal.Words{
	Args: map[refusal.Field]string{refusal.Recipients: "name", refusal.To: "name", refusal.Body: "msg", refusal.Key: "msg_id"},
	Phrases: tool.Phrases(map[string]string{
		"make a project":       "?project= makes a project when given its absolute path.",
		"find agents":          "",
		"make an agent":        "send_to_agent makes an agent when it first names one.",
		"find messages":        "",
		"find threads":         "",
		"read a thread":        "",
		"list unread":          "",
		"list the inbox":       "",
		"look anywhere":        "",
		"answer somebody else": "send_to_agent writes to anybody.",
		"name one project":     "Name one with ?project=.",
		"go on":                "go on where the answer before ended",
	}),
}
