package event

import "encoding/json"

// CanWait reports whether a client is woken by a hook that waits. Without a person at it Claude Code
// does not end before its hooks have.
func CanWait(client string, env func(name string) string) bool {
	switch client {
	case "claude":
		return env("CLAUDE_CODE_ENTRYPOINT") == "cli" && env("CLAUDE_CODE_SESSION_ATTENDED") != "0"
	case "opencode":
		return true
	}
	return false
}

// FormatWake returns what a hook that waited prints so that its client begins a turn with the
// text, and its exit status.
func FormatWake(client, text string) (stdout, stderr []byte, exit int) {
	if client == "claude" {
		return nil, []byte(text + "\n"), 2
	}
	line, _ := json.Marshal(map[string]string{"tell": text}) // of a string: it cannot fail
	return append(line, '\n'), nil, 0
}
