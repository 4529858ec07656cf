package main

import (
	"strings"

	"github.com/spf13/cobra"
)

// examples has a line for each command, by the command's path below mailtree.
var examples = map[string]string{
	"ack":                   "ack 1",
	"agents":                "agents",
	"archive":               "archive 2 3",
	"attachments":           "attachments gc --dry-run",
	"attachments gc":        "attachments gc --dry-run",
	"claim":                 "claim 'src/**' --for 2h",
	"claims":                "claims",
	"completion":            "completion bash",
	"completion bash":       "completion bash",
	"completion fish":       "completion fish",
	"completion powershell": "completion powershell",
	"completion zsh":        "completion zsh",
	"config":                "config",
	"doctor":                "doctor",
	"edit":                  "edit 3a51c0f7",
	"fmt":                   "fmt draft.md",
	"gateway":               "gateway setup example.org",
	"gateway check":         "gateway check ann@example.net",
	"gateway queue":         "gateway queue",
	"gateway setup":         "gateway setup example.org",
	"guard":                 "guard install",
	"guard check":           "guard check src/api/users.go",
	"guard install":         "guard install",
	"guard status":          "guard status",
	"guard uninstall":       "guard uninstall",
	"help":                  "help reply",
	"help all":              "help all",
	"hook":                  "hook claude",
	"inbox":                 "inbox --unread",
	"index":                 "index verify",
	"index dump":            "index dump",
	"index rebuild":         "index rebuild",
	"index verify":          "index verify",
	"key":                   "key show",
	"key distrust":          "key distrust laptop",
	"key list":              "key list",
	"key show":              "key show",
	"key trust":             "key trust KEY laptop",
	"log":                   "log GreenCastle",
	"logs":                  "logs --follow",
	"mailbox":               "mailbox create support --owner www-data",
	"mailbox create":        "mailbox create support --owner www-data",
	"mailbox delete":        "mailbox delete support",
	"mailbox hook":          "mailbox hook list",
	"mailbox hook add":      "mailbox hook add support on_receive /usr/local/bin/answer --quick",
	"mailbox hook list":     "mailbox hook list support",
	"mailbox hook remove":   "mailbox hook remove HOOK",
	"mailbox list":          "mailbox list",
	"mailbox trust":         "mailbox trust support @example.net",
	"man":                   "man guard install | man -l -",
	"me":                    "me",
	"new":                   "new project",
	"new agent":             "new agent BlueLake --task 'the API'",
	"new draft":             "new draft GreenCastle",
	"new project":           "new project",
	"nudge":                 "nudge --watch",
	"open":                  "open",
	"problems":              "problems",
	"projects":              "projects",
	"read":                  "read 1",
	"release":               "release --all",
	"reply":                 `reply 1 "Yes, now."`,
	"rm":                    "rm 3",
	"search":                "search from:BlueLake migration",
	"send":                  `send BlueLake "Nice work."`,
	"serve":                 "serve --port 8765",
	"service":               "service",
	"setup":                 "setup claude",
	"status":                "status",
	"stdio":                 "stdio",
	"stop":                  "stop",
	"thread":                "thread 1",
	"today":                 "today",
	"token":                 "token",
	"undo":                  "undo",
	"version":               "version",
	"watch":                 "watch --all",
	"whois":                 "whois GreenCastle",
}

// addExamples gives each command below c its example.
func addExamples(c *cobra.Command) {
	for _, sub := range c.Commands() {
		_, path, _ := strings.Cut(sub.CommandPath(), " ")
		if line := examples[path]; line != "" {
			sub.Example = "  mailtree " + line
		}
		addExamples(sub)
	}
}
