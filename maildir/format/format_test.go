package format

import (
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mailtree/maildir/tree"
)

func sample() *Message {
	return &Message{ID: "msg_20251023_3a51c0f7b3dc3a7e", ThreadID: "TKT-123", Project: "/abs/path/backend",
		From: "GreenCastle", To: []string{"BlueLake"}, CC: []string{},
		Subject: `Plan <for> "users" & é`, Created: time.Date(2025, 10, 23, 15, 22, 14, 123456000, time.UTC), Importance: High, AckRequired: true,
		Attachments: []Attachment{{Type: "file", MediaType: "image/webp", Path: "attachments/2a/2a6f.webp", Bytes: 1234, SHA1: "2a6f", Name: "d.webp"}}, Origin: Origin{Auth: "none"}, Body: "# Plan\n\ntext"}
}

// fromElsewhere returns a message in which every field that the gateway writes is set.
func fromElsewhere() *Message {
	m := sample()
	m.From, m.To = "cat@example.org", []string{"BlueLake", "dan@example.org"}
	m.InReplyTo, m.References, m.MessageID = "2@example.org", []string{"1@example.org"}, "3@example.org"
	m.Problems = []string{"the date \"x\" cannot be read"}
	m.MediaType, m.HTML = PlainText, m.Attachments[0].Path
	m.Key, m.Auth, m.Door, m.Terminal = "k", "dmarc:example.org", DoorCLI, true
	return m
}

// TestFormatRoundTrip checks that parsing a formatted message returns the same message, with and without a seal, and
// with any body.
func TestFormatRoundTrip(t *testing.T) {
	t.Parallel()
	public, key := keyPair(t)
	got, err := ParseMessage(sample().ID, Seal(key, FormatMessage(fromElsewhere())))
	if err != nil {
		t.Fatal(err)
	}
	got.Seal, got.Digest = "", nil
	if d := cmp.Diff(fromElsewhere(), got); d != "" {
		t.Error(d)
	}
	for _, body := range []string{"", "x", "x\n", "\n\nx\n\n", "---\n", "---json\n{}\n---\n", "a\r\nb", `,
  "seal": "00"`} {
		m := sample()
		m.Body = body
		got, err := ParseMessage(m.ID, Seal(key, FormatMessage(m)))
		if err != nil {
			t.Fatalf("body %q: %v", body, err)
		}
		if !SealHolds(public, got.Seal, got.Digest) {
			t.Errorf("body %q: the seal is not valid", body)
		}
		got.Seal, got.Digest = "", nil
		if d := cmp.Diff(m, got); d != "" {
			t.Errorf("body %q:\n%s", body, d)
		}
	}
}

// saysHow matches a reason that says how to fix the fault, after a colon or by giving an example.
var saysHow = regexp.MustCompile(`: [^"]|such as`)

// TestParseRefuses checks that any deviation from the format is reported as a problem with a line number and a reason.
// The reason must say how to fix the file. The parser must never guess.
func TestParseRefuses(t *testing.T) {
	t.Parallel()
	good := string(FormatMessage(sample()))
	replace := func(old, new string) string {
		if !strings.Contains(good, old) {
			t.Fatalf("%q is not in the sample", old)
		}
		return strings.Replace(good, old, new, 1)
	}
	for _, c := range []struct{ name, file, reason string }{
		{"empty", "", "---json"},
		{"bom", "\xef\xbb\xbf" + good, "byte order mark"},
		{"crlf", strings.ReplaceAll(good, "\n", "\r\n"), "CRLF"},
		{"crlf inside", replace(`"cc": [],`+"\n", `"cc": [],`+"\r\n"), "CRLF"},
		{"yaml", "---\nid: x\n---\n", "---json"},
		{"toml", "+++\nid = 1\n+++\n", `"from" is missing`},
		{"leading space", "\n" + good, "---json"},
		{"no close", strings.Replace(good, "\n---\n", "\n", 1), "no closing line"},
		{"array", "---json\n[]\n---\n", "not a JSON object"},
		{"null", "---json\nnull\n---\n", "not a JSON object"},
		{"empty header", "---json\n---\n", "no JSON object"},
		{"blank header", "---json\n\n---\n", "no JSON object"},
		{"two objects", replace("\n}\n---", "\n}{}\n---"), "text after"},
		{"duplicate", replace(`"cc": []`, `"cc": [], "from": "Other"`), "twice"},
		{"nested duplicate", replace(`"cc": []`, `"cc": [], "x": {"a": 1, "a": 2}`), "twice"},
		{"null value", replace(`"thread_id": "TKT-123"`, `"thread_id": null`), "null"},
		{"null in list", replace(`["BlueLake"]`, `[null]`), "null"},
		{"wrong type", replace(`["BlueLake"]`, `"BlueLake"`), "wrong type"},
		{"number as text", replace(`"TKT-123"`, `123`), "wrong type"},
		{"other id", replace("msg_20251023_3a51", "msg_20251023_3a52"), "differs from the file's name"},
		{"no from", replace(`"from": "GreenCastle",`, ``), `"from" is missing`},
		{"bad from", replace(`"GreenCastle"`, `"../x"`), "not an agent's name"},
		{"bad to", replace(`["BlueLake"]`, `["CON"]`), "reserved on Windows"},
		{"bad address", replace(`"GreenCastle"`, `"a b@example.org"`), "not an address"},
		{"bad bcc", replace(`"cc": []`, `"cc": [], "bcc": ["x@münchen.example"]`), "xn--"},
		{"message_id with brackets", replace(`"cc": []`, `"cc": [], "message_id": "<1@example.org>"`), "not a Message-ID"},
		{"message_id of two lines", replace(`"cc": []`, `"cc": [], "message_id": "1\n@example.org"`), "not a Message-ID"},
		{"html elsewhere", replace(`"cc": []`, `"cc": [], "html": "attachments/2a/other.html"`), "is not the path of one of"},
		{"bad auth", replace(`"auth": "none"`, `"auth": "uid:1000 (person)"`), "not one of none, token"},
		{"bad dmarc", replace(`"auth": "none"`, `"auth": "dmarc:a b"`), "not one of none, token"},
		{"bad door", replace(`"cc": []`, `"cc": [], "door": "window"`), "not one of http"},
		{"long subject", replace(`"subject": "`, `"subject": "`+strings.Repeat("x", MaxSubject)), "the subject is 1021 bytes long, over the limit of 998"},
		{"bad time", replace("2025-10-23T15", "2025-13-23T15"), "not a time"},
		{"bad importance", replace(`"high"`, `"huge"`), "not a valid importance"},
		{"utf8", replace("BlueLake", "Blue\xffLake"), "UTF-8"},
		{"deep", replace(`"cc": []`, `"cc": [], "x": `+strings.Repeat("[", 5000)+strings.Repeat("]", 5000)), "nested more than 32 levels deep"},
		{"big header", replace(`"cc": []`, `"cc": [], "x": "`+strings.Repeat("a", MaxHeader)+`"`), "the header is over"},
		{"nul", replace("TKT-123", `a\u0000b`), "NUL"},
		{"trailing comma", replace("\n}\n---", ",\n}\n---"), "there is an extra comma before }"},
		{"indented close", "---json\n{}\n ---\nx\n---\n", "indented"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := ParseMessage(sample().ID, []byte(c.file))
			var f *tree.FormatError
			if !errors.As(err, &f) || !strings.Contains(f.Reason, c.reason) || f.Line < 1 {
				t.Errorf("got %v, want a reason with %q and a line", err, c.reason)
			} else if !saysHow.MatchString(f.Reason) {
				t.Errorf("%q does not say what to do", f.Reason)
			}
		})
	}
}

// TestParseAccepts checks that a hand-written file may omit keys that have a default, and may contain unknown keys.
func TestParseAccepts(t *testing.T) {
	t.Parallel()
	file := "---json\n{\"id\": \"x1\", \"from\": \"Ann\", \"to\": [\"Bob\"], \"created\": \"2025-10-23T17:22:14+02:00\", \"ID\": 7, \"extra\": {\"a\": null}}\n---\n# The *heading*\n\ntext\n"
	m, err := ParseMessage("x1", []byte(file))
	if err != nil {
		t.Fatal(err)
	}
	if m.Subject != "The heading" || m.Importance != Normal || FormatTime(m.Created) != "2025-10-23T15:22:14.000000Z" {
		t.Errorf("%+v", m)
	}
	if m.KindFor("Bob") != "to" || m.KindFor("Eve") != "to" {
		t.Error("an agent that is not in the header should be treated as a to recipient")
	}
}

// TestParseAddresses checks that from, to, cc and bcc may contain agents and addresses at other domains.
func TestParseAddresses(t *testing.T) {
	t.Parallel()
	m := sample()
	m.From, m.To, m.CC, m.BCC = "Cat@Example.ORG", []string{"Ann", "bob@EXAMPLE.org"}, []string{"x@b.org"}, []string{"Eve", "y@B.org"}
	got, err := ParseMessage(m.ID, FormatMessage(m))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"Ann", "bob@example.org", "x@b.org", "Eve", "y@b.org"}
	if d := cmp.Diff(want, got.Recipients()); d != "" || got.From != "Cat@example.org" {
		t.Errorf("from %s\n%s", got.From, d)
	}
}

func TestLocate(t *testing.T) {
	t.Parallel()
	for p, want := range map[string]Place{
		"project.json":                  {Kind: KindProject},
		"README.md":                     {Kind: KindOther},
		"messages/2026/11/20/a.md":      {Kind: KindCanonical, ID: "a"},
		"messages/2026/11/a.md":         {Kind: KindCanonical, ID: "a"},
		"messages/a.md":                 {Kind: KindCanonical, ID: "a"},
		"messages/a.txt":                {Kind: KindOther},
		"agents/Ann/profile.json":       {Kind: KindProfile, Agent: "Ann"},
		"agents/Ann/status":             {Kind: KindStatus, Agent: "Ann"},
		"agents/Ann/inbox/x/y/z/a.b.md": {Kind: KindInbox, Agent: "Ann", ID: "a.b"},
		"agents/Ann/inbox/2026/a.read":  {Kind: KindRead, Agent: "Ann", ID: "a"},
		"agents/Ann/inbox/2026/a.ack":   {Kind: KindAck, Agent: "Ann", ID: "a"},
		"agents/Ann/outbox/2026/a.md":   {Kind: KindOutbox, Agent: "Ann", ID: "a"},
		"agents/Ann/outbox/2026/a.read": {Kind: KindOther, Agent: "Ann"},
		"agents/Ann/drafts/x.md":        {Kind: KindDraft, Agent: "Ann"},
		"claims/x/y.json":               {Kind: KindClaim},
		"claims/y.released":             {Kind: KindReleased},
		"attachments/aa/b.png":          {Kind: KindAttachment},
		"agents/Ann/inbox/.#a.md":       {Kind: KindIgnored},
		"agents/Ann/inbox/a.md~":        {Kind: KindIgnored},
		"agents/Ann/inbox/.hidden/a.md": {Kind: KindIgnored},
		"agents/Ann/inbox/a.md.swp":     {Kind: KindIgnored},
		"agents/Ann/inbox/4913":         {Kind: KindIgnored},
		".mailtree/tmp/x":               {Kind: KindIgnored},
	} {
		if got := Locate(p); got != want {
			t.Errorf("%s: got %+v, want %+v", p, got, want)
		}
	}
	for _, p := range []string{"messages/a b.md", "agents/a b/inbox/x.md", "agents/CON/profile.json"} {
		if Locate(p).Bad == "" {
			t.Errorf("%s: no problem was reported", p)
		}
	}
}

// TestReleasedBy checks that ParseMark parses the time in a mark's first line, and that ReleasedBy returns the agent
// in the second line, if that agent released another agent's claim.
func TestReleasedBy(t *testing.T) {
	now := time.Date(2025, 10, 23, 15, 22, 14, 0, time.UTC)
	for data, by := range map[string]string{
		string(FormatRelease(now, "Ann")):      "Ann",
		string(FormatMark(now)):                "",
		string(FormatMark(now)) + "by no name": "",
	} {
		at, err := ParseMark([]byte(data))
		if got := ReleasedBy([]byte(data)); got != by || err != nil || !at.Equal(now) {
			t.Errorf("%q: %q at %v, %v", data, got, at, err)
		}
	}
}

func TestMark(t *testing.T) {
	t.Parallel()
	got, err := ParseMark([]byte("2026-01-02T00:00:00Z\n2026-01-01T00:00:00Z\n"))
	if err != nil || FormatTime(got) != "2026-01-01T00:00:00.000000Z" {
		t.Errorf("the earliest of several lines should apply: %v, %v", got, err)
	}
	if got, err := ParseMark(nil); err != nil || !got.IsZero() {
		t.Errorf("an empty mark should apply, without a time: %v, %v", got, err)
	}
	if got, err := ParseMark([]byte("soon\n2026-01-01T00:00:00Z\n")); err == nil || got.IsZero() {
		t.Errorf("a bad line should be reported, and the good line should apply: %v, %v", got, err)
	}
}

// BenchmarkSealed measures sealing one copy of a message, without formatting it.
func BenchmarkSealed(b *testing.B) {
	_, key := keyPair(b)
	file := FormatMessage(sample())
	for b.Loop() {
		Seal(key, file)
	}
}

// BenchmarkFormat measures formatting one copy of a message, without sealing it.
func BenchmarkFormat(b *testing.B) {
	m := sample()
	for b.Loop() {
		FormatMessage(m)
	}
}
