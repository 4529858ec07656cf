package mcp

import (
	"net/http"

	"mailtree/mcp/mail"
	"mailtree/mcp/tool"
)

// card is a server card, which a client reads before it connects (SEP-2127). The card does not list the tools, because
// tools/list does that.
type card struct {
	Schema      string       `json:"$schema"`
	Name        string       `json:"name"`
	Version     string       `json:"version"`
	Title       string       `json:"title"`
	Description string       `json:"description"`
	Remotes     []cardRemote `json:"remotes"`
}

type cardRemote struct {
	Type    string       `json:"type"`
	URL     string       `json:"url"`
	Headers []cardHeader `json:"headers,omitempty"`
}

type cardHeader struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Required    bool   `json:"isRequired"`
	Secret      bool   `json:"isSecret"`
}

const (
	// cardName is the server's name in the form that the registry uses, as in server.json. The part before the slash
	// must not be a domain that anyone could register. The .internal domain is reserved for private use.
	cardName   = "internal.mailtree/mailtree"
	cardSchema = "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json"
	cardType   = "application/mcp-server-card+json"
)

// cardPaths lists the path that SEP-2127 reserves and the path below /.well-known/ that scanners request.
var cardPaths = []string{"GET /mcp/server-card", "GET /.well-known/mcp/server-card.json"}

// card serves the server card. No token is required, because clients learn from the card whether they need one.
// SEP-2127 asks public servers to send a header that lets pages from other origins read the card. This server sends no
// such header, because web pages have no need to know which programs run on this machine.
func (s *Server) card(w http.ResponseWriter, r *http.Request) {
	remote := cardRemote{Type: "streamable-http", URL: "http://" + r.Host + "/mcp"}
	if s.cfg.RequireToken {
		remote.Headers = []cardHeader{{
			Name:        "Authorization",
			Description: "Bearer TOKEN, where TOKEN is the content of the file named token in the mail store",
			Required:    true,
			Secret:      true,
		}}
	}
	w.Header().Set("Content-Type", cardType)
	w.Header().Set("Cache-Control", "no-cache") // a different server may use this port later
	_, _ = w.Write(append(tool.Encode(card{
		Schema:      cardSchema,
		Name:        cardName,
		Version:     s.cfg.Version,
		Title:       mail.Title,
		Description: mail.Description,
		Remotes:     []cardRemote{remote},
	}), '\n'))
}
