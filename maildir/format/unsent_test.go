package format

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mailtree/maildir/tree"
)

// TestUnsentPlain checks that a plain header is parsed correctly with and without --- lines around it, and that every
// value in it is text. YAML, TOML and JSON headers with the same values must give the same result.
func TestUnsentPlain(t *testing.T) {
	t.Parallel()
	unsent := func(change func(*Unsent)) *Unsent {
		u := &Unsent{Message: Message{To: []string{"BlueLake"}, Body: "Text."}}
		change(u)
		return u
	}
	for name, tt := range map[string]struct {
		file string
		want *Unsent
	}{
		"least":   {"to: BlueLake\n\nText.\n", unsent(func(*Unsent) {})},
		"fenced":  {"---\nto: BlueLake\n---\n\nText.\n", unsent(func(*Unsent) {})},
		"no body": {"to: BlueLake\nsubject: Done", unsent(func(u *Unsent) { u.Subject, u.Body = "Done", "" })},
		"ends":    {"---\nto: BlueLake\n---", unsent(func(u *Unsent) { u.Body = "" })},
		"email": {"To: BlueLake, GreenCastle\nCC: AmberFox\nSubject: Re: x: y\nImportance: high\nAck: yes\nIn-Reply-To: msg_1\n\nText.\n", unsent(func(u *Unsent) {
			u.To, u.CC, u.Subject, u.Importance, u.AckRequired, u.InReplyTo = []string{"BlueLake", "GreenCastle"}, []string{"AmberFox"}, "Re: x: y", High, true, "msg_1"
		})},
		"YAML": {"---\nto:\n  - BlueLake\n  - 'O''Neil'\n# nobody else\ncc: [AmberFox, \"Red, Stone\"]\nbcc: []\nsubject: \"a \\\"b\\\"\"\n\nack_required: false\nattachments:\n- a.png\n- b, c.png\n---\nText.\n", unsent(func(u *Unsent) {
			u.To, u.CC, u.BCC, u.Subject = []string{"BlueLake", "O'Neil"}, []string{"AmberFox", "Red, Stone"}, []string{}, `a "b"`
			u.Attach = []string{"a.png", "b, c.png"}
		})},
		"number":        {"to: BlueLake\nsubject: 12\n\nText.\n", unsent(func(u *Unsent) { u.Subject = "12" })},
		"no":            {"to: BlueLake\nsubject: no\n\nText.\n", unsent(func(u *Unsent) { u.Subject = "no" })},
		"null":          {"to: BlueLake\nsubject: ~\nkey: null\n\nText.\n", unsent(func(u *Unsent) { u.Subject, u.Key = "~", "null" })},
		"anchor":        {"to: BlueLake\nsubject: &a *b !c {d} #e\n\nText.\n", unsent(func(u *Unsent) { u.Subject = "&a *b !c {d} #e" })},
		"quoted part":   {"to: BlueLake\nsubject: \"Yes\" it is\n\nText.\n", unsent(func(u *Unsent) { u.Subject = `"Yes" it is` })},
		"text as lines": {"to: BlueLake\n\nsubject: x\n\n---\nText.\n", unsent(func(u *Unsent) { u.Body = "subject: x\n\n---\nText." })},
		"blanks":        {"---  \nto: BlueLake\n---\t\n\nText.\n", unsent(func(*Unsent) {})},
		"two quoted":    {"to: BlueLake\nsubject: 'a' and 'b'\n\nText.\n", unsent(func(u *Unsent) { u.Subject = "'a' and 'b'" })},
		"repeat":        {"to: BlueLake\nrepeat: Daily\n\nText.\n", unsent(func(u *Unsent) { u.Daily = true })},
		"block": {"---\nto:\n  - BlueLake\nsubject: >\n  a long\n  subject\nack: YES\n---\n\nText.\n", unsent(func(u *Unsent) {
			u.Subject, u.AckRequired = "a long subject\n", true
		})},
		"every scalar is text": {"---\nto: BlueLake\nsubject: no\nkey: 0x10\ntags: [yes, 1.0, 2026-11-28, ~]\nnested:\n  a: {b: null}\n---\nText.\n", unsent(func(u *Unsent) {
			u.Subject, u.Key = "no", "0x10"
			u.Extra = ",\n  \"tags\": [\"yes\",\"1.0\",\"2026-11-28\",\"~\"],\n  \"nested\": {\"a\":{\"b\":\"null\"}}"
		})},
		"list of two lines": {"---\nto: [BlueLake,\n  GreenCastle]\n---\nText.\n", unsent(func(u *Unsent) { u.To = []string{"BlueLake", "GreenCastle"} })},
		"TOML": {"+++\nto = 'BlueLake'\ncc = ['AmberFox']\nsubject = 12\nack = true\ntitle = 'x'\n+++\n\nText.\n", unsent(func(u *Unsent) {
			u.CC, u.Subject, u.AckRequired, u.Extra = []string{"AmberFox"}, "12", true, ",\n  \"title\": \"x\""
		})},
		"TOML sent":    {"+++\nto = 'BlueLake'\nmessage_id = '<1@example.org>'\n+++\nText.\n", unsent(func(u *Unsent) { u.ID = "<1@example.org>" })},
		"unknown keys": {"---json\n{\"To\": [\"BlueLake\"], \"x\": {\"a\":  1}, \"auth\": \"token\"}\n---\nText.\n", unsent(func(u *Unsent) { u.Extra = ",\n  \"x\": {\"a\":  1}" })},
		"unknown keys as written": {"---\nTo: BlueLake\nX-Build-ID: 'a'\n\"In-Reply-To\": m1\n---\nText.\n", unsent(func(u *Unsent) {
			u.InReplyTo, u.Extra = "m1", ",\n  \"X-Build-ID\": \"a\""
		})},
		"JSON": {"---json\n{\"to\": [\"BlueLake\"]}\n---\nText.\n", unsent(func(*Unsent) {})},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ParseUnsent([]byte(tt.file))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestUnsentRefused checks that the error for an invalid file describes the fault and its line number, without
// quoting the line.
func TestUnsentRefused(t *testing.T) {
	t.Parallel()
	js := func(text string) string { return "---json\n" + text + "\n---\n" }
	for name, tt := range map[string]struct{ file, want string }{
		"no header":           {"Hello\n", "line 1: there is no header"},
		"TOML":                {"+++\nto = Zoe\n+++\n", "line 2: the header is not valid TOML"},
		"TOML list":           {"+++\nfrom = 'Ann'\nsubject = ['Zoe']\n+++\n", `line 3: "subject" is a list`},
		"TOML open":           {"+++\nto = 'Zoe'\n", "line 1: the header has no closing line +++"},
		"other key":           {"to: BlueLake\ncolour: Zoe\n\nText.\n", `line 2: the key "colour" is unknown: write a key`},
		"slip":                {"to: BlueLake\nsubjct: Zoe\n\nText.\n", `line 2: the key "subjct" is unknown: did you mean subject? Put`},
		"text":                {"to: BlueLake\nZoe\n", "line 2: this is not a header line"},
		"heading":             {"to: BlueLake\n# Zoe\n\nText.\n", "line 2: this is not a header line"},
		"indented":            {"---\nto: BlueLake\n  cc: Zoe\n---\n", "line 3: this is not a header line"},
		"item":                {"---\n- Zoe\n---\n", "line 2: this is not a header line"},
		"item below a string": {"---\nsubject: x\n- Zoe\n---\n", "line 3: this is not a header line"},
		"twice":               {"---\nbcc: Zoe\nBCC: Zoe\n---\n", `line 3: the key "bcc" appears twice`},
		"neither":             {"to: BlueLake\nack: Zoe\n\n", `line 2: "ack_required" must be yes or no`},
		"open":                {"---\nto: BlueLake\n\nZoe\n", "line 4: this is not a header line"},
		"open end":            {"---\nto: BlueLake\n", "line 3: the header has no closing line ---"},
		"server's":            {"to: BlueLake\nseal: Zoe\n\n", `line 2: the key "seal" is unknown`},
		"CRLF":                {"to: BlueLake\r\n\r\nText.\r\n", "line 1: the header has CRLF line endings"},
		"CRLF later":          {"to: BlueLake\ncc: Zoe\r\n\nText.\n", "line 2: the header has CRLF line endings"},
		"UTF-8":               {"to: BlueLake\ncc: Zo\xff\n\nText.\n", "line 2: the text is not valid UTF-8"},
		"NUL":                 {"to: BlueLake\nsubject: Zo\x00e\n\nText.\n", `line 2: "subject" contains a NUL character`},
		"YAML slip":           {"---\nto: BlueLake\nbbc: Zoe\ntags: [a]\n---\n", `line 3: the key "bbc" is unknown: did you mean "bcc"?`},
		"attachment slip":     {"---\nto: BlueLake\nattachment: plan.pdf\n---\n", `line 3: the key "attachment" is unknown: did you mean "attachments"?`},
		"repeat slip":         {js("{\"to\": [],\n\"repeats\": \"daily\"}"), `line 3: the key "repeats" is unknown: did you mean "repeat"?`},
		"JSON slip":           {js("{\"to\": [],\n\"bbc\": [\"Zoe\"]}"), `line 3: the key "bbc" is unknown: did you mean "bcc"?`},
		"JSON twice":          {js("{\"bcc\": [],\n\"BCC\": [\"Zoe\"]}"), `line 3: the key "bcc" appears twice`},
		"YAML twice":          {"---\nto: BlueLake\ntitle: Zoe\ntitle: Zoe\n---\n", `line 4: the key "title" appears twice`},
		"YAML flag":           {"---\nto: BlueLake\ntitle: x\nack: Zoe\n---\n", `line 4: "ack_required" must be yes or no`},
		"alias":               {"---\nto: &a\n  Zoe\ncc: *a\n---\n", "line 2: anchors (&) and aliases (*) are not supported"},
		"tag":                 {"---\nto: BlueLake\nsubject:\n  !!int Zoe\n---\n", "line 4: tags (!) are not supported"},
		"deep":                {"---\nto: BlueLake\nx: " + strings.Repeat("[", 32) + strings.Repeat("]", 32) + "\n---\n", "line 3: the header is nested more than 32 levels deep"},
		"JSON spaces":         {"---json \n{}\n---\n", "line 1: the line ---json ends with spaces"},
		"JSON end":            {"---json\n{}\n--- \nx\n", "line 3: the line --- below the header ends with spaces"},
		"repeat":              {"to: BlueLake\nrepeat: weekly\n\nx\n", `line 2: "weekly" is not a valid value for repeat`},
		"large":               {"to: BlueLake\nsubject: " + strings.Repeat("x", MaxHeader) + "\n\nText.\n", "line 2: the header is too large"},

		"comma before }":  {js("{\n\"to\": [\"Zoe\"],\n}"), "line 4: there is an extra comma before }"},
		"comma before ]":  {js("{\n\"to\": [\"Zoe\",]\n}"), "line 3: there is an extra comma before ]"},
		"two commas":      {js("{\"to\": [\"Zoe\"],,\n\"cc\": []}"), "line 2: there is an extra comma before ,"},
		"no comma":        {js("{\"to\": [\"Zoe\"]\n\"cc\": []}"), "line 3: a comma is missing before \""},
		"no comma in [":   {js("{\"to\": [\"Zoe\" \"Zoe\"]}"), "line 2: a comma is missing before \""},
		"no colon":        {js("{\"to\" [\"Zoe\"]}"), "line 2: a colon is missing after the key"},
		"no value":        {js("{\"to\": }"), "line 2: a value is missing after the colon"},
		"bare text":       {js("{\"to\": [Zoe]}"), `line 2: a string has no quotation marks: write " around it`},
		"bare key":        {js("{to: [\"Zoe\"]}"), `line 2: a key has no quotation marks: write " around it`},
		"single marks":    {js("{'to': ['Zoe']}"), `line 2: JSON uses double quotation marks`},
		"single in value": {js("{\"to\": ['Zoe']}"), `line 2: JSON uses double quotation marks`},
		"comment":         {js("{\n// Zoe\n\"to\": []}"), "line 3: JSON has no comments"},
		"open text":       {js("{\"to\": [\"Zoe],\n\"cc\": []}"), "line 2: a string is not closed on its line"},
		"tab":             {js("{\"subject\": \"Zoe\ta\"}"), "line 2: a string contains a control character"},
		"backslash":       {js(`{"subject": "C:\Zoe"}`), `line 2: a string contains an invalid \ escape: write \\ for a \`},
		"open object":     {js("{\"to\": [\"Zoe\""), "line 2: the JSON ends too early"},
		"bare word":       {js("{\"ack_required\": yes}"), "line 2: a string has no quotation marks"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseUnsent([]byte(tt.file))
			if err == nil || !strings.HasPrefix(err.Error(), tt.want) {
				t.Errorf("refused: %v\nwant %s", err, tt.want)
			}
			if err != nil && (strings.Contains(err.Error(), "Zo") || strings.Contains(err.Error(), "invalid character")) {
				t.Errorf("the error says too much: %v", err)
			}
		})
	}
}

// FuzzParseUnsent checks that any file is either parsed or rejected with the number of an existing line. A plain header
// must give the same result as a JSON header with the same values.
func FuzzParseUnsent(f *testing.F) {
	for _, s := range []string{
		"to: BlueLake\n\nText.\n",
		"---\nto:\n- BlueLake\ncc: [a, 'b']\nack: yes\n---\nText.\n",
		"---json\n{\"to\": [\"BlueLake\"],}\n---\nText.\n",
		"---\nto: >\n  BlueLake\nx: [a, {b: c}]\n---\nText.\n",
		"+++\nto = 'BlueLake'\n[x]\ny = 1979-05-27T07:32:00\n+++\nText.\n",
		"---\n---", "---\n", "to:\n- \n-", "subject: \"\\u0000\"\n\n", "---json\n{\"to\": [,]}\n---\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		u, err := ParseUnsent(data)
		var fault *tree.FormatError
		switch {
		case err != nil && (!errors.As(err, &fault) || fault.Line < 1 || fault.Line > strings.Count(string(data), "\n")+2):
			t.Fatalf("%q: %v", data, err)
		case err != nil:
			return
		}
		again := &Unsent{}
		if o, _, err := parseHeader(message(u.header(func(f *field, empty bool) bool { return f.is(given) && !empty }), u.Body)); err != nil {
			t.Fatal(err)
		} else if again.readHeader(o, given); o.err != nil {
			t.Fatal(o.err)
		}
		if again.Subject != u.Subject || !slices.Equal(again.To, u.To) || again.AckRequired != u.AckRequired {
			t.Fatalf("%q: %+v, %+v", data, u, again)
		}
	})
}
