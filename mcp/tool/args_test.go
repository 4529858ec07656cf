package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"mailtree/maildir/refusal"
)

// testRequest has one argument of each type.
type testRequest struct {
	Project    string    `json:"project_key" jsonschema:"absolute path" example:"/abs/path"`
	To         []string  `json:"to,omitempty" jsonschema:"agent names" example:"BlueLake"`
	Importance string    `json:"importance,omitempty" enum:"low,normal,high,urgent" default:"normal"`
	CC         []string  `json:"cc,omitempty" example:"RedStone" as:"commas"`
	TTL        int       `json:"ttl_seconds,omitempty" min:"60" max:"3600" default:"600"`
	Exclusive  bool      `json:"exclusive,omitempty" default:"true"`
	Limit      int       `json:"limit,omitempty" min:"1" max:"200" default:"20" as:"limit"`
	Since      time.Time `json:"since_ts,omitempty" example:"2025-10-23T15:22:14Z"`
	Cursor     int64     `json:"cursor,omitempty" example:"12" as:"cursor"`
}

// run calls a tool that returns its request.
func run[R any](arguments string) (*R, error) {
	t := Of(Tool{Name: "t"}, func(_ context.Context, r *R) (any, error) { return r, nil })
	out, err := t.Run(context.Background(), json.RawMessage(arguments))
	if err != nil {
		return nil, err
	}
	return out.(*R), nil
}

// String returns all values in the request as text.
func (r *testRequest) String() string {
	at := ""
	if !r.Since.IsZero() {
		at = r.Since.Format(time.RFC3339Nano)
	}
	names := strings.Join(r.To, "+") + ">" + strings.Join(r.CC, "+")
	return fmt.Sprintf("%s|%s|%s|%t|%d|%s|%d|%d", r.Project, names, r.Importance, r.Exclusive, r.Limit, at, r.Cursor, r.TTL)
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
		if got, err := run[testRequest](tt.in); err != nil || got.String() != tt.want {
			t.Errorf("%s:\n got %v (%v)\nwant %s", tt.in, got, err, tt.want)
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
		{`{"project_key":"/p","limit":1,"limit":2}`, `The argument "limit" of t appears twice: pass it once.`},
		{`{"project_key":"/p","limit":1, "limit" : 1}`, `The argument "limit" of t appears twice: pass it once.`},
		{`{"limit":null,"project_key":"/p","\u006cimit":1}`, `The argument "limit" of t appears twice: pass it once.`},
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
		{`{"project_key":"/p","cursor":"next"}`, `cursor is "next": pass the previous page's next_cursor, or omit it.`},
		{`{"project_key":1,"limit":-1,"importance":"x"}`, `project_key is 1, but must be a string, such as "/abs/path".
importance is "x": use one of low, normal, high, urgent.
limit is -1: it must be from 1 to 200.`},
	} {
		_, err := run[testRequest](tt.in)
		if err == nil || err.Error() != tt.want || refusal.Code(err) != "invalid" {
			t.Errorf("%s:\n got %v\nwant %s", tt.in, err, tt.want)
		}
	}
}

// TestArgsManyUnknown checks that a refusal lists the first unknown arguments and says how many more there are.
func TestArgsManyUnknown(t *testing.T) {
	t.Parallel()
	var in strings.Builder
	in.WriteString(`{"project_key":"/p"`)
	for i := range 5000 {
		fmt.Fprintf(&in, `,"x%05d":1`, i)
	}
	_, err := run[testRequest](in.String() + "}")
	if err == nil || !strings.Contains(err.Error(), `"x00019", and 4980 more of t.`) || strings.Contains(err.Error(), "x00020") {
		t.Errorf("%.400v", err)
	}
}

// TestArgsMissing checks that one refusal lists all missing arguments, except those that the tool itself checks later.
func TestArgsMissing(t *testing.T) {
	type request struct {
		From    string `json:"from" jsonschema:"sender" example:"Ann"`
		CC      string `json:"cc,omitempty" jsonschema:"copy" example:"Cid"`
		Subject string `json:"subject" jsonschema:"subject" example:"Hi"`
		To      string `json:"to" jsonschema:"recipient" example:"Bob" as:"late"`
	}
	if err := Missing[request]("to"); err.Error() != `The argument to is missing: recipient, such as "Bob".` {
		t.Error(err)
	}
	for given, want := range map[string]string{
		`{}`:                            `Arguments are missing: from: sender, such as "Ann"; subject: subject, such as "Hi".`,
		`{"from":"Ann"}`:                `The argument subject is missing: subject, such as "Hi".`,
		`{"from":"Ann","subject":"Hi"}`: ``,
	} {
		got := ""
		if _, err := run[request](given); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %s, want %s", given, got, want)
		}
	}
}

// FuzzArgs checks that reading arguments never panics. It also checks that a value outside its limits always results in
// an error.
func FuzzArgs(f *testing.F) {
	f.Add([]byte(`{"project_key":"/p","to":"[\"A\"]","limit":"7","since_ts":-1}`))
	f.Add([]byte(`{"project_key":"/p","limit":"Inf","cursor":"-1"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if r, err := run[testRequest](string(data)); err == nil && (r.Limit < 1 || r.Limit > 200 || r.TTL < 60 || r.TTL > 3600) {
			t.Errorf("limit %d, ttl_seconds %d", r.Limit, r.TTL)
		}
	})
}

// TestEmbedded checks that the fields of an embedded struct become arguments in place of the struct, and that a pointer
// shows whether its argument was passed.
func TestEmbedded(t *testing.T) {
	type page struct {
		Offset *int `json:"offset,omitempty"`
	}
	type request struct {
		From string `json:"from" example:"Ann"`
		page
		To string `json:"to,omitempty" example:"Bob"`
	}
	if r, err := run[request](`{"from":"A","offset":"0","to":"B"}`); err != nil || r.From != "A" || r.To != "B" || r.Offset == nil || *r.Offset != 0 {
		t.Errorf("%+v %v", r, err)
	}
	if r, err := run[request](`{"from":"A"}`); err != nil || r.Offset != nil {
		t.Errorf("%+v %v", r, err)
	}
	if _, err := run[request](`{"from":"A","page":{}}`); err == nil || !strings.HasSuffix(err.Error(), " It takes from, offset, to.") {
		t.Error(err)
	}
}
