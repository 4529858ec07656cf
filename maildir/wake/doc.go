// Package wake decides when an agent gets a notice about its mail. Each client session acts as one agent. The session
// begins with the first event that the client reports. Its model gets one notice about each message. If the model's
// context is reset, it gets the notices again. An idle session is woken if it has unread mail that has not been
// announced to it, but only once for the same messages. An agent without a session is woken in its tmux window while
// the agent is ready, once for each message.
//
// Some clients wait to be woken (AwaitNews). The server wakes the other clients (IdleSeats). All of this is run-time
// state (package seat). See docs/reference/hooks.md, "Waking", and docs/reference/agentmail.md, "Waking an agent in
// tmux".
//
//	sessions.go    the agent of a session, and the session's state
//	waking.go      which agents to wake now
//	volley.go      two agents that only reply to each other
//	unwakeable.go  why mail cannot wake an agent
package wake
