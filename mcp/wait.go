package mcp

import (
	"context"
	"errors"
	"net/http"

	"mailtree/maildir"
	"mailtree/mcp/tool"
)

// WaitAsk is the body of POST /mailtree/wait: for whom a client waits.
type WaitAsk struct {
	Client  string `json:"client"`
	Session string `json:"session"`
	Dir     string `json:"dir"` // that the client was started in
}

// WaitAnswer is what the client is to do. Both fields are empty in an answer that the server's end
// cuts off: then the client asks the next server.
type WaitAnswer struct {
	Tell string `json:"tell,omitempty"` // to the model, which begins a turn
	Over bool   `json:"over,omitempty"` // nobody needs to wait any more
}

// wait answers when a client's session is to be woken, or there is nobody to wake.
func (s *Server) wait(w http.ResponseWriter, r *http.Request) {
	var ask WaitAsk
	if !s.readVerb(w, r, &ask) {
		return
	}
	s.lasting(w, r, func(ctx context.Context, a *answer) {
		answer, err := ask.await(ctx, s.cfg)
		if ctx.Err() == nil && err != nil {
			s.answerVerb(a, r, nil, err)
			return
		}
		a.Header().Set("Content-Type", "application/json")
		_, _ = a.Write(tool.Encode(answer))
	})
}

func (ask *WaitAsk) await(ctx context.Context, cfg Config) (a WaitAnswer, err error) {
	k := maildir.SessionKey{Client: ask.Client, ID: ask.Session}
	p, err := cfg.Store.Project(ctx, ask.Dir)
	if errors.Is(err, maildir.ErrNotFound) || err == nil && !k.Valid() {
		return WaitAnswer{Over: true}, nil
	}
	if err != nil {
		return a, err
	}
	news, over, err := p.AwaitNews(ctx, k, cfg.Settle)
	return WaitAnswer{Tell: news.String(), Over: over}, err
}
