// Package cli contains what users' commands share: a client for the store's server, and the screen that commands
// print on.
//
// Commands reach the server in only one way: over HTTP on its socket (mcp/peer.go). They call tools and read resources,
// and use the socket's verbs for everything else. The answers are those of the toolset, so --json prints a tool's
// structured content. Refusals are worded for a command line, because the client identifies itself as one.
//
// Text written by others must reach a terminal only through Line, Text or Markdown.
package cli
