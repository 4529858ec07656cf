// Package cli contains the parts that all user commands share: a client for the store's server, and the screen to which
// commands print.
//
// Commands reach the server in only one way, over HTTP on its socket (mcp/peer.go). They call tools and read resources,
// and use the socket's verbs for everything else. They receive the same results as MCP clients, so --json prints a
// tool's structured content. The client identifies itself as a command-line client, and the server words its refusals
// accordingly.
//
// Text written by others must reach a terminal only through Line, Text or Markdown.
package cli
