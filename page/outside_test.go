package page_test

import (
	"crypto/sha256"
	"errors"
	"strings"
	"testing"

	"mailtree/maildir"
	"mailtree/maildir/attachment"
	"mailtree/page"
)

// TestOutside checks that mail from another domain is shown with the sender's name and address, the word "outside",
// its raw parts in the menu, and a folded quote. A reply must go only to the sender unless the user selects more
// recipients.
func TestOutside(t *testing.T) {
	t.Parallel()
	s := open(t, page.Config{})
	receive := func(from, body string) string {
		t.Helper()
		in := maildir.Incoming{
			Mailboxes: []string{"pat"}, From: "eve@example.net", To: []string{"pat"}, CC: []string{"Ann"}, Subject: "Offer",
			Body: body, Plain: true, HTML: "<p>b</p>", Auth: "dmarc:example.net",
			Attachments: []attachment.File{attachment.Named("offer.txt", []byte("text"))},
			Raw:         []byte("From: " + from + "\r\n\r\n" + body),
		}
		in.Hash = sha256.Sum256(in.Raw)
		id, errs := s.p.Post.Receive(t.Context(), in)
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		return id
	}
	b := s.person()
	id := receive(`=?utf-8?q?Eve_M=C3=BCller?= <eve@example.net>`, "Good.\n\nYou wrote:\n> One.\n> Two.\n")
	contains(t, b.see(s.base+"/"), `eve@example.net</bdi> <small>outside</small>`)
	text := b.see(s.base + "/thread/" + id)
	contains(t, text, `Eve Müller</bdi></h2> <small>outside</small>`, `eve@example.net</bdi> to `, "<pre class=\"plain\" tabindex=\"0\">Good.\n\nYou wrote:\n</pre><details><summary>Quoted text</summary>",
		`>body.html</a>`, `>message.eml</a>`, `<bdi>offer.txt</bdi>`, `value="eve@example.net" checked data-sole`, `value="Ann">`)
	if n := strings.Count(text, "body.html</") + strings.Count(text, "message.eml</"); n != 2 {
		t.Errorf("the raw parts appear %d times:\n%s", n, text)
	}
	for _, name := range []string{`"pat@example.org" <eve@example.net>`, `<eve@example.net>`, `broken`} {
		contains(t, b.see(s.base+"/thread/"+receive(name, "b"+name)), `eve@example.net</bdi></h2> <small>outside</small>`)
	}
}
