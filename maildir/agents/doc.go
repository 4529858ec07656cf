// Package agents registers the agents of a project and lists them. See docs/reference/tools.md, "Agents".
//
//	register.go   new agents, and users' agents
//	directory.go  whois and the list of agents
//	presence.go   ready, work and offline
package agents
