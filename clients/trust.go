package clients

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"time"
)

// asking is how long Codex may take to answer a question.
const asking = 10 * time.Second

// Trust is what a client says of our hooks.
type Trust struct {
	Listed int // those that it knows
	Run    int // those that it runs
}

// Trusted asks the client which of our hooks a person trusts, by running it. It returns nil for a
// client that asks nobody for trust. Errors: exec.ErrNotFound; what the client did instead of an
// answer.
func (s Setup) Trusted(ctx context.Context) (*Trust, error) {
	if s.Client.hooks.trust == "" {
		return nil, nil
	}
	hooks, err := codexHookList(ctx, s.Dir)
	if err != nil {
		return nil, err
	}
	var t Trust
	for _, h := range hooks {
		if s.Client.ownHandler(map[string]any{"command": h.Command}) == "" {
			continue
		}
		t.Listed++
		if h.Enabled && slices.Contains([]string{"trusted", "managed"}, h.TrustStatus) {
			t.Run++
		}
	}
	return &t, nil
}

// codexHook is a hook as the app server of Codex tells of it.
type codexHook struct {
	Command     string `json:"command"`
	Enabled     bool   `json:"enabled"`
	TrustStatus string `json:"trustStatus"` // trusted, managed, untrusted, modified
}

// codexHookList asks for the hooks of a folder. No file says which of them are trusted: the hash that
// Codex compares is its own.
func codexHookList(ctx context.Context, dir string) (hooks []codexHook, err error) {
	var told struct {
		Data []struct {
			Hooks []codexHook `json:"hooks"`
		} `json:"data"`
	}
	err = askCodex(ctx, dir, "hooks/list", map[string]any{"cwds": []string{dir}}, &told)
	for _, d := range told.Data {
		hooks = append(hooks, d.Hooks...)
	}
	return hooks, err
}

// askCodex asks `codex app-server`, started in a folder, by JSON-RPC.
func askCodex(ctx context.Context, dir, method string, params, result any) error {
	ctx, cancel := context.WithTimeout(ctx, asking)
	defer cancel()
	c := exec.CommandContext(ctx, "codex", "app-server")
	c.Dir, c.WaitDelay = dir, time.Second
	in, err := c.StdinPipe()
	if err != nil {
		return err
	}
	out, err := c.StdoutPipe()
	if err != nil {
		return err
	}
	if err := c.Start(); err != nil {
		return err
	}
	defer func() {
		cancel()
		_ = c.Wait() // it is killed: its status tells nothing
	}()
	const question = 1 // the request's id
	for _, m := range []map[string]any{
		{"id": 0, "method": "initialize", "params": map[string]any{"clientInfo": map[string]string{"name": program, "version": "1"}}},
		{"method": "initialized"},
		{"id": question, "method": method, "params": params},
	} {
		if err := json.NewEncoder(in).Encode(m); err != nil {
			return err
		}
	}
	for lines := bufio.NewReader(out); ; {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return errors.Join(errors.New("codex app-server did not answer"), ctx.Err())
		}
		var answer struct {
			ID     *int            `json:"id"`
			Result json.RawMessage `json:"result"`
			Error  *struct {
				Message string `json:"message"`
			} `json:"error"`
		}
		if json.Unmarshal(line, &answer) != nil || answer.ID == nil || *answer.ID != question {
			continue
		}
		if answer.Error != nil {
			return fmt.Errorf("codex app-server: %s", answer.Error.Message)
		}
		return json.Unmarshal(answer.Result, result)
	}
}
