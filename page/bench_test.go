package page_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"mailtree/fixtures/bulk"
	"mailtree/fixtures/storetest"
	"mailtree/maildir"
	"mailtree/maildir/format"
	"mailtree/page"
)

// BenchmarkViews measures how long a signed-in browser waits for a complete view of a store with 10,000 messages, or
// 100,000 with -large. One of the searches is for a word that occurs in every message.
func BenchmarkViews(b *testing.B) {
	mail := bulk.Mail{Name: "page", Messages: 10_000, Linked: true, Git: true}
	if bulk.Large() {
		mail.Messages = 100_000
	}
	root := mail.Store(b)
	storetest.Rebuild(b, root)
	s := storetest.Open(b, storetest.Config{Root: root, NoWatcher: true, NoCheck: true, Now: after(mail)})
	recent(b, s.Store)
	h := page.New(page.Config{Store: s.Store, Person: "Agent01", Now: after(mail)})
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(b.Context(), http.MethodGet, h.Link("Agent01", "uid:1000", ""), nil))
	session := w.Result().Cookies()[0]
	for _, view := range []string{
		"", "inbox", "threads", "threads?q=parser", "search?q=word123", "search?q=parser",
		"thread/T-1", "thread/users", "thread/users/atom", "compose", "agents", "claims", "activity", "problems",
	} {
		b.Run("view="+view, func(b *testing.B) {
			for b.Loop() {
				w := httptest.NewRecorder()
				r := httptest.NewRequestWithContext(b.Context(), http.MethodGet, "/p/"+bulk.Slug()+"/"+view, nil)
				r.AddCookie(session)
				h.ServeHTTP(w, r)
				if w.Code != http.StatusOK {
					b.Fatal(w.Code, w.Body)
				}
			}
		})
	}
}

// recent adds recent mail: 300 messages in one thread, half of which request an acknowledgment.
func recent(b *testing.B, s *maildir.Store) {
	p, err := s.Project(b.Context(), bulk.Slug())
	if err != nil {
		b.Fatal(err)
	}
	for i := range 300 {
		_, err := p.Box(fmt.Sprintf("Agent%02d", i%8), format.Origin{}).Send(b.Context(), maildir.Draft{
			To:          []string{fmt.Sprintf("Agent%02d", (i+1)%8)},
			Subject:     fmt.Sprint("Report ", i),
			Body:        "The plan for the users table and its migration.",
			ThreadID:    "users",
			AckRequired: i%2 == 0,
		})
		if err != nil {
			b.Fatal(err)
		}
	}
}

// after returns a clock that starts after the last message, or the real clock if that time is in the past.
func after(mail bulk.Mail) func() time.Time {
	last, _ := mail.Message(mail.Messages)
	ahead := max(time.Until(last.Created), 0)
	return func() time.Time { return time.Now().Add(ahead) }
}
