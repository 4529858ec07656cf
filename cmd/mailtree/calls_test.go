package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mailtree/fixtures/inmemory"
)

// callTables is the folder with tables of invalid calls. fixtures/calls/TOOLSET.txt contains calls that models make.
// Each call is followed by its result.
//
//	# a comment
//	by NAME project=KEY                  the caller of the following calls; both parts are optional
//	send_message {"to": "BlueLake", …}   tool and arguments
//	= {"id": …}                          a line of the result's first text; + marks a line of another text
//	! not_found No agent …               a refusal: its code, and a line of its text
//	~ BlueLake, RedStone                 similar names, if there are any
//
// The placeholders are the same as in the transcripts (wire_test.go). In addition, <msg 1 cut> is an id without its
// last letter, and <made> is a generated name. With -update, the test rewrites the results.
const callTables = "../../fixtures/calls"

// TestCalls checks that every call in every table returns the result shown in the table, over every transport.
func TestCalls(t *testing.T) {
	files, err := filepath.Glob(callTables + "/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d tables, %v", len(files), err)
	}
	for _, file := range files {
		for i, w := range wires {
			if i > 0 && *update {
				continue
			}
			toolset := strings.TrimSuffix(filepath.Base(file), ".txt")
			t.Run(w.name+"/"+toolset, func(t *testing.T) {
				t.Parallel()
				want, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				d := newDaemon(t, filepath.Join(inmemory.Dir(t), "store"))
				d.real = true
				d.start()
				desk := callDesk{replayer: replayer{t: t, d: d, wire: w.wire, toolset: toolset, peers: map[caller]peer{}}}
				got := desk.play(string(want))
				if *update {
					want = []byte(got)
					if err := os.WriteFile(file, want, 0o644); err != nil {
						t.Error(err)
					}
				}
				if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
					t.Error(diff)
				}
				d.check(nil)
			})
		}
	}
}

// callDesk makes the calls in one table.
type callDesk struct {
	replayer
	by  caller
	cut map[string]string // placeholders that only the tables have, keyed by the text that they replace
}

// play makes every call in a table, and returns the table with the actual results.
func (c *callDesk) play(table string) string {
	var b strings.Builder
	c.cut = map[string]string{}
	for line := range strings.Lines(table) {
		line = strings.TrimSuffix(line, "\n")
		if line != "" && strings.ContainsAny(line[:1], "=+!~") {
			continue
		}
		b.WriteString(line + "\n")
		switch word, rest, _ := strings.Cut(line, " "); word {
		case "", "#":
		case "by":
			c.by = caller{}
			for word := range strings.FieldsSeq(rest) {
				if key, ok := strings.CutPrefix(word, "project="); ok {
					c.by.project = key
				} else {
					c.by.name = word
				}
			}
		default:
			b.WriteString(c.call(word, rest))
		}
	}
	for _, p := range c.peers {
		if err := p.close(); err != nil {
			c.t.Errorf("close: %v", err)
		}
	}
	return b.String()
}

var cutID = regexp.MustCompile(`<msg \d+ cut>`)

// call makes one call, and returns the lines that show its result.
func (c *callDesk) call(tool, args string) string {
	args = cutID.ReplaceAllStringFunc(args, func(s string) string {
		id := string(c.meant([]byte(strings.TrimSuffix(s, " cut>") + ">")))
		id = id[:len(id)-1]
		c.cut[id] = s
		return id
	})
	message := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, tool, c.meant([]byte(args)))
	answer := c.exchange(c.by, []byte(message))
	var a struct {
		Result struct {
			Content    []struct{ Text string }
			Structured struct {
				Error, Code, Name string
				Near              []string
			} `json:"structuredContent"`
			IsError bool
		}
		Error *struct{ Message string }
	}
	if err := json.Unmarshal(bytes.TrimSpace(answer), &a); err != nil {
		c.t.Fatalf("%s %s: %v: %s", tool, args, err, answer)
	}
	if made := a.Result.Structured.Name; tool == "create_agent" && made != "" && !strings.Contains(strings.ReplaceAll(args, " ", ""), made) {
		c.cut[made] = "<made>"
	}
	switch r := a.Result; {
	case a.Error != nil:
		return "! " + a.Error.Message + "\n"
	case r.IsError:
		if r.Structured.Error != r.Content[0].Text {
			c.t.Errorf("%s %s: %s, but structured %s", tool, args, r.Content[0].Text, r.Structured.Error)
		}
		lines := c.lines("! ", r.Structured.Code+" "+r.Content[0].Text)
		for _, more := range r.Content[1:] {
			lines += c.lines("+ ", more.Text)
		}
		if len(r.Structured.Near) > 0 {
			lines += c.lines("~ ", strings.Join(r.Structured.Near, ", "))
		}
		return lines
	default:
		lines := c.lines("= ", r.Content[0].Text)
		for _, more := range r.Content[1:] {
			lines += c.lines("+ ", more.Text)
		}
		return lines
	}
}

// lines formats text for a table. Each line begins with mark.
func (c *callDesk) lines(mark, text string) string {
	const example, shown = "msg_20251023_3a51c0f7b3dc3a7e", "<an id>"
	text = strings.ReplaceAll(c.named(strings.ReplaceAll(text, example, shown)), shown, example)
	for id, placeholder := range c.cut {
		text = strings.ReplaceAll(text, id, placeholder)
	}
	return mark + strings.ReplaceAll(text, "\n", "\n"+mark) + "\n"
}
