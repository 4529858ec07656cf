package main

import (
	"encoding/json"
	"strings"
	"testing"

	"mailtree/cmd/mailtree/cli"
	"mailtree/mcp/mail"
)

// TestTemplatesPrintLines checks that text written by others can neither control a terminal nor begin a line or a cell.
func TestTemplatesPrintLines(t *testing.T) {
	var w mail.Whois
	answer := `{"name":"Ann\u001b[31m","task_description":"a\tb\nc","claims":[{"path":"p\u202e"}],"commits":["1\n2"]}`
	if err := json.Unmarshal([]byte(answer), &w); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	d := &deskWork{Screen: cli.NewScreen(&out, func(string) string { return "" })}
	if err := showByTemplate(t.Context(), d, "whois", &w); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"Ann\x1b[31m"`, `task     "a\tb\nc"` + "\n", `claim    "p\u202e", for`, `commit   "1\n2"`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing from:\n%s", want, out.String())
		}
	}
}
