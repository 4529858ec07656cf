package maildir_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mailtree/fixtures/storetest"
	"mailtree/maildir"
	"mailtree/maildir/format"
	"mailtree/maildir/history"
	"mailtree/maildir/index"
)

// moment returns the newest commit as a Moment.
func moment(t *testing.T, p *maildir.Project) history.Moment {
	t.Helper()
	if err := p.FlushHistory(t.Context()); err != nil {
		t.Fatal(err)
	}
	var at history.Moment
	err := p.Log(t.Context(), maildir.LogQuery{Limit: 1}, func(e *history.Entry) error {
		at.Commit = e.Commit
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// TestInboxAsOf checks that InboxAsOf returns an earlier state of an inbox with the right marks, filters and pages,
// even after everything in the inbox was deleted.
func TestInboxAsOf(t *testing.T) {
	t.Parallel()
	p := project(t, storetest.Config{NoWatcher: true}, "Ann", "Bob")
	var ids []string
	for i, importance := range []string{"normal", "high", "normal", "normal", "low"} {
		m := send(t, p, "Ann", maildir.Draft{
			To:         []string{"Bob"},
			Subject:    fmt.Sprint(i),
			Body:       "text " + fmt.Sprint(i),
			Importance: importance,
		})
		ids = append(ids, m.ID)
	}
	unmarked := moment(t, p)
	for _, mark := range []func() (*index.Delivery, error){
		func() (*index.Delivery, error) {
			return p.Box("Bob", format.Origin{}).SetRead(t.Context(), ids[0], true)
		},
		func() (*index.Delivery, error) { return p.Box("Bob", format.Origin{}).Acknowledge(t.Context(), ids[1]) },
		func() (*index.Delivery, error) { return p.Box("Bob", format.Origin{}).Archive(t.Context(), ids[2]) },
	} {
		if _, err := mark(); err != nil {
			t.Fatal(err)
		}
	}
	now, err := p.Box("Bob", format.Origin{}).Inbox(t.Context(), index.InboxQuery{Archived: true}, false, maildir.Waiting{})
	if err != nil {
		t.Fatal(err)
	}
	marked := moment(t, p)
	for _, id := range ids {
		if _, err := p.Box("Ann", format.Origin{}).Delete(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	show := func(page *maildir.InboxPage) string {
		var all []string
		for _, d := range page.Messages {
			text := fmt.Sprint(d.Subject, " ", d.Kind, " ", d.Body)
			for _, m := range []struct {
				name string
				is   bool
				at   time.Time
			}{{"read", d.Read, d.ReadAt.Time}, {"acked", d.Acked, d.AckedAt.Time}, {"archived", d.Archived, time.Time{}}} {
				if m.is {
					text += fmt.Sprint(" ", m.name, " ", m.at.UnixMicro())
				}
			}
			all = append(all, text)
		}
		return fmt.Sprint(strings.Join(all, "\n"), "\n", page.Unread, page.Total, page.Archived)
	}
	asOf := func(at history.Moment, q index.InboxQuery) *maildir.InboxPage {
		t.Helper()
		q.Agent = "Bob"
		page, err := p.Box(q.Agent, format.Origin{}).InboxAsOf(t.Context(), q, at)
		if err != nil {
			t.Fatal(err)
		}
		return page
	}
	subjects := func(page *maildir.InboxPage) (all string) {
		for _, d := range page.Messages {
			all += d.Subject
		}
		return all
	}
	if got, want := show(asOf(marked, index.InboxQuery{Archived: true})), show(now); got != want {
		t.Errorf("the inbox as it was:\n%s\nwant:\n%s", got, want)
	}
	for _, tt := range []struct {
		at   history.Moment
		q    index.InboxQuery
		want string
	}{
		{marked, index.InboxQuery{}, "4310"},
		{marked, index.InboxQuery{UnreadOnly: true}, "43"},
		{marked, index.InboxQuery{UrgentOnly: true}, "1"},
		{marked, index.InboxQuery{Since: now.Messages[1].Created}, "4"},
		{unmarked, index.InboxQuery{UnreadOnly: true}, "43210"},
		{history.Moment{At: time.Now().Add(time.Hour)}, index.InboxQuery{}, ""},
	} {
		if got := subjects(asOf(tt.at, tt.q)); got != tt.want {
			t.Errorf("%+v: %s, want %s", tt.q, got, tt.want)
		}
	}
	var pages []string
	for q := (index.InboxQuery{Limit: 2, Bodies: true}); ; {
		page := asOf(unmarked, q)
		for _, d := range page.Messages {
			pages = append(pages, d.Body)
		}
		if q.Before = page.Next; q.Before == 0 {
			break
		}
		pages = append(pages, "-")
	}
	if got := strings.Join(pages, ","); strings.ReplaceAll(got, "\n", "") != "text 4,text 3,-,text 2,text 1,-,text 0" {
		t.Errorf("pages: %q", got)
	}
	for _, q := range []string{"Nobody", "..", "Bob/inbox"} {
		if _, err := p.Box(q, format.Origin{}).InboxAsOf(t.Context(), index.InboxQuery{}, marked); !errors.Is(err, maildir.ErrNotFound) {
			t.Errorf("%s: %v", q, err)
		}
	}
	if err := os.RemoveAll(filepath.Join(p.Dir(), "agents/Bob")); err != nil {
		t.Fatal(err)
	}
	if got := subjects(asOf(marked, index.InboxQuery{})); got != "4310" {
		t.Errorf("the inbox of an agent that no longer exists: %q", got)
	}
}
