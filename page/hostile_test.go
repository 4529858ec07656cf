package page_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"

	"golang.org/x/net/html"

	"mailtree/maildir"
	"mailtree/maildir/claim"
	"mailtree/maildir/format"
	"mailtree/page"
)

func claimOf(agent, pattern string) claim.Request {
	return claim.Request{Agent: agent, Patterns: []string{pattern}, Reason: "<script>alert(1)</script>"}
}

// hostile contains strings that the page must show but never run.
var hostile = []string{
	`<script>alert(1)</script>`,
	`<img src=x onerror=alert(1)>`,
	`<img src="http://evil.example/x.png">`,
	`![x](http://evil.example/x.png)`,
	`![x](data:image/svg+xml;base64,PHN2ZyBvbmxvYWQ9YWxlcnQoMSk+)`,
	`[x](javascript:alert(1))`,
	"[x](java\tscript:alert(1))",
	`[x](&#106;avascript:alert(1))`,
	`[x](vbscript:x)`,
	`<javascript:alert(1)>`,
	`<a href="javascript:alert(1)">x</a>`,
	`<iframe srcdoc="<script>alert(1)</script>"></iframe>`,
	`<svg/onload=alert(1)>`,
	`<style>body{background:url(http://evil.example)}</style>`,
	`<form action="http://evil.example"><input name=csrf></form>`,
	`<base href="http://evil.example/">`,
	`<meta http-equiv="refresh" content="0;url=http://evil.example">`,
	`</textarea></pre></title><script>alert(1)</script>`,
	`" onmouseover="alert(1)" x="`,
	`' onfocus='alert(1)' autofocus '`,
	"``` \"><script>alert(1)</script>\nx\n```",
	`<details ontoggle=alert(1) open>`,
	`<!--><script>alert(1)</script>-->`,
	"\u202e txt.exe \u2066 <b>",
	`{{.Signed}}{{template "base"}}`,
	`<object data="x"></object><embed src="x">`,
}

// TestHostile checks that wherever text from an agent is shown, no part of it becomes an element, a handler or a URL.
func TestHostile(t *testing.T) {
	t.Parallel()
	s := open(t, page.Config{})
	b := s.person()
	if _, err := s.p.Box(claimOf("Ann", "a/*.go").Agent, format.Origin{}).Claim(t.Context(), claimOf("Ann", "a/*.go")); err != nil {
		t.Fatal(err)
	}
	for i, text := range hostile {
		subject := strings.Map(oneLine, text)
		sent := s.send("Ann", maildir.Draft{To: []string{"pat"}, Subject: subject, Body: text + "\n\n> " + text, Importance: format.High})
		thread := b.see(s.base + "/thread/" + sent.ID)
		inert(t, text, thread)
		if i == 0 {
			contains(t, thread, "&lt;script&gt;alert(1)&lt;/script&gt;")
		}
	}
	for _, path := range []string{"/", "/inbox", "/threads", "/search?q=alert", "/activity", "/claims", "/agents"} {
		inert(t, path, b.see(s.base+path))
	}
	for _, text := range hostile {
		for _, path := range []string{"/search?q=", "/threads?q=", "/activity?agent=", "/compose?to=", "/compose?subject=", "/compose?body="} {
			_, got := b.get(s.base + path + escape(text))
			inert(t, path+text, got)
		}
	}
}

// TestForeignFiles checks that a file that someone has put into the tree is shown as safely as mail.
func TestForeignFiles(t *testing.T) {
	t.Parallel()
	s := open(t, page.Config{})
	file := filepath.Join(s.p.Dir(), "messages", "2026", "11", "<img src=x onerror=alert(1)>.md")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("<script>"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := s.p.Rescan(t.Context()); err != nil {
		t.Fatal(err)
	}
	text := s.person().see(s.base + "/problems")
	contains(t, text, "&lt;img src=x onerror=alert(1)&gt;.md", ">History</a>")
	inert(t, "a file's name", text)
}

// oneLine drops characters that subjects must not contain.
func oneLine(r rune) rune {
	if unicode.In(r, unicode.Cc, unicode.Cf) {
		return -1
	}
	return r
}

func escape(text string) string {
	var b strings.Builder
	for i := range len(text) {
		b.WriteString("%" + string("0123456789ABCDEF"[text[i]>>4]) + string("0123456789ABCDEF"[text[i]&15]))
	}
	return b.String()
}

// inert checks that a page contains no element or attribute that runs or loads foreign content.
func inert(t *testing.T, what, text string) {
	t.Helper()
	doc, err := html.Parse(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	forms, compose := []string{"", "/p/"}, []string{"to", "subject"}
	for n := range doc.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		switch n.Data {
		case "iframe", "object", "embed", "base", "style":
			t.Errorf("%s: there is a %s", what, n.Data)
		}
		for _, a := range n.Attr {
			value := strings.ToLower(strings.TrimSpace(a.Val))
			local := strings.HasPrefix(value, "/") || strings.HasPrefix(value, "#") || strings.HasPrefix(value, "?")
			switch {
			case strings.HasPrefix(a.Key, "on"), a.Key == "style", a.Key == "srcdoc", a.Key == "http-equiv",
				a.Key == "autofocus" && !slices.Contains(compose, n.Attr[0].Val):
				t.Errorf("%s: %s has %s=%q", what, n.Data, a.Key, a.Val)
			case a.Key == "srcset", a.Key == "src" && !strings.HasPrefix(value, "/static/script.js?v=") && (n.Data != "img" || !ownFile.MatchString(a.Val)), a.Key == "action" && !strings.HasPrefix(value, forms[1]):
				t.Errorf("%s: %s has %s=%q", what, n.Data, a.Key, a.Val)
			case a.Key == "href" && !local && !strings.HasPrefix(value, "http://") && value != "":
				t.Errorf("%s: %s has %s=%q", what, n.Data, a.Key, a.Val)
			case a.Key == "href" && n.Data == "link" && !strings.HasPrefix(value, "/static/style.css?v=") && !strings.HasPrefix(value, "/static/icon.svg?v="):
				t.Errorf("%s: the style is %q", what, a.Val)
			}
		}
		if n.Data == "script" && n.FirstChild != nil {
			t.Errorf("%s: a script says %q", what, n.FirstChild.Data)
		}
	}
}

// TestSyncProblem checks that the view of problems says why the mail is not in sync with other machines, but does not
// show the password in the URL.
func TestSyncProblem(t *testing.T) {
	t.Parallel()
	s := open(t, page.Config{})
	url := "file://ann:secret@/nowhere/<b>.git"
	if err := exec.Command("git", "-C", s.p.Dir(), "remote", "add", "origin", url).Run(); err != nil {
		t.Fatal(err)
	}
	if err := s.p.Sync.Set(true); err != nil {
		t.Fatal(err)
	}
	if _, err := s.p.Sync.Now(t.Context()); err == nil {
		t.Fatal("it is in sync")
	}
	text := s.person().see(s.base + "/problems")
	contains(t, text, "The mail has not been synchronized with other machines since", "nowhere", "All files are valid.")
	if strings.Contains(text, "secret") {
		t.Errorf("the password is shown: %s", text)
	}
	inert(t, "an address", text)
}
