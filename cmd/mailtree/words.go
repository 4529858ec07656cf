package main

import (
	"mailtree/maildir/refusal"
	"mailtree/mcp/tool"
)

// words contains the words that refusals use on the command line.
var words = refusal.Words{
	Args: map[refusal.Field]string{
		refusal.Project: "--project", refusal.Repository: "REPOSITORY", refusal.Moment: "--as-of", refusal.From: "--from",
	},
	Says: map[refusal.What]string{
		refusal.MailboxNotEmpty: "The mailbox {name} is not empty: {count} in its inbox, {count 2} sent. " +
			"To delete it with its mail, use --force.",
	},
	Phrases: tool.Phrases(map[string]string{
		"make a project":       "Specify another project with --project, or run `mailtree new project` in its code base.",
		"find agents":          "`mailtree agents` lists the agents.",
		"make an agent":        "",
		"find messages":        "`mailtree search WORD` finds messages.",
		"find threads":         "`mailtree search WORD` finds messages.",
		"shorten an id":        "An abbreviated id needs at least {limit} characters.",
		"read a thread":        "To read it, use `mailtree thread`.",
		"name the reader":      "",
		"list the inbox":       "`mailtree inbox` lists its messages.",
		"look anywhere":        "",
		"answer somebody else": "",
		"name one project":     "Specify one of them with --project.",
		"go on":                "continue where the previous response ended",
	}),
}

// pageWords contains the words that refusals use on the page. A reader in a browser cannot use flags, and the page does
// not show field names.
var pageWords = refusal.Words{
	Phrases: tool.Phrases(map[string]string{
		"make a project":       "The home page lists the projects.",
		"find agents":          "The agents page lists the agents.",
		"make an agent":        "",
		"find messages":        "Use search to find messages.",
		"find threads":         "Use search to find messages.",
		"read a thread":        "",
		"name the reader":      "To sign in, run `mailtree open`.",
		"list the inbox":       "",
		"look anywhere":        "",
		"answer somebody else": "",
		"name one project":     "The home page lists the projects.",
		"go on":                "start from the beginning",
		"place of the store":   "MCP_MAIL_STORE",
		"give an address":      "The user who runs the server can assign one.",
		"undo something else":  "To undo a change to a message, open its history.",
		"list what to undo":    "",
	}),
}
