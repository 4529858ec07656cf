package mcp

import (
	"bufio"
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"mailtree/fixtures/storetest"

	"mailtree/mcp/protocol"
)

// TestEditsAreHeard checks that subscribers of both protocol eras are notified about changes that are made to the tree
// with an editor or a shell.
func TestEditsAreHeard(t *testing.T) {
	t.Parallel()
	store := storetest.Open(t, storetest.Config{})
	s, url := serve(t, Config{Store: store.Store})
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { s.Run(ctx) })
	t.Cleanup(func() { stop(); running.Wait() }) // the server must stop before the store is closed
	result(t, url, "create_agent", `{"project_key":"/abs/new","program":"x","model":"y","task_description":"z","name_hint":"Ann"}`)
	p := store.Projects()[0]
	uris := []string{"resource://inbox/Ann?project=/abs/new", "resource://message/h1", "resource://thread/T-1?project=/abs/new&include_bodies=true"}
	for era, heard := range map[string]chan string{"sessions": oldEra(t, url, uris), "2026-07-28": listenNew(t, url, uris)} {
		missing := map[string]bool{}
		for _, u := range uris {
			missing[u] = true
		}
		body := 0
		await(t, func() bool { // repeat the edit, because Run may not be watching yet
			body++
			file := "---json\n{\"id\": \"h1\", \"thread_id\": \"T-1\", \"from\": \"Ann\", \"to\": [\"Ann\"], \"created\": \"2026-01-01T00:00:00Z\"}\n---\n" + strings.Repeat("x", body) + era + "\n"
			for _, name := range []string{"messages/by/hand/h1.md", "agents/Ann/inbox/by/hand/h1.md"} {
				save(t, filepath.Join(p.Dir(), name), file)
			}
			for len(heard) > 0 {
				line := strings.ReplaceAll(<-heard, `\u0026`, "&")
				for u := range missing {
					if strings.Contains(line, `"uri":"`+u+`"`) {
						delete(missing, u)
					}
				}
			}
			return len(missing) == 0
		})
	}
}

// save writes a file the way editors do: it writes a new file, and then renames it.
func save(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	tmp := filepath.Join(filepath.Dir(name), ".new")
	if err := os.WriteFile(tmp, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(tmp, name); err != nil {
		t.Fatal(err)
	}
}

// oldEra subscribes in a session and returns the events on the session's stream.
func oldEra(t *testing.T, url string, uris []string) chan string {
	id := begin(t, url)
	stream := open(t, t.Context(), http.MethodGet, url, "", protocol.SessionHeader, id)
	for _, u := range uris {
		if _, body := request(t, url, inSession(id), `{"jsonrpc":"2.0","id":2,"method":"resources/subscribe","params":{"uri":"`+u+`"}}`); !strings.Contains(body, `"result"`) {
			t.Fatal(body)
		}
	}
	return dataLines(stream)
}

// listenNew subscribes without a session and returns the events on the stream.
func listenNew(t *testing.T, url string, uris []string) chan string {
	listen := `{"jsonrpc":"2.0","id":9,"method":"subscriptions/listen","params":{"notifications":{"resourceSubscriptions":["` + strings.Join(uris, `","`) + `"]},` +
		newEraMeta + `}}`
	return dataLines(open(t, t.Context(), http.MethodPost, url, listen, protocol.VersionHeader, protocol.NewEra, "Mcp-Method", "subscriptions/listen"))
}

func dataLines(stream *http.Response) chan string {
	heard := make(chan string, 1000)
	go func() {
		defer close(heard)
		r := bufio.NewReader(stream.Body)
		for line, err := r.ReadString('\n'); err == nil; line, err = r.ReadString('\n') {
			if strings.HasPrefix(line, "data: ") {
				heard <- line
			}
		}
	}()
	return heard
}
