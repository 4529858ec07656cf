package page_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"mailtree/fixtures/bulk"
	"mailtree/fixtures/storetest"
	"mailtree/page"
)

// BenchmarkViews is the time to a whole view of a store of 10,000 messages, with -large of 100,000.
func BenchmarkViews(b *testing.B) {
	mail := bulk.Mail{Messages: 10_000, Linked: true}
	if bulk.Large() {
		mail.Messages = 100_000
	}
	root := mail.Store(b)
	storetest.Rebuild(b, root)
	s := storetest.Open(b, storetest.Config{Root: root, NoWatcher: true, NoCheck: true})
	h := page.New(page.Config{Store: s.Store, Person: "Agent01"})
	for _, view := range []string{"", "inbox", "inbox?all=1", "threads", "search?q=word123", "agents", "claims", "activity"} {
		b.Run("view="+view, func(b *testing.B) {
			for b.Loop() {
				w := httptest.NewRecorder()
				h.ServeHTTP(w, httptest.NewRequestWithContext(b.Context(), http.MethodGet, "/p/"+bulk.Slug()+"/"+view, nil))
				if w.Code != http.StatusOK {
					b.Fatal(w.Code, w.Body)
				}
			}
		})
	}
}
