// Package wake decides when an agent gets a notice about its mail. A client's session works as one agent. The
// session begins with the first event that the client reports. Its model gets one notice about each message; when
// the model's context is reset, it gets the notices again. An idle session is woken for unread mail that it had no
// notice about, once for the same messages. An agent without a session is woken in its tmux window while the agent
// is ready, once for each message. Clients that can be woken wait for that (AwaitNews). The server wakes the others
// (IdleSeats). All of this is run-time state (package seat). See docs/hooks.md, "Waking", and docs/agentmail.md,
// "Waking an agent in tmux".
//
//	sessions.go    the agent of a session, and the session's state
//	waking.go      which agents to wake now
//	volley.go      two agents that only answer each other
//	unwakeable.go  why mail wakes an agent or not
package wake
