package tool

import (
	"strings"
	"testing"
)

// TestMeant checks that meant finds the argument that an unknown name refers to, and returns nothing for a meaningless
// name.
func TestMeant(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ takes, given, want string }{
		{"mailbox id folder", "email_id", "id"},
		{"project_key from_agent to subject body_md cc? key? thread_id?", "text", "body_md"},
		{"project_key from_agent to subject body_md cc? key? thread_id?", "message", "body_md"},
		{"project_key from_agent to subject body_md cc? key? thread_id?", "body", "body_md"},
		{"project_key from_agent to subject body_md cc? key? thread_id?", "sender", "from_agent"},
		{"project_key from_agent to subject body_md cc? key? thread_id?", "agent_name", "from_agent"},
		{"project_key from_agent to subject body_md cc? key? thread_id?", "human_key", "project_key"},
		{"from_agent to subject body_md cc? key? thread_id?", "idempotency_key", "key"},
		{"project_key from_agent to subject body_md cc? key? thread_id?", "recipients", "to"},
		{"project_key from_agent to subject body_md cc? key? thread_id?", "bodymd", "body_md"},
		{"project_key from_agent to subject body_md cc? key? thread_id?", "threadId", "thread_id"},
		{"project_key from_agent to subject body_md cc? key? thread_id?", "temperature", ""},
		{"from_agent to subject body_md inline_max_bytes? thread_id?", "limit", ""},
		{"from_agent to subject body_md inline_max_bytes? thread_id?", "max_inline", "inline_max_bytes"},
		{"from_agent to subject body_md inline_max_bytes? thread_id?", "in_reply_to", ""},
		{"from_agent to subject body_md inline_max_bytes? thread_id?", "topic", "subject"},
		{"project_key agent_name", "thread_name", ""},
		{"project_key query", "keyword", "query"},
		{"project_key agent_name", "name", "agent_name"},
		{"project_key agent_name", "limit", ""},
		{"project_key agent_name paths reason", "files", "paths"},
		{"project_key from_agent reply_to_message_id body_md to", "message_id", "reply_to_message_id"},
		{"project_key from_agent reply_to_message_id body_md to", "in_reply_to", "reply_to_message_id"},
		{"project_key agent_name message_id", "body", ""},
		{"recipient message", "body", "message"},
		{"recipient message", "agent_name", "recipient"},
		{"name msg msg_id?", "to", "name"},
		{"name msg msg_id?", "agent", "name"},
		{"mailbox folder? limit? offset?", "name", "mailbox"},
	} {
		a := &args{}
		for name := range strings.FieldsSeq(tt.takes) {
			name, optional := strings.CutSuffix(name, "?")
			a.in = append(a.in, Arg{Name: name, Need: !optional})
		}
		if got := strings.Join(a.meant(tt.given), " "); got != tt.want {
			t.Errorf("%s, of %s: %q, want %q", tt.given, tt.takes, got, tt.want)
		}
	}
}
