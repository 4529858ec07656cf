package mail

import (
	"maps"

	"mailtree/maildir"
	"mailtree/maildir/refusal"
	"mailtree/mcp/tool"
)

// words defines the wording of the tools' refusals.
var words = refusal.Words{
	Args: map[refusal.Field]string{
		refusal.Project:     "project_key",
		refusal.Agent:       "agent_name",
		refusal.From:        "from_agent",
		refusal.Recipients:  "to, cc or bcc",
		refusal.To:          "to",
		refusal.CC:          "cc",
		refusal.BCC:         "bcc",
		refusal.Subject:     "subject",
		refusal.Body:        "body_md",
		refusal.Importance:  "importance",
		refusal.Thread:      "thread_id",
		refusal.Key:         "key",
		refusal.InReplyTo:   "reply_to_message_id",
		refusal.Attachments: "attachments",
		refusal.HTML:        "html_body",
		refusal.Message:     "message_id",
		refusal.Offset:      "body_offset",
		refusal.Query:       "query",
		refusal.Cursor:      "cursor",
		refusal.Paths:       "paths",
		refusal.Lease:       "ttl_seconds",
		refusal.Reason:      "reason",
		refusal.Program:     "program",
		refusal.Model:       "model",
		refusal.Task:        "task_description",
		refusal.NameHint:    "name_hint",
		refusal.Repository:  "code_repo_path",
	},
	Phrases: tool.Phrases(map[string]string{
		"make a project": "create_agent creates a project if you pass its absolute path.",
		"find agents":    "list_agents lists the project's agents.",
		"make an agent":  "create_agent creates a new identity.",
		"find messages":  "search_messages finds messages by their text.",
		"find threads": "search_messages finds messages by their text: pass the id or the thread_id of a " +
			"result.",
		"read a thread":        "check_my_messages with thread_id lists its messages.",
		"name the reader":      "Pass agent_name.",
		"list the inbox":       "check_my_messages lists the inbox.",
		"look anywhere":        "list_agents lists a project's agents, and search_messages finds messages.",
		"answer somebody else": "Specify the recipients in the argument to.",
		"name one project":     "Specify one of them in the URI, with ?project=.",
		"go on":                "pass next_offset from the previous response",
	}),
}

// say returns the text of a note, or "" if note is nil.
func say(note *maildir.Error) string {
	if note == nil {
		return ""
	}
	return words.Say(note)
}

// resourceWords defines the wording of the resources' refusals. The arguments of a resource are parts of its URI.
var resourceWords = refusal.Words{
	Args: map[refusal.Field]string{
		refusal.Project: "project",
		refusal.Offset:  "body_offset",
		refusal.Cursor:  "cursor",
		refusal.Moment:  "as_of",
	},
	Phrases: maps.Clone(words.Phrases),
}
