package mcp

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"mailtree/fixtures/storetest"
)

// TestProbes checks the probes of a server that requires a token. It covers a server that is ready, a server whose
// index does not respond, and a server that is stopping. All other paths must require the token.
func TestProbes(t *testing.T) {
	t.Parallel()
	var fault error
	store := storetest.Open(t, storetest.Config{NoWatcher: true})
	s := New(Config{
		Store: store.Store, Token: "secret", RequireToken: true,
		Ready: func(context.Context) error { return fault },
	})
	probe := func(path string, status int, text string) {
		t.Helper()
		w, r := httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1"+path, nil)
		s.Handler().ServeHTTP(w, r)
		if w.Code != status || !strings.Contains(w.Body.String(), text) {
			t.Errorf("%s: %d %q, want %d %q", path, w.Code, w.Body, status, text)
		}
	}
	probe("/livez", http.StatusOK, "ok\n")
	probe("/readyz", http.StatusOK, "ok\n")
	probe("/health", http.StatusUnauthorized, "")
	fault = errors.New("the index is not responding")
	probe("/livez", http.StatusOK, "ok\n")
	probe("/readyz", http.StatusServiceUnavailable, "the index is not responding\n")
	fault = nil
	s.end()
	probe("/livez", http.StatusOK, "ok\n")
	probe("/readyz", http.StatusServiceUnavailable, "the server is stopping\n")
}
