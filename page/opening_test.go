package page_test

import (
	"bytes"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"

	"mailtree/maildir"
	"mailtree/maildir/format"
	"mailtree/page"
)

// TestOpening checks that opening a thread from the page marks it as read, and that no other request does.
func TestOpening(t *testing.T) {
	t.Parallel()
	s := open(t, page.Config{Person: "pat"})
	sent := s.send("Ann", maildir.Draft{To: []string{"pat"}, Subject: "s", Body: "b"})
	opened := []string{"Sec-Fetch-Site: same-origin", "Sec-Fetch-Mode: navigate"}
	for _, c := range []struct {
		what   string
		by     *browser
		head   []string
		query  string
		unread int
	}{
		{"a program", s.person(), nil, "", 1},
		{"another site's link", s.person(), []string{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate"}, "", 1},
		{"an image of the page", s.person(), []string{"Sec-Fetch-Site: same-origin", "Sec-Fetch-Mode: no-cors"}, "", 1},
		{"a prefetch", s.person(), append([]string{"Sec-Purpose: prefetch"}, opened...), "", 1},
		{"the script", s.person(), append([]string{"Mailtree-Fragment: 1"}, opened...), "", 1},
		{"nobody's browser", s.browser(), opened, "", 1},
		{"an undo", s.person(), opened, "?did=undone&of=" + sent.ID, 1},
		{"the next after a reply", s.person(), opened, "?new=1&did=sent&of=" + sent.ID, 1},
		{"a person", s.person(), opened, "", 0},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+s.base+"/thread/"+sent.ID+c.query, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range c.head {
			name, value, _ := strings.Cut(line, ": ")
			r.Header.Set(name, value)
		}
		res, text := c.by.do(r)
		refused := c.what == "another site's link" // the server refuses this request
		if (res.StatusCode == http.StatusForbidden) != refused || !refused && res.StatusCode != http.StatusOK {
			t.Errorf("%s: %s\n%s", c.what, res.Status, text)
		}
		if done := strings.Contains(text, "data-done>Done <kbd>"); done != (c.unread == 1 && c.by.cookies != nil && !refused) {
			t.Errorf("%s: the message can be marked as read: %v", c.what, done)
		}
		if n := s.unread(); n != c.unread {
			t.Errorf("%s: %d are unread", c.what, n)
		}
	}
}

// TestThread checks that messages that have been read are folded, and that the newest message and messages that ask for
// something are open. Only answers to a message that has several answers may be indented. A phrase must say who has
// read a message, and who has archived a question without answering it.
func TestThread(t *testing.T) {
	t.Parallel()
	s := open(t, page.Config{})
	first := s.send("Ann", maildir.Draft{To: []string{"pat", "Bob"}, Subject: "s", Body: "first", AckRequired: true})
	answer := func(from, to string, d maildir.Draft) string {
		t.Helper()
		sent, err := s.p.Box(from, format.Origin{}).Reply(t.Context(), to, d)
		if err != nil {
			t.Fatal(err)
		}
		return sent.ID
	}
	second := answer("Bob", first.ID, maildir.Draft{Body: "second"})
	b := s.person()
	thread := s.base + "/thread/" + first.ID
	text := b.see(thread)
	contains(t, text, `id="f-`+first.ID+`" open`, `id="f-`+second+`" open`, "· acknowledged", `value="Ann" checked data-sole`, `value="Bob" checked`, ">Acknowledge</button>")
	if strings.Contains(text, "depth") {
		t.Errorf("one answer is indented:\n%s", text)
	}
	third := answer("Bob", first.ID, maildir.Draft{Body: "third", To: []string{"Ann", "pat"}})
	if _, err := s.p.Box("pat", format.Origin{}).Acknowledge(t.Context(), first.ID); err != nil {
		t.Fatal(err)
	}
	text = b.see(thread)
	contains(t, text, `id="f-`+first.ID+`">`, `id="f-`+second+`">`, `id="f-`+third+`" open`, "· Ann has not read it", `value="Bob" checked data-sole`, `value="Ann" checked`)
	if n := strings.Count(text, "message depth1"); n != 2 {
		t.Errorf("%d are indented:\n%s", n, text)
	}
	question := s.send("pat", maildir.Draft{To: []string{"Bob"}, Subject: "Which?", Body: "b"}).ID
	if _, err := s.p.Box("Bob", format.Origin{}).Archive(t.Context(), question); err != nil {
		t.Fatal(err)
	}
	contains(t, b.see(s.base+"/thread/"+question), " · archived without an answer</summary>", "✓ read · archived without an answer</dd>")
	mine := answer("pat", third, maildir.Draft{Body: "mine", To: []string{"Bob"}})
	contains(t, b.see(thread), `name="reply_to" value="`+mine+`"`, `value="Bob" checked`)
	contains(t, b.see(thread+"?reply="+first.ID), `name="reply_to" value="`+first.ID+`"`, `value="Ann" checked data-sole`, `value="Bob" checked`)
}

// TestFiles checks that files are sent with a message, up to the limits for attachments. A form that exceeds any of
// these limits must be refused, and so must a form that was sent before with a different file.
func TestFiles(t *testing.T) {
	t.Parallel()
	s := open(t, page.Config{})
	b := s.person()
	form := b.form(s.base + "/compose")
	for name, value := range map[string]string{"to": "Ann", "subject": "Plan", "body": "b"} {
		form.Set(name, value)
	}
	send := func(key, letter string, size int) (*http.Response, string) {
		t.Helper()
		var body bytes.Buffer
		w := multipart.NewWriter(&body)
		form.Set("key", key)
		for name := range form {
			if err := w.WriteField(name, form.Get(name)); err != nil {
				t.Fatal(err)
			}
		}
		part, err := w.CreateFormFile("file", "../plan.txt")
		if err != nil {
			t.Fatal(err)
		}
		_, _ = part.Write(bytes.Repeat([]byte(letter), size))
		_ = w.Close()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+s.base+"/send", &body)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", w.FormDataContentType())
		return b.do(r)
	}
	res, text := send("page-one", "x", 1000)
	if res.StatusCode != http.StatusSeeOther {
		t.Fatalf("%s\n%s", res.Status, text)
	}
	to, _, _ := strings.Cut(res.Header.Get("Location"), "#")
	contains(t, b.see(to), "Sent to Ann.", "<bdi>plan.txt</bdi>", "1 KB")
	if res, text = send("page-one", "y", 1000); res.StatusCode != http.StatusConflict {
		t.Errorf("the same form with another file of the same size: %s\n%s", res.Status, text)
	}
	if res, text = send("page-two", "x", 11<<20); res.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("%s\n%s", res.Status, text)
	}
	contains(t, text, "plan.txt", "limit", `value="Plan"`, `name="kept" value="`, `checked><bdi>plan.txt</bdi>`)
	if res, text = send("page-three", "x", 40<<20); res.StatusCode != http.StatusBadRequest || !strings.Contains(text, "too large") {
		t.Errorf("%s\n%s", res.Status, text)
	}
}
