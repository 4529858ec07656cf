// Package wake decides when an agent gets a notice about its mail. A session of a client works as one agent. The session
// begins with the first event that the client reports. Its model gets one notice about each message, until the model's
// context is cut. An idle session is woken for unread mail that it had no notice about, once for the same messages. An
// agent without a session is woken in its tmux window while it is ready, once for each message. Clients that can be woken
// wait for that (AwaitNews). The server wakes the others (IdleSeats). All of this is run-time state (package seat). See
// docs/hooks.md, "Waking", and docs/agentmail.md, "Waking an agent in tmux".
//
//	sessions.go    which agent a session is, and what it does
//	waking.go      who is to be woken now
//	volley.go      two agents that only answer each other
//	unwakeable.go  why mail wakes an agent or not
package wake
