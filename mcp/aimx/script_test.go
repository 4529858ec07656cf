package aimx_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mailtree/fixtures/storetest"
	"mailtree/maildir"
	"mailtree/maildir/format"
	"mailtree/mcp/aimx"
	"mailtree/mcp/mail"
	"mailtree/mcp/tool"
)

var update = flag.Bool("update", false, "record the tools' answers in fixtures/aimx")

func TestMain(m *testing.M) {
	if err := storetest.Isolate(os.Setenv); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// TestScripts runs the scripts in fixtures/aimx, in which each call is followed by its expected response.
//
//	# a comment
//	1000 mailbox_create {"name": "ann"}        uid, tool, arguments
//	= ann@mailtree.local                       the text of the response; after ! instead, a refusal with its code
//	~ {"address": "ann@mailtree.local"}        structuredContent, if it differs from the text
//	1000 read resource://attachment/SHA1       reads a resource: its text, or a refusal after !
//	mail send_message {…}                      a call to the mail toolset by an unnamed caller
//	write agents/ann/inbox/x.md TEXT           the user saves a file; \n is a line end
//
// Message ids are replaced by M1, M2, … in order of appearance, in calls too, and their short forms by S1, S2, …. Times
// are replaced by TIME, and the store's folder by STORE.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("../../fixtures/aimx/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("%v, %d files", err, len(files))
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := newDesk(t).play(string(data))
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			} else if diff := cmp.Diff(string(data), got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// desk is a store with the toolsets that the scripts call.
type desk struct {
	*storetest.Store
	t      testing.TB
	caller atomic.Pointer[tool.Caller]
	sets   map[string]*mcp.ClientSession
	ids    []string // message ids; M1 is the first
}

// storeUser is the uid of the store's user in these tests, regardless of the user who runs them.
const storeUser = 500

func newDesk(t testing.TB) *desk {
	d := &desk{t: t, sets: map[string]*mcp.ClientSession{}}
	d.Store = storetest.Open(t, storetest.Config{User: func() int { return storeUser }})
	cfg := tool.Config{Store: d.Store.Store}
	for name, server := range map[string]*mcp.Server{"aimx": aimx.New(cfg).Server(), "mail": mail.New(cfg).Server()} {
		server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
			return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
				return next(tool.WithCaller(ctx, *d.caller.Load()), method, req)
			}
		})
		d.caller.Store(&tool.Caller{})
		here, there := mcp.NewInMemoryTransports()
		if _, err := server.Connect(t.Context(), there, nil); err != nil {
			t.Fatal(err)
		}
		session, err := mcp.NewClient(&mcp.Implementation{Name: "test"}, nil).Connect(t.Context(), here, nil)
		if err != nil {
			t.Fatal(err)
		}
		d.sets[name] = session
	}
	return d
}

// play makes each call in a script and returns the script with the actual responses.
func (d *desk) play(script string) string {
	var out strings.Builder
	for line := range strings.Lines(script) {
		line = strings.TrimSuffix(line, "\n")
		who, rest, _ := strings.Cut(line, " ")
		if who == "=" || who == "!" || who == "~" {
			continue
		}
		out.WriteString(line + "\n")
		switch {
		case line == "" || who == "#":
		case who == "write":
			d.write(rest)
		default:
			name, args, _ := strings.Cut(rest, " ")
			if name == "read" {
				out.WriteString(d.read(who, args))
				continue
			}
			out.WriteString(d.call(who, name, args))
		}
	}
	return out.String()
}

// write saves a file the way an editor does, and waits until the file has been indexed.
func (d *desk) write(rest string) {
	path, text, _ := strings.Cut(rest, " ")
	p, err := d.Project(d.t.Context(), maildir.DefaultProject)
	if err != nil {
		d.t.Fatal(err)
	}
	file := filepath.Join(p.Dir(), path)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		d.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(d.real(text), `\n`, "\n")), 0o600); err != nil {
		d.t.Fatal(err)
	}
	if err := p.Rescan(d.t.Context()); err != nil {
		d.t.Fatal(err)
	}
}

func (d *desk) call(who, name, args string) string {
	res := d.request(who, name, d.real(args))
	text := res.Content[0].(*mcp.TextContent).Text
	structured, err := json.Marshal(res.StructuredContent)
	if err != nil {
		d.t.Fatal(err)
	}
	sign := "="
	if res.IsError {
		var r tool.Refusal
		if err := json.Unmarshal(structured, &r); err != nil || r.Error != text {
			d.t.Errorf("%s: refused with %q and %s", name, text, structured)
		}
		sign, text = "!", r.Code+" "+text
	}
	var b strings.Builder
	for l := range strings.Lines(d.plain(text)) {
		fmt.Fprintf(&b, "%s %s\n", sign, strings.TrimSuffix(l, "\n"))
	}
	if !res.IsError && !sameJSON(text, structured) {
		fmt.Fprintf(&b, "~ %s\n", d.plain(ordered(structured)))
	}
	return b.String()
}

// read reads a resource of the aimx toolset.
func (d *desk) read(who, uri string) string {
	d.become(who)
	res, err := d.sets["aimx"].ReadResource(d.t.Context(), &mcp.ReadResourceParams{URI: uri})
	if err != nil {
		return "! " + d.plain(err.Error()) + "\n"
	}
	c := res.Contents[0]
	return fmt.Sprintf("= %s %s%q %v\n", c.MIMEType, c.Text, c.Blob, map[string]any(c.Meta))
}

func (d *desk) request(who, name, args string) *mcp.CallToolResult {
	return d.ask(d.become(who), name, args)
}

// become sets the caller for the requests that follow, and returns the name of the toolset that the caller uses.
func (d *desk) become(who string) (set string) {
	set, c := "aimx", tool.Unknown()
	if who == "mail" {
		set = who
	} else {
		uid, err := strconv.Atoi(who)
		if err != nil {
			d.t.Fatalf("unknown user %q", who)
		}
		c = tool.Caller{Origin: format.Origin{Auth: tool.PeerAuth(uid)}, UID: uid, Root: uid == 0}
	}
	d.caller.Store(&c)
	return set
}

// ask calls a tool of the given toolset on behalf of d.caller.
func (d *desk) ask(set, name, args string) *mcp.CallToolResult {
	if args == "" {
		args = "{}"
	}
	res, err := d.sets[set].CallTool(d.t.Context(), &mcp.CallToolParams{Name: name, Arguments: json.RawMessage(args)})
	if err != nil {
		d.t.Fatalf("%s %s: %v", name, args, err)
	}
	return res
}

var (
	idPattern   = regexp.MustCompile(`msg_\d{8}_[0-9a-f]{16}`)
	namePattern = regexp.MustCompile(`\b[MS][1-9]\d*\b`)
	timePattern = regexp.MustCompile(`2\d{3}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z`)
	sealPattern = regexp.MustCompile(`"seal": "[0-9a-f]{16}:[A-Za-z0-9_-]{86}"`)
)

// plain replaces the parts of a response that differ between runs.
func (d *desk) plain(s string) string {
	s = idPattern.ReplaceAllStringFunc(s, func(id string) string {
		for i, known := range d.ids {
			if known == id {
				return "M" + strconv.Itoa(i+1)
			}
		}
		d.ids = append(d.ids, id)
		return "M" + strconv.Itoa(len(d.ids))
	})
	for i, id := range d.ids {
		s = strings.ReplaceAll(s, format.ShortID(id, time.Now()), "S"+strconv.Itoa(i+1))
	}
	s = timePattern.ReplaceAllString(s, "TIME")
	s = sealPattern.ReplaceAllString(s, `"seal": "SEAL"`)
	return strings.ReplaceAll(s, d.Root(), "STORE")
}

// real replaces M1, S1 and so on with the actual ids and their short forms.
func (d *desk) real(s string) string {
	return namePattern.ReplaceAllStringFunc(s, func(name string) string {
		n, _ := strconv.Atoi(name[1:])
		switch {
		case n > len(d.ids):
			return name
		case name[0] == 'S':
			return format.ShortID(d.ids[n-1], time.Now())
		}
		return d.ids[n-1]
	})
}

func sameJSON(text string, structured []byte) bool {
	var a, b any
	return json.Unmarshal([]byte(text), &a) == nil && json.Unmarshal(structured, &b) == nil && cmp.Equal(a, b)
}

// ordered returns an object with its keys sorted. It omits the content in a response of email_read, because the text
// already contains it.
func ordered(data []byte) string {
	var v map[string]any
	if err := json.Unmarshal(data, &v); err != nil {
		return string(data)
	}
	delete(v, "content")
	return string(tool.Encode(v))
}

// TestPrimer checks that the primer is the toolset's only resource and names every tool.
func TestPrimer(t *testing.T) {
	t.Parallel()
	client := newDesk(t).sets["aimx"]
	list, err := client.ListResources(t.Context(), nil)
	if err != nil || len(list.Resources) != 1 {
		t.Fatal(list, err)
	}
	res, err := client.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: list.Resources[0].URI})
	if err != nil || len(res.Contents) != 1 || int64(len(res.Contents[0].Text)) != list.Resources[0].Size {
		t.Fatal(res, err)
	}
	tools, err := client.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tl := range tools.Tools {
		if !strings.Contains(res.Contents[0].Text, "`"+tl.Name+"`") {
			t.Errorf("it does not mention %s", tl.Name)
		}
	}
}
