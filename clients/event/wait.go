package event

import "encoding/json"

// Waits reports whether the client has hooks that keep running in the background, and that can wake a session when they
// exit.
func Waits(client string) bool { return client == "claude" || client == "opencode" }

// CanWait reports whether a waiting hook can wake the session. In an unattended session, Claude Code does not exit
// until its hooks have exited, so they must not wait.
func CanWait(client string, env func(name string) string) bool {
	switch client {
	case "claude":
		return env("CLAUDE_CODE_ENTRYPOINT") == "cli" && env("CLAUDE_CODE_SESSION_ATTENDED") != "0"
	case "opencode":
		return true
	}
	return false
}

// FormatWake returns the output and the exit status that make the client start a turn with the text. A waiting hook
// must print this output, and then exit with this status.
func FormatWake(client, text string) (stdout, stderr []byte, exit int) {
	if client == "claude" {
		return nil, []byte(text + "\n"), 2
	}
	line, _ := json.Marshal(map[string]string{"tell": text}) // cannot fail: the map contains only a string
	return append(line, '\n'), nil, 0
}
