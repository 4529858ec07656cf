package main

import (
	"mailtree/maildir/refusal"
	"mailtree/mcp/tool"
)

// words are in what the command line tells of refusals.
var words = refusal.Words{
	Args: map[refusal.Field]string{refusal.Project: "--project", refusal.Repository: "REPOSITORY"},
	Phrases: tool.Phrases(map[string]string{
		"make a project":       "A project is made when an agent first works in it; or name another one.",
		"find agents":          "",
		"make an agent":        "",
		"find messages":        "",
		"find threads":         "",
		"read a thread":        "",
		"list unread":          "",
		"list the inbox":       "",
		"look anywhere":        "",
		"answer somebody else": "",
		"name one project":     "Name one of them with --project.",
		"go on":                "go on where the answer before ended",
	}),
}
