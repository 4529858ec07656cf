package message

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

var update = flag.Bool("update", false, "write the results of parsing the corpus")

// TestCorpus checks the result of parsing each message in testdata/corpus. Each file explains what is special about
// its message, and contains the message and the expected result. In the message, \xHH denotes a byte, and line
// endings become CRLF.
func TestCorpus(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/corpus/*.txtar")
	if err != nil || len(files) < 60 {
		t.Fatalf("%d messages, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			a, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			m, err := Parse(wire(a.Files[0].Data))
			if err != nil {
				t.Fatal(err)
			}
			got := show(m)
			if *update {
				a.Files = append(a.Files[:1], txtar.File{Name: "result", Data: []byte(got)})
				if err := os.WriteFile(file, txtar.Format(a), 0o666); err != nil {
					t.Fatal(err)
				}
				return
			}
			if d := cmp.Diff(string(a.Files[1].Data), got); d != "" {
				t.Error(d)
			}
		})
	}
}

var escaped = regexp.MustCompile(`\\x[0-9A-F]{2}`)

// wire returns a message from the corpus as it would arrive over a connection.
func wire(data []byte) []byte {
	data = bytes.ReplaceAll(data, []byte("\n"), []byte("\r\n"))
	return escaped.ReplaceAllFunc(data, func(b []byte) []byte {
		one, err := hex.DecodeString(string(b[2:]))
		if err != nil {
			panic(err)
		}
		return one
	})
}

// show formats a parsed message with one value per line.
func show(m *Message) string {
	var b strings.Builder
	put := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%s: %s\n", name, strings.TrimSuffix(strings.ReplaceAll(value, "\n", "\n  "), "\n  "))
		}
	}
	put("from", m.From)
	put("to", strings.Join(m.To, " "))
	put("cc", strings.Join(m.Cc, " "))
	put("subject", m.Subject)
	if !m.Date.IsZero() {
		put("date", m.Date.Format(time.RFC3339))
	}
	put("message-id", m.MessageID)
	put("in-reply-to", m.InReplyTo)
	put("references", strings.Join(m.References, " "))
	put("auto-submitted", m.AutoSubmitted)
	put("list-id", m.ListID)
	if m.Automatic() {
		put("automatic", "yes")
	}
	put("repeated", strings.Join(m.Repeated, " "))
	if m.Markdown {
		put("body", "markdown\n"+m.Body)
	} else {
		put("body", "plain\n"+m.Body)
	}
	if m.HTML != "" {
		put("html", fmt.Sprintf("%d bytes", len(m.HTML)))
	}
	for _, a := range m.Attachments {
		put("attachment", fmt.Sprintf("%s, %s, %d bytes, %x", a.Name, a.Type, len(a.Data), sha256.Sum256(a.Data))[:len(a.Name)+len(a.Type)+20])
	}
	if m.Bounce != nil {
		put("bounce", "of "+m.Bounce.MessageID)
		for _, r := range m.Bounce.Recipients {
			put("recipient", strings.Join([]string{r.Address, r.Action, r.Status, r.Diagnostic}, ", "))
		}
	}
	for _, p := range m.Problems {
		put("problem", p)
	}
	return b.String()
}
