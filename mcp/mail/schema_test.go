package mail

import (
	"slices"
	"testing"
	"time"

	"mailtree/maildir"
	"mailtree/maildir/claim"
	"mailtree/maildir/format"
	"mailtree/mcp/tool"
	"mailtree/mcp/tool/tooltest"
)

// surface is the table of Spec 7.1: every argument, the optional ones with ?.
const surface = `
create_agent project_key program model task_description name_hint?
whois project_key agent_name
list_agents project_key active_only? cursor?
send_message project_key from_agent to subject body_md cc? bcc? importance? ack_required? thread_id? convert_images? image_embed_policy? inline_max_bytes? attachments? key?
reply_message project_key from_agent reply_to_message_id body_md to? cc? bcc? importance? ack_required? key?
check_my_messages project_key agent_name since_ts? urgent_only? unread_only? include_bodies? message_id? body_offset? limit? cursor? mark_read? wait_seconds?
acknowledge_message project_key agent_name message_id
claim_paths project_key agent_name paths? paths_list? ttl_seconds? exclusive? reason? dry_run?
release_claims project_key agent_name paths?
search_messages project_key query limit? cursor? order?
summarize_thread project_key thread_id include_examples?
install_precommit_guard project_key code_repo_path
uninstall_precommit_guard code_repo_path
`

func TestSurface(t *testing.T) { tooltest.Surface(t, surface, New(tool.Config{}).tools()...) }

func TestDeclared(t *testing.T) { tooltest.Declared(t, New(tool.Config{}).tools()...) }

// TestShapes holds the answers, empty ones and full ones, against the output schemas.
func TestShapes(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	ts := New(tool.Config{})
	body := "body"
	full := messageShape{"id", "th", "A", []string{"B"}, []string{}, []string{"C"}, "s", "t", "high", true, "re", true, "token", shapeAttachments([]format.Attachment{{Type: "file", Name: "n"}}), 1, &body, true, 2, 1}
	claims := []claim.Row{{Claim: format.Claim{Pattern: "a", Agent: "A", Exclusive: true, Reason: "r", Created: now, Expires: now}}}
	items := shapeItems([]maildir.SummaryItem{{Text: "t", MessageID: "m", From: "A", Owner: "B"}})
	profile := profileShape{"A", "p", "m", "t", "i", "l", "ready", "slug", "/p"}
	for name, values := range map[string][]any{
		"create_agent": {createdShape{profile, "note"}, createdShape{}},
		"whois":        {whoisShape{profile, 1, 2, shapeClaims(claims), 1}, whoisShape{Claims: shapeClaims(nil)}},
		"list_agents":  {directoryShape{"p", []listedShape{{profile, 3}}, "A"}, directoryShape{Agents: []listedShape{}}},
		"send_message": {sentShape{"id", "c", "t", "s", recipientsShape{[]string{"A"}, []string{"B"}, []string{"C"}}, full.Attachments, true, []string{"n"}},
			shapeSent(&maildir.Sent{}, nil)},
		"reply_message":       {shapeSent(&maildir.Sent{Again: true}, nil)},
		"check_my_messages":   {inboxShape{"p", "A", []deliveryShape{{full, "to", true, "r", true, "a"}}, 1, 2, "3"}, ts.shapeInboxOf(&maildir.InboxPage{})},
		"acknowledge_message": {ackShape{"id", true, "a", true, "r"}, ackShape{}},
		"claim_paths": {shapeClaimed(&claim.Result{Granted: claims, Expires: now}),
			shapeClaimed(&claim.Result{Conflicts: []claim.Conflict{{Pattern: "a", Held: claims[0]}}, More: 1})},
		"release_claims":            {releasedShape{shapeClaims(claims), 1}, releasedShape{shapeClaims(nil), 0}},
		"search_messages":           {hitsShape{[]hitShape{{"id", "t", "A", []string{"B"}, "s", "c", "low", "sn"}}, "n", "note"}, shapeHits(&maildir.SearchPage{Hits: make([]maildir.Hit, 1)}), shapeHits(&maildir.SearchPage{})},
		"summarize_thread":          {summaryShape{"t", "s", []string{"A"}, 1, "f", "l", items, items, items, items, items, items, true}},
		"install_precommit_guard":   {doneShape{[]string{"s"}}},
		"uninstall_precommit_guard": {doneShape{[]string{}}},
	} {
		i := slices.IndexFunc(ts.tools(), func(tl tool.Tool) bool { return tl.Name == name })
		tooltest.Fits(t, ts.tools()[i], values...)
	}
}

// shapeInboxOf shapes a page without a project.
func (t *Toolset) shapeInboxOf(page *maildir.InboxPage) inboxShape {
	return inboxShape{Messages: make([]deliveryShape, len(page.Messages)), Next: cursor(page.Next)}
}
