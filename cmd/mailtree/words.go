package main

import (
	"mailtree/maildir/refusal"
	"mailtree/mcp/tool"
)

// words are the words for refusals on the command line.
var words = refusal.Words{
	Args: map[refusal.Field]string{
		refusal.Project: "--project", refusal.Repository: "REPOSITORY", refusal.Moment: "--as-of", refusal.From: "--from",
	},
	Says: map[refusal.What]string{
		refusal.MailboxNotEmpty: "The mailbox {name} is not empty: {count} in its inbox, {count 2} sent. --force deletes it with its mail.",
	},
	Phrases: tool.Phrases(map[string]string{
		"make a project":       "Name another one with --project, or make this one with `mailtree new project`.",
		"find agents":          "`mailtree agents` lists them.",
		"make an agent":        "",
		"find messages":        "`mailtree search` finds them.",
		"find threads":         "`mailtree search` finds them.",
		"read a thread":        "`mailtree thread` reads it.",
		"list unread":          "`mailtree inbox --unread` lists them.",
		"list the inbox":       "`mailtree inbox` lists what is there.",
		"look anywhere":        "",
		"answer somebody else": "",
		"name one project":     "Name one of them with --project.",
		"go on":                "go on where the answer before ended",
	}),
}

// pageWords are the words for refusals on the page. A reader in a browser has no flags, and fields have no names
// there.
var pageWords = refusal.Words{
	Phrases: tool.Phrases(map[string]string{
		"make a project":       "The first page lists the projects.",
		"find agents":          "The view of the agents lists them.",
		"make an agent":        "",
		"find messages":        "The search finds them.",
		"find threads":         "The search finds them.",
		"read a thread":        "",
		"list unread":          "",
		"list the inbox":       "",
		"look anywhere":        "",
		"answer somebody else": "",
		"name one project":     "The first page lists the projects.",
		"go on":                "begin the list anew",
		"place of the store":   "MCP_MAIL_STORE",
		"give an address":      "The user who runs the server can give it one.",
		"undo something else":  "The history of a message undoes what was done to it.",
	}),
}
