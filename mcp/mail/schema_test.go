package mail

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"mailtree/maildir"
	"mailtree/maildir/claim"
	"mailtree/maildir/format"
	"mailtree/maildir/index"
	"mailtree/maildir/summary"
	"mailtree/mcp/tool"
	"mailtree/mcp/tool/tooltest"
)

// surface lists the tools with all their arguments. A ? marks an optional argument.
const surface = `
create_agent project_key program model task_description name_hint?
whois project_key agent_name
list_agents project_key? active_only? all_projects? cursor?
check_my_messages project_key agent_name since_ts? urgent_only? unread_only? archived? include_bodies? message_id? thread_id? awaiting_ack? body_offset? limit? cursor? mark_read? wait_seconds?
send_message project_key from_agent to subject body_md cc? bcc? importance? ack_required? thread_id? convert_images? image_embed_policy? inline_max_bytes? attachments? text_only? html_body? key? wait_reply_seconds?
reply_message project_key from_agent reply_to_message_id body_md subject? to? cc? bcc? importance? ack_required? attachments? text_only? html_body? key? wait_reply_seconds?
acknowledge_message project_key agent_name message_id
claim_paths project_key agent_name paths ttl_seconds? exclusive? reason? dry_run?
release_claims project_key agent_name paths?
search_messages project_key query agent_name? include_bodies? limit? cursor? order?
summarize_thread project_key thread_id include_examples?
install_precommit_guard project_key code_repo_path
uninstall_precommit_guard code_repo_path
`

func TestSurface(t *testing.T) { tooltest.Surface(t, surface, New(tool.Config{}).tools()...) }

func TestDeclared(t *testing.T) { tooltest.Declared(t, New(tool.Config{}).tools()...) }

func TestWords(t *testing.T) { tooltest.Words(t, &words, New(tool.Config{}).tools()...) }

// TestResourcesNamed checks that the tools' descriptions tell a model which resources exist.
func TestResourcesNamed(t *testing.T) {
	t.Parallel()
	var said strings.Builder
	for _, tl := range New(tool.Config{}).tools() {
		said.WriteString(tl.About)
	}
	for _, uri := range []string{"inbox/{agent}", "message/{id}", "thread/{thread_id}", "claims/{project}"} {
		if !strings.Contains(said.String(), "resource://"+uri) {
			t.Errorf("no description mentions resource://%s", uri)
		}
	}
}

// TestWalkthroughCalls checks that the walkthrough's calls match the input schemas, because some clients validate
// calls. The walkthrough uses the argument name paths_list, which models do not see.
func TestWalkthroughCalls(t *testing.T) {
	t.Parallel()
	a, err := txtar.ParseFile("../../fixtures/scripts/walkthrough.txtar")
	if err != nil {
		t.Fatal(err)
	}
	all, seen := New(tool.Config{}).tools(), 0
	for _, f := range a.Files {
		var call struct {
			Params struct {
				Name      string
				Arguments json.RawMessage
			}
		}
		if json.Unmarshal(f.Data, &call) != nil || call.Params.Name == "" {
			continue
		}
		for _, tl := range all {
			if tl.Name == call.Params.Name {
				tooltest.Takes(t, tl, call.Params.Arguments)
				seen++
			}
		}
	}
	if seen != 3 {
		t.Errorf("found %d calls, want create_agent, claim_paths and send_message", seen)
	}
	published, err := json.Marshal(tool.Declare(all))
	if err != nil || strings.Contains(string(published), "paths_list") {
		t.Errorf("models see paths_list: %v", err)
	}
}

// TestShapes checks that both empty and populated responses match the output schemas.
func TestShapes(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	ts := New(tool.Config{})
	body := "body"
	whole := bodyShape{
		Body:       &body,
		Truncated:  true,
		BodyBytes:  2,
		NextOffset: 1,
	}
	at := format.At(now)
	marks := index.Marks{Read: true, ReadAt: at, Acked: true, AckedAt: at}
	full := Message{
		ID:          "id",
		ThreadID:    "th",
		From:        "A",
		To:          []string{"B"},
		CC:          []string{},
		BCC:         []string{"C"},
		Subject:     "s",
		Created:     "t",
		Importance:  "high",
		AckRequired: true,
		InReplyTo:   "re",
		References:  []string{"r"},
		MessageID:   "m@example.org",
		Date:        "t",
		ReplyTo:     []string{"a@example.org"},
		MediaType:   "text/plain",
		HTML:        "attachments/h",
		Verified:    true,
		Auth:        "token",
		Attachments: (&view{files: "/store"}).shapeAttachments([]format.Attachment{{Type: "file", Name: "n"}}),
		Omitted:     1,
		bodyShape:   whole,
		Receipts:    []index.Receipt{{Agent: "B", Kind: "to", Delivered: true, DeliveredAt: at, AnnouncedAt: at, Marks: marks}},
		MoreReceipt: 1,
	}
	claims := []claim.Row{{Claim: format.Claim{
		Pattern:   "a",
		Agent:     "A",
		Exclusive: true,
		Reason:    "r",
		Created:   now,
		Expires:   now,
	}}}
	items := []summary.Item{{Text: "t", MessageID: "m", From: "A", Owner: "B"}}
	profile := profileShape{
		Name:       "A",
		Program:    "p",
		Model:      "m",
		Task:       "t",
		Inception:  "i",
		LastActive: "l",
		Status:     "ready",
		Editing:    "a.go",
		Edited:     "e",
		Subject:    "s",
		Project:    "slug",
		HumanKey:   "/p",
	}
	for name, values := range map[string][]any{
		"create_agent": {createdShape{profile, "note"}, createdShape{}},
		"whois": {Whois{
			profileShape: profile,
			Machine:      "m",
			Wakeable:     "w",
			Unread:       1,
			Total:        2,
			Claims:       shapeClaims(claims),
			More:         1,
			Commit:       []string{"c"},
			Mail:         []heldShape{{"id", "A", full.Receipts[0]}},
		}, Whois{Claims: shapeClaims(nil), Commit: []string{}}},
		"list_agents": {Directory{"p", []Listed{{profile, "A@b", "m", "w", 3, shapeClaims(claims), 1}}, []string{"/p"}, "A", "note"}, Directory{Agents: []Listed{}}},
		"send_message": {Sent{
			ID:          "id",
			Created:     "c",
			ThreadID:    "t",
			Subject:     "s",
			Recipients:  recipientsShape{[]string{"A"}, []string{"B"}, []string{"C"}},
			Attachments: full.Attachments,
			AlreadySent: true,
			Queued:      []string{"p"},
			Notes:       []string{"n"},
			Reply:       &Delivery{full, "to", marks, true},
		},
			(&view{}).shapeSent(&maildir.Sent{})},
		"reply_message": {(&view{}).shapeSent(&maildir.Sent{Again: true})},
		"check_my_messages": {Inbox{
			Project:  "p",
			Agent:    "A",
			Messages: []Delivery{{full, "to", marks, true}},
			Unread:   1,
			Total:    2,
			Archived: 1,
			Next:     "3",
		}, ts.shapeInboxOf(&maildir.InboxPage{})},
		"acknowledge_message": {Acked{"id", marks, "note"}, Acked{}},
		"claim_paths": {shapeClaimed(&claim.Result{Granted: claims, Matches: map[string]int{claims[0].Pattern: 1}, Expires: now}),
			shapeClaimed(&claim.Result{Conflicts: []claim.Conflict{{Pattern: "a", Held: claims[0]}}, More: 1})},
		"release_claims": {
			Released{Released: shapeClaims(claims), Count: 1, NotHeld: []string{"a"}, Held: []string{"b"}},
			Released{Released: shapeClaims(nil)},
		},
		"search_messages": {Hits{[]Hit{{"id", "t", "A", []string{"B"}, "s", "c", "low", "token", "sn", whole}}, "n", 1, "note"}, Hits{Hits: []Hit{{To: []string{}}}}, ts.shapeHits(&maildir.SearchPage{}, "")},
		"summarize_thread": {ThreadSummary{Summary: summary.Summary{
			Thread:       "t",
			Subject:      "s",
			Participants: []string{"A"},
			Messages:     1,
			First:        at,
			Last:         at,
			KeyPoints:    items,
			Decisions:    items,
			OpenActions:  items,
			DoneActions:  items,
			Questions:    items,
			Code:         []string{"c"},
			Examples:     items,
			Text:         "x",
		}, Note: "n", Truncated: true}},
		"install_precommit_guard":   {doneShape{[]string{"s"}, "note"}},
		"uninstall_precommit_guard": {shapeDone(nil, "")},
	} {
		i := slices.IndexFunc(ts.tools(), func(tl tool.Tool) bool { return tl.Name == name })
		tooltest.Fits(t, ts.tools()[i], values...)
	}
}

// TestNewest checks that the newest ids are kept if not all ids fit in a response, because there are too many of them
// or they are too long.
func TestNewest(t *testing.T) {
	long := strings.Repeat("x", maxReferenceBytes/2-3) // each id, with its quotes and comma, is half as long as the limit
	for _, tt := range []struct {
		ids  []string
		kept int
	}{
		{nil, 0},
		{[]string{"a", "b"}, 2},
		{[]string{"a", long, long}, 2},
		{[]string{"a", long, long + "x"}, 1},
		{[]string{"a", strings.Repeat("x", maxReferenceBytes)}, 0},
	} {
		if got := newest(tt.ids); !slices.Equal(got, tt.ids[len(tt.ids)-tt.kept:]) {
			t.Errorf("%d ids are reduced to %d, want the last %d", len(tt.ids), len(got), tt.kept)
		}
	}
}

// shapeInboxOf returns the response for a page of an inbox, with zero values instead of the messages and the project.
func (t *Toolset) shapeInboxOf(page *maildir.InboxPage) Inbox {
	return Inbox{Messages: make([]Delivery, len(page.Messages)), Next: cursor(page.Next)}
}
