package message

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/txtar"

	"mailtree/fixtures/waits"
	"mailtree/maildir/format"
)

const begin = "From: a@example.org\r\n"

// TestRefused checks that a message is refused if it is empty, too large or in a mail loop, but not if it is exactly at
// the limit.
func TestRefused(t *testing.T) {
	t.Parallel()
	received := strings.Repeat("Received: by a\r\n", MaxReceived)
	field := func(n int) string { return begin + "X: " + strings.Repeat("x", n-len(begin)-len("X: \r\n")) + "\r\n" }
	for name, c := range map[string]struct {
		raw  string
		want error
	}{
		"nothing":        {"", ErrEmpty},
		"no header":      {"\r\nHi\r\n", ErrEmpty},
		"garbage":        {"garbage\r\n", ErrEmpty},
		"hops":           {received + begin + "\r\n", nil},
		"loop":           {"RECEIVED: by a\r\n" + received + begin + "\r\n", ErrLoop},
		"header":         {field(MaxHeader) + "\r\n", nil},
		"long header":    {field(MaxHeader+1) + "\r\n", ErrHeaderTooLarge},
		"endless header": {field(MaxHeader + 1), ErrHeaderTooLarge},
		"size":           {begin + "\r\n" + strings.Repeat("x", MaxBytes-len(begin)-2), nil},
		"over size":      {begin + "\r\n" + strings.Repeat("x", MaxBytes-len(begin)-1), ErrTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := Parse([]byte(c.raw)); !errors.Is(err, c.want) {
				t.Errorf("%v, want %v", err, c.want)
			}
		})
	}
}

// TestBounds checks that parts beyond a limit are omitted and reported as problems, and that parsing stays fast.
func TestBounds(t *testing.T) {
	t.Parallel()
	deep := begin
	for i := range 100 {
		deep += fmt.Sprintf("Content-Type: multipart/mixed; boundary=b%d\r\n\r\n--b%d\r\n", i, i)
	}
	const mixed = begin + "Content-Type: multipart/mixed; boundary=b\r\n\r\n"
	html := func(s string) string { return begin + "Content-Type: text/html\r\n\r\n" + s }
	for name, c := range map[string]struct{ raw, problem string }{
		"deep parts":      {deep, "parts are nested more than 16 levels deep"},
		"many parts":      {mixed + strings.Repeat("--b\r\n\r\nx\r\n", 100_000), "more than 200 parts"},
		"long part":       {mixed + "--b\r\nX: " + strings.Repeat("x", MaxHeader) + "\r\n\r\nx\r\n--b--", "a part's header is larger than"},
		"long text":       {begin + "\r\n" + strings.Repeat("a line\r\n", 1<<20), "the text is longer than 1024 KiB"},
		"many recipients": {begin + "To: " + strings.Repeat("a@b.example, ", 2) + manyAddresses(1000) + "\r\n\r\n", "more than 500 addresses"},
		"broken list":     {begin + "To: ,," + strings.Repeat("a@@b, ", 40_000) + "\r\n\r\n", `"a@@b" is not an address`},
		"words":           {begin + "To: " + strings.Repeat("x, ", 80_000) + "[a] <a@b.example>\r\n\r\n", ""},
		"brackets":        {begin + "To: [a] " + strings.Repeat("<a@b>", 50_000) + "\r\n\r\n", ""},
		"nested tables":   {html(strings.Repeat("<table><tr><td>a", 100) + strings.Repeat("<td>b", 2_000)), ""},
		"lists in cells":  {html("<table><tr><td>a<td>" + strings.Repeat("<ul><li>", 19) + strings.Repeat("<li>a<br>", 20_000)), ""},
		"uuencode":        {begin + "Content-Transfer-Encoding: x-uuencode\r\n\r\nbegin 644 a\r\n" + strings.Repeat("M\r\n", 1<<20), ""},
		"comments":        {begin + "To: " + strings.Repeat("(", 200_000) + "\r\n\r\n", "is not an address"},
		"encoded words":   {begin + "Subject: " + strings.Repeat("=?utf-8?q?=?= ", 18_000) + "\r\n\r\n", ""},
		"long html":       {html(strings.Repeat("<p>a</p>", 1<<20)), "the HTML is longer than 256 KiB"},
		"many htmls":      {mixed + strings.Repeat("--b\r\nContent-Type: text/html\r\n\r\n<p>"+strings.Repeat("a", 9<<10)+"</p>\r\n", 30) + "--b--", "the HTML is longer than 256 KiB"},
		"brackets open":   {html(strings.Repeat("[", 1<<17) + "<a href='" + strings.Repeat("x", 1<<16) + "'>]"), "too complex to convert"},
		"brackets closed": {html(strings.Repeat("[x] ", 1<<15)), ""},
		"one row":         {html("<table><tr>" + strings.Repeat("<td>a", 50_000)), ""},
		"deep tables":     {html(strings.Repeat("<table><tr><td>", 120) + strings.Repeat("<p>a", 50_000)), ""},
		"nested html":     {html(strings.Repeat("<div>", 1<<20)), "too complex to convert"},
		"nested lists":    {html(strings.Repeat("<ul><li>", 250)), "too complex to convert"},
		"many quotes":     {html(strings.Repeat("<blockquote>", 20) + strings.Repeat("a<br>", 50_000)), ""},
		"nested quotes":   {html(strings.Repeat("<blockquote>", 500) + strings.Repeat("a<br>", 50_000)), "too complex to convert"},
		"formats":         {html(strings.Repeat("<b><i><a href=x>", 20_000)), ""},
		"wide table":      {html("<table>" + strings.Repeat("<tr>", 500) + strings.Repeat("<td>a", 10_000)), "too complex to convert"},
		"table":           {html("<table>" + strings.Repeat("<tr>"+strings.Repeat("<td>a", 10), 300)), ""},
		"spanning table":  {html("<table><tr><td rowspan=100000 colspan=100000>a</td></tr></table>"), ""},
		"one long word":   {html("<pre>" + strings.Repeat("`", 1<<17) + "</pre><code>" + strings.Repeat("`", 1<<17)), ""},
		"links":           {html(strings.Repeat("<a href=x>[", 20_000)), ""},
		"lines":           {html(strings.Repeat("<br>", 60_000)), ""},
		"pre in quotes":   {html(strings.Repeat("<blockquote>", 20) + "<pre>" + strings.Repeat("\n", 200_000)), ""},
		"stars":           {html(strings.Repeat("*_", 1<<18)), ""},
	} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			m, err := Parse([]byte(c.raw))
			if err != nil {
				t.Fatal(err)
			}
			waits.Limit(t, "Parse", time.Since(began), 20*time.Second)
			if !strings.Contains(strings.Join(m.Problems, "\n"), c.problem) {
				t.Errorf("%q: want %q", m.Problems, c.problem)
			}
			if len(m.Body) > maxText || len(m.Problems) > maxProblems {
				t.Errorf("%d bytes, %d problems", len(m.Body), len(m.Problems))
			}
		})
	}
}

func manyAddresses(n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("a%d@b.example", i)
	}
	return strings.Join(all, ", ")
}

// TestHash checks that two copies of a message have the same hash even if their trace fields and folding differ. A
// different message must have a different hash.
func TestHash(t *testing.T) {
	t.Parallel()
	hash := func(raw string) [32]byte {
		m, err := Parse([]byte(raw))
		if err != nil {
			t.Fatal(err)
		}
		return m.Hash
	}
	const first = begin + "Subject: one two\r\nMessage-ID: <1@a>\r\n\r\nHi.\r\n"
	want := hash(first)
	for _, same := range []string{
		"Received: by b; today\r\n" + first, "Return-Path: <x@y>\r\nDelivered-To: z\r\nAuthentication-Results: a; none\r\n" + first,
		strings.Replace(first, "one two", "one\r\n two", 1), strings.Replace(first, "Subject:", "subject:  ", 1),
	} {
		if hash(same) != want {
			t.Errorf("different hash:\n%s", same)
		}
	}
	for _, other := range []string{
		strings.Replace(first, "one", "two", 1), strings.Replace(first, "Hi.", "Hi", 1), "X: y\r\n" + first,
		strings.Replace(first, "<1@a>", "<2@a>", 1), strings.Replace(first, "Subject: one two\r\n", "", 1),
	} {
		if hash(other) == want {
			t.Errorf("the same hash:\n%s", other)
		}
	}
}

// TestBare checks that Bare removes comments and the text of quoted strings, and nothing else.
func TestBare(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`a; b`: `a; b`, `a (x; (y) z) b`: `a    b`, `"a; b" c`: `"" c`, `(a \) b) c`: `  c`, `"a \" ; b" c`: `"" c`, `"(" a ")"`: `"" a ""`, `("") a`: `  a`,
	} {
		if got, whole := Bare(in); got != want || !whole {
			t.Errorf("%s: %q %t, want %q", in, got, whole, want)
		}
	}
	for _, in := range []string{`(a`, `a)`, `"a`, `("a"`, `"a\"`} {
		if got, whole := Bare(in); whole {
			t.Errorf("%s: %q was accepted as whole", in, got)
		}
	}
}

// FuzzParse checks that the parser handles any message, and that the store can write every result.
func FuzzParse(f *testing.F) {
	files, err := filepath.Glob("testdata/corpus/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(wire(txtar.Parse(data).Files[0].Data))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		kept := bytes.Clone(raw)
		m, err := Parse(raw)
		if !bytes.Equal(raw, kept) {
			t.Fatal("the raw message was changed")
		}
		if err != nil {
			return
		}
		for _, a := range append(append([]string{}, m.To...), m.Cc...) {
			checkAddress(t, a)
		}
		if m.From != "" {
			checkAddress(t, m.From)
		}
		for _, text := range append([]string{m.Subject, m.Body, m.HTML, m.MessageID, m.InReplyTo}, m.References...) {
			if !utf8.ValidString(text) {
				t.Fatalf("%q is not in UTF-8", text)
			}
		}
		if strings.ContainsAny(m.Subject, "\r\n") || strings.ContainsRune(m.Body, 0) {
			t.Fatalf("%q %q", m.Subject, m.Body)
		}
		for _, a := range m.Attachments {
			if a.Name == "" || a.Name == "." || a.Name == ".." || strings.ContainsAny(a.Name, "/\\\x00\n") || !utf8.ValidString(a.Name) {
				t.Fatalf("invalid name %q", a.Name)
			}
		}
	})
}

func checkAddress(t *testing.T, address string) {
	t.Helper()
	if a, err := format.ParseAddress(address); err != nil || a.IsAgent() || a.String() != address {
		t.Fatalf("%q is not an address at another domain: %v", address, err)
	}
}
