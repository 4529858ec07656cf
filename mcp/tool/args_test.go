package tool

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"mailtree/maildir/refusal"
)

// testIn has one argument of each kind.
func testIn() []Prop {
	return []Prop{
		Need("project_key", Str("absolute path", "/abs/path")),
		May("to", List("agent names", "BlueLake")),
		May("importance", OneOf("", "normal", "low", "normal", "high", "urgent")),
		May("exclusive", TrueFlag("")),
		May("limit", Num("", 1, 200, 20)),
		May("since_ts", Str("", "2025-10-23T15:22:14Z")),
		May("cursor", Str("", "12")),
	}
}

// read gets everything that testIn describes.
func read(a *Args) string {
	at := ""
	if t := a.When("since_ts"); !t.IsZero() {
		at = t.Format(time.RFC3339Nano)
	}
	return fmt.Sprintf("%s|%s|%s|%t|%d|%s|%d", a.Text("project_key"), strings.Join(a.Names("to"), "+"), a.Choice("importance"), a.Flag("exclusive"),
		a.Count("limit", 1, 200), at, a.Cursor("cursor"))
}

func TestArgs(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{`{"project_key":"/p"}`, "/p||normal|true|20||0"},
		{`{"project_key":"/p","to":null,"limit":null,"exclusive":null,"since_ts":null,"cursor":null,"importance":null}`, "/p||normal|true|20||0"},
		{`{"project_key":"/p","to":["A","B"],"importance":"High","exclusive":false,"limit":5,"cursor":"77"}`, "/p|A+B|high|false|5||77"},
		{`{"project_key":"/p","to":"A","exclusive":"False","limit":"7","cursor":77}`, "/p|A|normal|false|7||77"},
		{`{"project_key":"/p","to":"[\"A\", \"B\"]","limit":1e9}`, "/p|A+B|normal|true|200||0"},
		{`{"project_key":"/p","to":["null"],"limit":20.0,"cursor":""}`, "/p|null|normal|true|20||0"},
		{`{"project_key":"/p","to":[]}`, "/p||normal|true|20||0"},
		{`{"project_key":"/p","since_ts":1761232934}`, "/p||normal|true|20|2025-10-23T15:22:14Z|0"},
		{`{"project_key":"/p","since_ts":"1761232934.5"}`, "/p||normal|true|20|2025-10-23T15:22:14.5Z|0"},
		{`{"project_key":"/p","since_ts":"2025-10-23T17:22:14+02:00"}`, "/p||normal|true|20|2025-10-23T15:22:14Z|0"},
		{`{"project_key":"/p","since_ts":""}`, "/p||normal|true|20||0"},
		{`{"project_key":"/p","since_ts":0}`, "/p||normal|true|20||0"},
	} {
		a := DecodeArgs("t", json.RawMessage(tt.in), testIn())
		if got := read(a); a.err != nil || got != tt.want {
			t.Errorf("%s:\n got %s (%v)\nwant %s", tt.in, got, a.err, tt.want)
		}
	}
}

func TestArgsRefused(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{``, `The argument project_key is missing: absolute path, such as "/abs/path".`},
		{`null`, `The argument project_key is missing: absolute path, such as "/abs/path".`},
		{`[]`, `Arguments must be a JSON object such as {"project_key": "/abs/path"}.`},
		{`"x"`, `Arguments must be a JSON object such as {"project_key": "/abs/path"}.`},
		{`{"project_key":null}`, `The argument project_key is missing: absolute path, such as "/abs/path".`},
		{`{"project_key":"/p","limits":1}`, `Unknown argument "limits" of t. Did you mean limit? It takes project_key, to, importance, exclusive, limit, since_ts, cursor.`},
		{`{"project_key":"/p","zzzzzzzzzzzz":1}`, `Unknown argument "zzzzzzzzzzzz" of t. It takes project_key, to, importance, exclusive, limit, since_ts, cursor.`},
		{`{"project_key":"/p","limit":1,"limit":2}`, `The argument "limit" of t is given twice: give it once.`},
		{`{"project_key":"/p","limit":1, "limit" : 1}`, `The argument "limit" of t is given twice: give it once.`},
		{`{"limit":null,"project_key":"/p","\u006cimit":1}`, `The argument "limit" of t is given twice: give it once.`},
		{`{"project_key":"/p","to":{"a":1,"a":2}}`, `to is {"a":1,"a":2}, but must be a list of strings, such as ["BlueLake"].`},
		{`{"project_key":"/p"} {}`, `Arguments must be a JSON object such as {"project_key": "/abs/path"}.`},
		{`{"project_key":"/p","limit":}`, `Arguments must be a JSON object such as {"project_key": "/abs/path"}.`},
		{`{"project_key":"/p",}`, `Arguments must be a JSON object such as {"project_key": "/abs/path"}.`},
		{`{"project_key":"/p"`, `Arguments must be a JSON object such as {"project_key": "/abs/path"}.`},
		{`{"project_key":7}`, `project_key is 7, but must be a string, such as "/abs/path".`},
		{`{"project_key":"/p","to":{"a":1}}`, `to is {"a":1}, but must be a list of strings, such as ["BlueLake"].`},
		{`{"project_key":"/p","to":["A",null]}`, `to is ["A",null], but must be a list of strings, such as ["BlueLake"].`},
		{`{"project_key":"/p","to":[1]}`, `to is [1], but must be a list of strings, such as ["BlueLake"].`},
		{`{"project_key":"/p","importance":"hot"}`, `importance is "hot": use one of low, normal, high, urgent.`},
		{`{"project_key":"/p","exclusive":1}`, `exclusive is 1, but must be true or false, such as true.`},
		{`{"project_key":"/p","limit":0}`, `limit is 0: it must be at least 1.`},
		{`{"project_key":"/p","limit":2.5}`, `limit is 2.5, but must be a whole number, such as 20.`},
		{`{"project_key":"/p","limit":"many"}`, `limit is "many", but must be a whole number, such as 20.`},
		{`{"project_key":"/p","limit":"NaN"}`, `limit is "NaN", but must be a whole number, such as 20.`},
		{`{"project_key":"/p","since_ts":"yesterday"}`, `since_ts is "yesterday": use a time such as 2025-10-23T15:22:14Z, or seconds since 1970.`},
		{`{"project_key":"/p","since_ts":1e300}`, `since_ts is "1e300": use a time such as 2025-10-23T15:22:14Z, or seconds since 1970.`},
		{`{"project_key":"/p","cursor":"next"}`, `cursor is "next": pass next_cursor of the page before, or leave it out.`},
		{`{"project_key":1,"limit":0}`, `project_key is 1, but must be a string, such as "/abs/path".`},
	} {
		a := DecodeArgs("t", json.RawMessage(tt.in), testIn())
		if a.err == nil {
			read(a)
		}
		if a.err == nil || a.err.Error() != tt.want || refusal.Code(a.err) != "invalid" {
			t.Errorf("%s:\n got %v\nwant %s", tt.in, a.err, tt.want)
		}
	}
}

// TestArgsMissing: one answer names all that is missing, but for what the tool asks for itself,
// later.
func TestArgsMissing(t *testing.T) {
	in := []Prop{Need("from", Str("sender", "Ann")), May("cc", Str("copy", "Cid")), Need("subject", Str("subject", "Hi")), Late("to", Str("recipient", "Bob"))}
	for given, want := range map[string]string{
		`{}`:                            `Arguments are missing: from: sender, such as "Ann"; subject: subject, such as "Hi".`,
		`{"from":"Ann"}`:                `The argument subject is missing: subject, such as "Hi".`,
		`{"from":"Ann","subject":"Hi"}`: ``,
	} {
		got := ""
		if err := DecodeArgs("t", json.RawMessage(given), in).Err(); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %s, want %s", given, got, want)
		}
	}
}

// FuzzArgs: whatever comes, reading it neither panics nor gives both a value out of bounds and no
// error.
func FuzzArgs(f *testing.F) {
	f.Add([]byte(`{"project_key":"/p","to":"[\"A\"]","limit":"7","since_ts":-1}`))
	f.Add([]byte(`{"project_key":"/p","limit":"Inf","cursor":"-1"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		a := DecodeArgs("t", data, testIn())
		if a.err != nil {
			return
		}
		read(a)
		if n := a.Count("limit", 1, 200); a.err == nil && (n < 1 || n > 200) {
			t.Errorf("limit %d", n)
		}
	})
}
