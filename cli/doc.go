// Package cli is what commands for people are made of: a client of the store's server, and the
// screen that they print on.
//
// A command knows one way to the mail: the HTTP of the server's socket (mcp/peer.go). What has a
// tool it calls as that tool, what has a resource it reads as that resource, and the rest are verbs
// of the socket. The answers are the toolset's own, so that --json prints what a tool's structured
// content is. Refusals come worded for a command line, because the client says that it is one.
//
// Nothing that somebody else wrote reaches a terminal but through Line or Text.
package cli
