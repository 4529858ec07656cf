package mail

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mailtree/maildir"
)

// surface is the table of Spec 7.1: every argument, the optional ones with ?.
const surface = `
create_agent project_key program model task_description name_hint?
whois project_key agent_name
list_agents project_key active_only?
send_message project_key from_agent to subject body_md cc? bcc? importance? ack_required? thread_id? convert_images? image_embed_policy? inline_max_bytes? attachments? key?
reply_message project_key from_agent reply_to_message_id body_md to? cc? bcc? importance? ack_required? key?
check_my_messages project_key agent_name since_ts? urgent_only? unread_only? include_bodies? limit? cursor? mark_read? wait_seconds?
acknowledge_message project_key agent_name message_id
claim_paths project_key agent_name paths? paths_list? ttl_seconds? exclusive? reason? dry_run?
release_claims project_key agent_name paths?
search_messages project_key query limit? cursor? order?
summarize_thread project_key thread_id include_examples?
install_precommit_guard project_key code_repo_path
uninstall_precommit_guard code_repo_path
`

func TestSurface(t *testing.T) {
	var b strings.Builder
	b.WriteString("\n")
	for _, tl := range tools() {
		b.WriteString(tl.name)
		for _, p := range tl.in {
			b.WriteString(" " + p.name)
			if !p.need {
				b.WriteString("?")
			}
		}
		b.WriteString("\n")
	}
	if diff := cmp.Diff(surface, b.String()); diff != "" {
		t.Error(diff)
	}
}

// TestDeclared looks at the tools as they stand on the wire.
func TestDeclared(t *testing.T) {
	for _, tl := range tools() {
		var wire struct {
			Title, Description        string
			Annotations               map[string]any
			InputSchema, OutputSchema map[string]any
		}
		data, err := json.Marshal(tl.declare(nil))
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(data, &wire); err != nil {
			t.Fatal(err)
		}
		hints := slices.Sorted(maps.Keys(wire.Annotations))
		if diff := cmp.Diff([]string{"destructiveHint", "idempotentHint", "openWorldHint", "readOnlyHint", "title"}, hints); diff != "" {
			t.Errorf("%s: annotations: %s", tl.name, diff)
		}
		if wire.Title == "" || strings.Count(wire.Description, ". ") > 0 || !strings.HasSuffix(wire.Description, ".") || len(wire.Description) > 170 {
			t.Errorf("%s: title %q, description %q: one short sentence, please", tl.name, wire.Title, wire.Description)
		}
		if wire.InputSchema["additionalProperties"] != false {
			t.Errorf("%s: the input schema is open", tl.name)
		}
		checkSchema(t, tl.name+" in", wire.InputSchema)
		checkSchema(t, tl.name+" out", wire.OutputSchema)
	}
}

// checkSchema holds a schema against what strict clients take: one type each, never null; items; known keys.
func checkSchema(t *testing.T, where string, s map[string]any) {
	t.Helper()
	typ, ok := s["type"].(string)
	if !ok || !slices.Contains([]string{"string", "boolean", "integer", "array", "object"}, typ) {
		t.Errorf("%s: type is %v", where, s["type"])
	}
	props, _ := s["properties"].(map[string]any)
	if (typ == "object") != (props != nil) || (typ == "array") != (s["items"] != nil) {
		t.Errorf("%s: %s with properties %v and items %v", where, typ, props, s["items"])
	}
	required, _ := s["required"].([]any)
	for _, r := range required {
		if props[r.(string)] == nil {
			t.Errorf("%s: requires %v, which it does not have", where, r)
		}
	}
	for name, p := range props {
		checkSchema(t, where+"."+name, p.(map[string]any))
	}
	if items, ok := s["items"].(map[string]any); ok {
		checkSchema(t, where+"[]", items)
	}
}

// TestShapes holds the answers, empty ones and full ones, against the output schemas.
func TestShapes(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	ts := New(Config{})
	body := "body"
	full := messageShape{"id", "th", "A", []string{"B"}, []string{}, []string{"C"}, "s", "t", "high", true, "re", true, "token", shapeAttachments([]maildir.Attachment{{Type: "file", Name: "n"}}), &body}
	claims := []maildir.ClaimRow{{Claim: maildir.Claim{Pattern: "a", Agent: "A", Exclusive: true, Reason: "r", Created: now, Expires: now}}}
	items := shapeItems([]maildir.SummaryItem{{Text: "t", MessageID: "m", From: "A", Owner: "B"}})
	profile := profileShape{"A", "p", "m", "t", "i", "l", "ready", "slug", "/p"}
	for name, values := range map[string][]any{
		"create_agent": {createdShape{profile, "note"}, createdShape{}},
		"whois":        {whoisShape{profile, 1, 2, shapeClaims(claims)}, whoisShape{Claims: shapeClaims(nil)}},
		"list_agents":  {directoryShape{"p", []listedShape{{profile, 3}}}, directoryShape{Agents: []listedShape{}}},
		"send_message": {sentShape{"id", "c", "t", "s", recipientsShape{[]string{"A"}, []string{"B"}, []string{"C"}}, full.Attachments, true, []string{"n"}},
			shapeSent(&maildir.Sent{}, nil)},
		"reply_message":       {shapeSent(&maildir.Sent{Again: true}, nil)},
		"check_my_messages":   {inboxShape{"p", "A", []deliveryShape{{full, "to", true, "r", true, "a"}}, 1, 2, "3"}, ts.shapeInboxOf(&maildir.InboxPage{})},
		"acknowledge_message": {ackShape{"id", true, "a", true, "r"}, ackShape{}},
		"claim_paths": {shapeClaimed(&maildir.ClaimResult{Granted: claims, Expires: now}),
			shapeClaimed(&maildir.ClaimResult{Conflicts: []maildir.ClaimConflict{{Pattern: "a", Held: claims[0]}}})},
		"release_claims":            {releasedShape{shapeClaims(claims), 1}, releasedShape{shapeClaims(nil), 0}},
		"search_messages":           {hitsShape{[]hitShape{{"id", "t", "A", []string{"B"}, "s", "c", "low", "sn"}}, "n", "note"}, shapeHits(&maildir.SearchPage{Hits: make([]maildir.Hit, 1)}), shapeHits(&maildir.SearchPage{})},
		"summarize_thread":          {summaryShape{"t", "s", []string{"A"}, 1, "f", "l", items, items, items, items, items, items, true}},
		"install_precommit_guard":   {doneShape{[]string{"s"}}},
		"uninstall_precommit_guard": {doneShape{[]string{}}},
	} {
		schema := schemaOf(t, name)
		for _, v := range append(values, refusal{"e", "c", []string{}}) {
			var got any
			if err := json.Unmarshal(encode(v), &got); err != nil {
				t.Fatal(err)
			}
			for _, problem := range unfit(name, schema, got) {
				t.Errorf("%s: %s", problem, encode(v))
			}
		}
	}
}

// shapeInboxOf shapes a page without a project.
func (t *Toolset) shapeInboxOf(page *maildir.InboxPage) inboxShape {
	return inboxShape{Messages: make([]deliveryShape, len(page.Messages)), Next: cursor(page.Next)}
}

func schemaOf(t *testing.T, name string) map[string]any {
	i := slices.IndexFunc(tools(), func(tl tool) bool { return tl.name == name })
	var s map[string]any
	if err := json.Unmarshal(outputSchema(tools()[i].out), &s); err != nil {
		t.Fatal(err)
	}
	return s
}

// unfit lists where a value is not as the schema says; what the schema does not name is unfit too.
func unfit(where string, s map[string]any, v any) (out []string) {
	types := map[string]string{"string": "string", "boolean": "bool", "integer": "float64", "array": "[]interface {}", "object": "map[string]interface {}"}
	if got := fmt.Sprintf("%T", v); types[s["type"].(string)] != got {
		return []string{fmt.Sprintf("%s is %s, not %s", where, got, s["type"])}
	}
	switch v := v.(type) {
	case []any:
		for _, x := range v {
			out = append(out, unfit(where+"[]", s["items"].(map[string]any), x)...)
		}
	case map[string]any:
		props := s["properties"].(map[string]any)
		for k, x := range v {
			p, ok := props[k].(map[string]any)
			if !ok {
				out = append(out, where+"."+k+" is not in the schema")
				continue
			}
			out = append(out, unfit(where+"."+k, p, x)...)
		}
		if !anyRequired(s, v) {
			out = append(out, where+" lacks what is required")
		}
	}
	return out
}

func anyRequired(s, v map[string]any) bool {
	choices, _ := s["anyOf"].([]any)
	for _, c := range append(choices, s) {
		if choices != nil && c.(map[string]any)["type"] != nil {
			continue // s itself, which has choices
		}
		required, _ := c.(map[string]any)["required"].([]any)
		if !slices.ContainsFunc(required, func(k any) bool { _, ok := v[k.(string)]; return !ok }) {
			return true
		}
	}
	return false
}
