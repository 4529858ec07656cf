package question

import "testing"

// TestAsks checks which messages ask for an answer.
func TestAsks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		subject, body string
		ack, asks     bool
	}{
		{"Plan", "I rename the column.", false, false},
		{"Plan", "", false, false},
		{"", "", false, false},
		{"Plan", "I rename the column.", true, true},

		{"May I rename it?", "Tonight.", false, true},
		{"May I rename it? ", "Tonight.", false, true},
		{"Umbenennen？", "", false, true},
		{"Why? A plan", "Tonight.", false, false},
		{"Re: May I rename it?", "Done.", false, false},
		{"RE: May I rename it?", "Done.", false, false},
		{"Re: May I rename it?", "Which column?", false, true},
		{"Re", "Done.", false, false},
		{"Really?", "", false, true},

		{"Plan", "I rename the column.\n\nIs that all right?", false, true},
		{"Plan", "Is that all right?\n\nI start at six.", false, false},
		{"Plan", "Is that all right?\nI start at six.", false, false},
		{"Plan", "I start at six,\nis that all right?\r\n\r\n", false, true},
		{"Plan", "**Is that all right?**", false, true},
		{"Plan", "(Or is \"users\" better?)", false, true},
		{"Plan", "Is `WHERE x = ?`", false, true}, // inline code is not skipped
		{"Plan", "- one\n- or two?", false, true},

		{"Plan", "May I run this?\n\n```sql\nDROP TABLE users;\n```\n", false, true},
		{"Plan", "May I run this?\n\n~~~~\n~~~\nDROP TABLE users;\n~~~~\n", false, true},
		{"Plan", "I ran this.\n\n```\nwhat?\n```\n", false, false},
		{"Plan", "I ran this.\n\n```\nwhat?", false, false},
		{"Plan", "Which one?\n\n> I rename the column.\n> Tonight.\n", false, true},
		{"Plan", "No.\n\n> Is that all right?\n", false, false},
		{"Plan", "Which one?\n\nOn Friday, Ann wrote:\n> I rename the column.\n", false, true},
		{"Plan", "None.\n\nOn Friday, Ann wrote:\n\n> Is that all right?\n", false, false},
		{"Plan", "> Is that all right?", false, false},
		{"Plan", "Which one?\n-- \nAnn\nBackend", false, true},
		{"Plan", "None.\n-- \nWho is Ann?", false, false},
	} {
		if got := Asks(c.subject, c.body, c.ack); got != c.asks {
			t.Errorf("Asks(%q, %q, %v) = %v", c.subject, c.body, c.ack, got)
		}
	}
}
