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
		May("cc", CommaList("", "RedStone")),
		May("ttl_seconds", Num("", 60, 3600, 600)),
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
	names := strings.Join(a.Names("to"), "+") + ">" + strings.Join(a.Names("cc"), "+")
	return fmt.Sprintf("%s|%s|%s|%t|%d|%s|%d|%d", a.Text("project_key"), names, a.Choice("importance"), a.Flag("exclusive"),
		a.Limit("limit", 1, 200), at, a.Cursor("cursor"), a.Within("ttl_seconds"))
}

func TestArgs(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{`{"project_key":"/p"}`, "/p|>|normal|true|20||0|600"},
		{`{"project_key":"/p","to":null,"limit":null,"exclusive":null,"since_ts":null,"cursor":null,"importance":null}`, "/p|>|normal|true|20||0|600"},
		{`{"project_key":"/p","to":["A","B"],"importance":"High","exclusive":false,"limit":5,"cursor":"77"}`, "/p|A+B>|high|false|5||77|600"},
		{`{"project_key":"/p","to":"A","exclusive":"False","limit":"7","cursor":77}`, "/p|A>|normal|false|7||77|600"},
		{`{"project_key":"/p","to":"[\"A\", \"B\"]","limit":1e9}`, "/p|A+B>|normal|true|200||0|600"},
		{`{"project_key":"/p","to":["null"],"limit":20.0,"cursor":""}`, "/p|null>|normal|true|20||0|600"},
		{`{"project_key":"/p","to":[]}`, "/p|>|normal|true|20||0|600"},
		{`{"project_key":"/p","since_ts":1761232934}`, "/p|>|normal|true|20|2025-10-23T15:22:14Z|0|600"},
		{`{"project_key":"/p","since_ts":"1761232934.5"}`, "/p|>|normal|true|20|2025-10-23T15:22:14.5Z|0|600"},
		{`{"project_key":"/p","since_ts":"2025-10-23T17:22:14+02:00"}`, "/p|>|normal|true|20|2025-10-23T15:22:14Z|0|600"},
		{`{"project_key":"/p","since_ts":"2025-10-23"}`, "/p|>|normal|true|20|2025-10-23T00:00:00Z|0|600"},
		{`{"project_key":"/p","since_ts":"2025-10-23 15:22"}`, "/p|>|normal|true|20|2025-10-23T15:22:00Z|0|600"},
		{`{"project_key":"/p","importance":"","exclusive":"","limit":"","since_ts":"","cc":"","ttl_seconds":""}`, "/p|>|normal|true|20||0|600"},
		{`{"project_key":"/p","cc":"A, B;C\nD,"}`, "/p|>A+B+C+D|normal|true|20||0|600"},
		{`{"project_key":"/p","cc":["A,B"," ","C"]}`, "/p|>A+B+C|normal|true|20||0|600"},
		{`{"project_key":"/p","to":"A, B","cc":"[\"A\",\"B\"]"}`, "/p|A, B>A+B|normal|true|20||0|600"},
		{`{"project_key":"/p","limit":"all"}`, "/p|>|normal|true|200||0|600"},
		{`{"project_key":"/p","limit":0,"ttl_seconds":"3600"}`, "/p|>|normal|true|20||0|3600"},
		{`{"project_key":"/p","since_ts":0}`, "/p|>|normal|true|20||0|600"},
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
		{`{"project_key":"/p","limits":1}`, `Unknown argument "limits" of t. Did you mean limit? It takes project_key, to, importance, cc, ttl_seconds, exclusive, limit, since_ts, cursor.`},
		{`{"project_key":"/p","zzzzzzzzzzzz":1}`, `Unknown argument "zzzzzzzzzzzz" of t. It takes project_key, to, importance, cc, ttl_seconds, exclusive, limit, since_ts, cursor.`},
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
		{`{"project_key":"/p","limit":-1}`, `limit is -1: it must be from 1 to 200.`},
		{`{"project_key":"/p","ttl_seconds":0}`, `ttl_seconds is 0: it must be from 60 to 3600.`},
		{`{"project_key":"/p","ttl_seconds":1e12}`, `ttl_seconds is 1000000000000: it must be from 60 to 3600.`},
		{`{"limits":1,"file":2}`, `Unknown arguments "file", "limits" of t. Did you mean limit for "limits"? ` +
			`It takes project_key, to, importance, cc, ttl_seconds, exclusive, limit, since_ts, cursor. ` +
			`The argument project_key is missing: absolute path, such as "/abs/path".`},
		{`{"project_key":"/p","limit":2.5}`, `limit is 2.5, but must be a whole number, such as 20.`},
		{`{"project_key":"/p","limit":"many"}`, `limit is "many", but must be a whole number, such as 20.`},
		{`{"project_key":"/p","limit":"NaN"}`, `limit is "NaN", but must be a whole number, such as 20.`},
		{`{"project_key":"/p","since_ts":"yesterday"}`, `since_ts is "yesterday": use a time such as 2025-10-23T15:22:14Z, or seconds since 1970.`},
		{`{"project_key":"/p","since_ts":1e300}`, `since_ts is "1e300": use a time such as 2025-10-23T15:22:14Z, or seconds since 1970.`},
		{`{"project_key":"/p","cursor":"next"}`, `cursor is "next": pass next_cursor of the page before, or leave it out.`},
		{`{"project_key":1,"limit":-1,"importance":"x"}`, `project_key is 1, but must be a string, such as "/abs/path".
importance is "x": use one of low, normal, high, urgent.
limit is -1: it must be from 1 to 200.`},
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
		if n := a.Limit("limit", 1, 200); a.err == nil && (n < 1 || n > 200) {
			t.Errorf("limit %d", n)
		}
	})
}
