package maildir_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"mailtree/fixtures/storetest"
	"mailtree/maildir"
	"mailtree/maildir/format"
	"mailtree/maildir/index"
)

// rowBytes is the size that these tests assign to a message without its body.
const rowBytes = 100

// room returns an index.Room that counts each body by its size in bytes. Each reservation increments *reserved.
func room(small, large int, reserved *int) *index.Room {
	return &index.Room{
		Small: small, Large: large,
		Row: func(*index.MessageRow) int { return rowBytes },
		Fit: func(text string, most int) (n, size int) {
			for n < len(text) {
				_, width := utf8.DecodeRuneInString(text[n:])
				if n+width > most {
					break
				}
				n += width
			}
			return n, n
		},
		Reserve: func(context.Context, int64) error { *reserved++; return nil },
		Release: func() {},
	}
}

// sizedBodies returns bodies with the given sizes in bytes. Each body repeats a different letter.
func sizedBodies(sizes ...int) []string {
	all := make([]string, len(sizes))
	for i, n := range sizes {
		all[i] = strings.Repeat(string(rune('a'+i)), n)
	}
	return all
}

// TestInboxWithin checks pages that end when the room is full. Together, the pages must contain every message once, in
// order, and each page must mark exactly its own messages as read. If a body is too large for any page, it must be
// cut, and its message is considered returned.
func TestInboxWithin(t *testing.T) {
	t.Parallel()
	p := project(t, storetest.Config{}, "Ann", "Bob")
	bodies := sizedBodies(500, 400, 20_000, 0, 10, 300, 9_000, 900, 12_000)
	for i, b := range bodies {
		send(t, p, "Ann", maildir.Draft{To: []string{"Bob"}, Subject: fmt.Sprint(i), Body: b})
	}
	reserved, left, pages := 0, len(bodies), 0
	q := index.InboxQuery{Agent: "Bob", Bodies: true, Limit: 5, Room: room(1000, 10_000, &reserved)}
	for more := true; more; pages++ {
		page, err := p.Box(q.Agent, format.Origin{}).Inbox(t.Context(), q, true, maildir.Waiting{})
		if err != nil || len(page.Messages) == 0 {
			t.Fatalf("page %d: %d messages, %v", pages, len(page.Messages), err)
		}
		size := 0
		for _, d := range page.Messages {
			left--
			size += rowBytes + len(d.Body)
			whole := bodies[left]
			if d.Subject != fmt.Sprint(left) || !strings.HasPrefix(whole, d.Body) || d.BodyBytes != int64(len(whole)) {
				t.Errorf("message %s instead of %d, with %d of %d bytes", d.Subject, left, len(d.Body), d.BodyBytes)
			}
			if cut := len(d.Body) < len(whole); cut != (d.BodyNext > 0) || cut && len(page.Messages) > 1 || cut && d.BodyNext != int64(len(d.Body)) {
				t.Errorf("message %d: %d of %d bytes, next %d, of %d on the page", left, len(d.Body), len(whole), d.BodyNext, len(page.Messages))
			}
		}
		if size > 10_000 {
			t.Errorf("page %d has %d bytes", pages, size)
		}
		if c := inbox(t, p, "Bob"); c.Unread != left {
			t.Errorf("after page %d: %d unread, want %d", pages, c.Unread, left)
		}
		q.Before, more = page.Next, page.Next != 0
	}
	if left != 0 || pages < 5 || reserved == 0 {
		t.Errorf("%d messages left after %d pages and %d reservations", left, pages, reserved)
	}
}

// TestSmallPagesReserveNothing checks that mail that fits into Room.Small is read only once, and that no memory is
// reserved for it.
func TestSmallPagesReserveNothing(t *testing.T) {
	t.Parallel()
	p := project(t, storetest.Config{}, "Ann", "Bob")
	for _, b := range sizedBodies(300, 300) {
		send(t, p, "Ann", maildir.Draft{To: []string{"Bob"}, Subject: "s", Body: b})
	}
	for small, want := range map[int]int{800: 0, 799: 1} {
		reserved := 0
		page, err := p.Box("Bob", format.Origin{}).Inbox(t.Context(), index.InboxQuery{Bodies: true, Room: room(small, 10_000, &reserved)}, false, maildir.Waiting{})
		if err != nil || len(page.Messages) != 2 || page.Next != 0 || reserved != want {
			t.Errorf("in %d bytes: %d messages, next %d, %d reservations, %v", small, len(page.Messages), page.Next, reserved, err)
		}
	}
}

// TestPiecesOfABody checks that the pieces of a body, read one after the other, make up the whole body, no matter
// where each piece ends. Reading must be refused at an offset that is not the start of a piece.
func TestPiecesOfABody(t *testing.T) {
	t.Parallel()
	p := project(t, storetest.Config{}, "Ann", "Bob")
	for name, body := range map[string]string{
		"ascii":           strings.Repeat("abcdefghij", 2000),
		"two bytes":       strings.Repeat("aä", 5000),
		"three and four":  strings.Repeat("€😀x", 2500),
		"short":           "aä€😀",
		"ends with a cut": strings.Repeat("x", 99) + "😀",
		"empty":           "",
	} {
		m := send(t, p, "Ann", maildir.Draft{To: []string{"Bob"}, Subject: name, Body: body})
		read := func(offset int64, large int) (*index.MessageRow, error) {
			reserved := 0
			r := room(0, large+rowBytes, &reserved)
			r.Offset = offset
			page, err := p.Box("Bob", format.Origin{}).Inbox(t.Context(), index.InboxQuery{ID: m.ID, Bodies: true, Room: r}, false, maildir.Waiting{})
			if err != nil {
				return nil, err
			}
			r.Offset = offset
			same, err := p.MessageWithin(t.Context(), m.ID, r)
			if err != nil || same.Body != page.Messages[0].Body || same.BodyNext != page.Messages[0].BodyNext {
				t.Errorf("%s from %d: differs from the result of MessageWithin: %v", name, offset, err)
			}
			return &page.Messages[0].MessageRow, nil
		}
		for _, large := range []int{4, 5, 7, 100, 101, 102, 103, 8192, 1 << 20} {
			if len(body)/large > 1000 {
				continue
			}
			var b strings.Builder
			for at := int64(0); ; {
				row, err := read(at, large)
				if err != nil {
					t.Fatalf("%s in pieces of %d, from %d: %v", name, large, at, err)
				}
				if len(row.Body) > large || !utf8.ValidString(row.Body) || row.BodyBytes != int64(len(body)) || row.BodyFrom != at {
					t.Fatalf("%s in pieces of %d, from %d: %q, %+v", name, large, at, row.Body, row)
				}
				b.WriteString(row.Body)
				if row.BodyNext == 0 {
					break
				}
				if row.BodyNext != at+int64(len(row.Body)) || row.BodyNext == at {
					t.Fatalf("%s in pieces of %d: went from %d to %d", name, large, at, row.BodyNext)
				}
				at = row.BodyNext
			}
			if b.String() != body {
				t.Errorf("%s in pieces of %d: the pieces form a different body", name, large)
			}
		}
		for at := range min(len(body), 120) + 1 {
			row, err := read(int64(at), 1<<20)
			starts := at == len(body) || utf8.RuneStart(body[at])
			if starts && (err != nil || row.Body != body[at:]) || !starts && !errors.Is(err, maildir.ErrInvalid) {
				t.Errorf("%s from %d: %v", name, at, err)
			}
		}
		if _, err := read(int64(len(body))+1, 100); !errors.Is(err, maildir.ErrInvalid) {
			t.Errorf("%s from beyond the end: %v", name, err)
		}
	}
}

// TestPopWithin checks that a popped body is cut if there is no room for it. A pop that cannot reserve memory must
// pop nothing.
func TestPopWithin(t *testing.T) {
	t.Parallel()
	p := project(t, storetest.Config{}, "Ann", "Bob")
	for _, b := range sizedBodies(20_000, 50) {
		send(t, p, "Ann", maildir.Draft{To: []string{"Bob"}, Subject: "s", Body: b})
	}
	reserved := 0
	r := room(1000, 5000+rowBytes, &reserved)
	refused := errors.New("no memory")
	r.Reserve = func(context.Context, int64) error { return refused }
	if d, err := p.Box("Bob", format.Origin{}).PopWait(t.Context(), maildir.Waiting{}, r); d != nil || !errors.Is(err, refused) {
		t.Errorf("without memory: %+v %v", d, err)
	}
	if c := inbox(t, p, "Bob"); c.Unread != 2 {
		t.Errorf("without memory: %d unread", c.Unread)
	}
	r = room(1000, 5000+rowBytes, &reserved)
	for i, want := range []string{strings.Repeat("a", 5000), strings.Repeat("b", 50)} {
		d, err := p.Box("Bob", format.Origin{}).PopWait(t.Context(), maildir.Waiting{}, r)
		if err != nil || d == nil || d.Body != want || (d.BodyNext > 0) != (i == 0) {
			t.Fatalf("pop %d: %+v %v", i, d, err)
		}
	}
	if d, err := p.Box("Bob", format.Origin{}).PopWait(t.Context(), maildir.Waiting{}, r); d != nil || err != nil || reserved != 1 {
		t.Errorf("at the end: %+v %v, %d reservations", d, err, reserved)
	}
}

// TestThreadPages checks that the pages of a thread together contain every message once, oldest first, whether a page
// ends because the room is full or because of the limit.
func TestThreadPages(t *testing.T) {
	t.Parallel()
	p := project(t, storetest.Config{}, "Ann", "Bob")
	bodies := sizedBodies(100, 20_000, 10, 3000, 3000, 5)
	for i, b := range bodies {
		send(t, p, "Ann", maildir.Draft{To: []string{"Bob"}, Subject: fmt.Sprint(i), Body: b, ThreadID: "T"})
	}
	reserved, seen := 0, 0
	q := index.ThreadQuery{Thread: "T", Bodies: true, Limit: 2, Room: room(1000, 5000, &reserved)}
	for more := true; more; {
		page, err := p.ThreadPage(t.Context(), q)
		if err != nil || len(page.Messages) == 0 || len(page.Messages) > 2 {
			t.Fatalf("after %d: %d messages, %v", seen, len(page.Messages), err)
		}
		for _, m := range page.Messages {
			if m.Subject != fmt.Sprint(seen) || !strings.HasPrefix(bodies[seen], m.Body) || (m.BodyNext > 0) != (seen == 1) {
				t.Errorf("message %s instead of %d, next %d", m.Subject, seen, m.BodyNext)
			}
			seen++
		}
		q.After, more = page.Next, page.Next != 0
	}
	if seen != len(bodies) {
		t.Errorf("%d of %d messages", seen, len(bodies))
	}
	if _, err := p.ThreadPage(t.Context(), index.ThreadQuery{Thread: "none"}); !errors.Is(err, maildir.ErrNotFound) {
		t.Errorf("no thread: %v", err)
	}
}

// TestLetterInPieces checks that the pieces of a message's file, read one after another, make up the whole file.
func TestLetterInPieces(t *testing.T) {
	t.Parallel()
	p := project(t, ownedBy(500), "Ann", "Bob")
	m := send(t, p, "Ann", maildir.Draft{To: []string{"Bob"}, Subject: "s", Body: strings.Repeat("aä€😀", 1000)})
	b := openBox(t, p, "Bob", 500)
	whole, err := b.Read(t.Context(), maildir.RawQuery{ID: m.ID})
	if err != nil {
		t.Fatal(err)
	}
	reserved := 0
	q := maildir.RawQuery{ID: m.ID, Room: room(0, 1003, &reserved), Overhead: func(*maildir.RawMessage) int { return 10 }}
	var got strings.Builder
	for {
		l, err := b.Read(t.Context(), q)
		if err != nil || !utf8.Valid(l.Data) || len(l.Data) > 993 || l.Size != int64(len(whole.Data)) || l.Trust != whole.Trust {
			t.Fatalf("from %d: %d bytes, %v", q.Room.Offset, len(l.Data), err)
		}
		got.Write(l.Data)
		if l.Next == 0 {
			break
		}
		q.Room.Offset = l.Next
	}
	if got.String() != string(whole.Data) {
		t.Error("the pieces form a different file")
	}
	for _, offset := range []int64{int64(len(whole.Data)) + 1, int64(strings.Index(string(whole.Data), "€")) + 1} {
		q.Room.Offset = offset
		why := fmt.Sprintf("The offset in the file is %d, ", offset)
		if _, err := b.Read(t.Context(), q); !errors.Is(err, maildir.ErrInvalid) || !strings.HasPrefix(err.Error(), why) {
			t.Errorf("from %d: %v", offset, err)
		}
	}
}

// TestSearchBodies checks that a page of hits ends when the room is full, and that the next page continues there. A
// body that is too large for any page must be cut.
func TestSearchBodies(t *testing.T) {
	t.Parallel()
	p := project(t, storetest.Config{NoWatcher: true}, "Ann")
	bodies := sizedBodies(500, 20_000, 9_000, 300)
	for _, b := range bodies {
		send(t, p, "Ann", maildir.Draft{To: []string{"Ann"}, Subject: "found", Body: b})
	}
	reserved, got, cursor := 0, "", ""
	for more := true; more; more = cursor != "" {
		page, err := p.Search(t.Context(), maildir.SearchRequest{Text: "found", Cursor: cursor})
		if err == nil {
			err = p.AddBodies(t.Context(), page, room(1000, 10_000, &reserved))
		}
		if err != nil || len(page.Hits) == 0 {
			t.Fatal(len(page.Hits), err)
		}
		for _, h := range page.Hits {
			got += fmt.Sprintf("%.1s %d %v,", h.Body, len(h.Body), h.BodyNext > 0)
		}
		got += "|"
		cursor = page.Next
	}
	if want := "d 300 false,c 9000 false,|b 9900 true,|a 500 false,|"; got != want || reserved == 0 {
		t.Errorf("got %s after %d reservations, want %s", got, reserved, want)
	}
}
