package indexer

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mailtree/maildir/format"
	"mailtree/maildir/index"
)

// TestAsked checks that Asked lists the messages that ask for an answer, each with the time at which another agent
// answered it or the last recipient acknowledged it. The author's own messages, and messages by agents that were not
// asked and do not reply, must be ignored. Acknowledgments by the
// author and by bcc recipients must not be required.
func TestAsked(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	at := func(seconds int) time.Time { return testStart.Add(time.Duration(seconds) * time.Second) }
	ask := func(id, subject string, seconds int, m format.Message) {
		m.ID, m.From, m.Subject, m.Created = id, "Ann", subject, at(seconds)
		if len(m.To) == 0 {
			m.To = []string{"Bob"}
		}
		d.send(m)
	}
	ask("q0", "Long ago?", -100, format.Message{})
	ask("q1", "Answered?", 1, format.Message{})
	d.send(format.Message{ID: "r1", From: "Bob", To: []string{"Ann"}, Subject: "Re: Answered?", Body: "Yes.", ThreadID: "q1", Created: at(2)})
	ask("q2", "Acknowledged", 3, format.Message{To: []string{"Bob", "Cid"}, AckRequired: true})
	ask("q3", "Half acknowledged", 4, format.Message{To: []string{"Bob", "Cid"}, AckRequired: true})
	ask("q4", "Open?", 5, format.Message{})
	ask("r4", "Re: Open?", 6, format.Message{ThreadID: "q4", Body: "I only say it again."})
	d.send(format.Message{ID: "s4", From: "Cid", To: []string{"Ann"}, Subject: "Re: Open?", Body: "By the way.", ThreadID: "q4", Created: at(6)})
	ask("q5", "With blind copies", 7, format.Message{To: []string{"Bob", "Ann"}, BCC: []string{"Cid"}, AckRequired: true})
	ask("q8", "Answered by a bystander?", 9, format.Message{})
	d.send(format.Message{
		ID: "r8", From: "Cid", To: []string{"Ann"}, Subject: "Re: Answered by a bystander?", Body: "Yes.", ThreadID: "q8", InReplyTo: "q8",
		Created: at(10),
	})
	ask("n6", "News", 8, format.Message{Body: "No question."})
	marks := map[string]string{
		"agents/Bob/inbox/q2.ack": "2025-10-24T00:00:00Z\n", "agents/Cid/inbox/q2.ack": "2025-10-25T00:00:00Z\n",
		"agents/Bob/inbox/q3.ack": "2025-10-24T00:00:00Z\n", "agents/Bob/inbox/q5.ack": "2025-10-26T00:00:00Z\n",
	}
	for path, text := range marks {
		putFile(t, d.dir, path, text)
		ingest(t, d.Index, "p", path)
	}
	list := func(limit int) (lines []string) {
		all, err := d.Asked(t.Context(), "p", testStart, limit)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range all {
			line := a.ID + " " + a.Thread + " " + a.From + " " + a.Subject
			if !a.Settled.IsZero() {
				line += " " + a.Settled.Format(time.RFC3339)
			}
			lines = append(lines, line)
		}
		return lines
	}
	want := []string{
		"q8 q8 Ann Answered by a bystander? 2025-10-23T15:00:10Z",
		"q5 q5 Ann With blind copies 2025-10-26T00:00:00Z",
		"q4 q4 Ann Open?",
		"q3 q3 Ann Half acknowledged",
		"q2 q2 Ann Acknowledged 2025-10-25T00:00:00Z",
		"q1 q1 Ann Answered? 2025-10-23T15:00:02Z",
	}
	if diff := cmp.Diff(want, list(9)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(want[:2], list(2)); diff != "" {
		t.Error(diff)
	}
}

// TestActs checks that Acts lists when an agent wrote, read or acknowledged messages, newest first.
func TestActs(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for i, id := range []string{"m1", "m2", "m3"} {
		d.send(format.Message{ID: id, From: "Ann", To: []string{"Bob"}, Subject: "s", Created: testStart.Add(time.Duration(i) * time.Hour)})
	}
	d.send(format.Message{ID: "m4", From: "Bob", To: []string{"Ann"}, Subject: "s", Created: testStart.Add(5 * time.Hour)})
	for path, text := range map[string]string{
		"agents/Bob/inbox/m1.read": "2025-10-23T18:00:00Z\n", "agents/Bob/inbox/m2.ack": "2025-10-23T21:00:00Z\n",
		"agents/Ann/inbox/m4.read": "2025-10-24T00:00:00Z\n",
	} {
		putFile(t, d.dir, path, text)
		ingest(t, d.Index, "p", path)
	}
	acts := func(agent string, limit int) string {
		all, err := d.Acts(t.Context(), "p", agent, limit)
		if err != nil {
			t.Fatal(err)
		}
		var hours []string
		for _, at := range slices.Compact(all) { // an acknowledgment also marks the message as read
			hours = append(hours, at.Format("02T15"))
		}
		return strings.Join(hours, " ")
	}
	for _, c := range []struct {
		agent string
		limit int
		want  string
	}{{"Bob", 9, "23T21 23T20 23T18"}, {"Bob", 1, "23T21"}, {"Ann", 9, "24T00 23T17 23T16 23T15"}, {"Nobody", 9, ""}} {
		if got := acts(c.agent, c.limit); got != c.want {
			t.Errorf("%s, %d: %q, want %q", c.agent, c.limit, got, c.want)
		}
	}
}

// TestSearchUnread checks that is:unread limits each kind of search to the agent's unread mail, and that has:file finds
// attachments.
func TestSearchUnread(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	file := []format.Attachment{{Type: "file", Path: "attachments/aa/a.txt"}}
	d.send(format.Message{ID: "m1", From: "Ann", To: []string{"Bob", "Cid"}, Subject: "Plan", Body: "zebra", Created: testStart})
	d.send(format.Message{ID: "m2", From: "Ann", To: []string{"Bob"}, Subject: "Plan", Body: "zebra", Attachments: file,
		Created: testStart.Add(time.Second)})
	d.send(format.Message{ID: "m3", From: "Bob", To: []string{"Ann"}, Subject: "Re: Plan", Body: "zebra", ThreadID: "m1",
		Created: testStart.Add(2 * time.Second)})
	putFile(t, d.dir, "agents/Bob/inbox/m2.read", "2025-10-24T00:00:00Z\n")
	ingest(t, d.Index, "p", "agents/Bob/inbox/m2.read")
	for _, c := range []struct{ agent, query, want string }{
		{"Bob", "is:unread", "m1"},
		{"Bob", "is:unread zebra", "m1"},
		{"Bob", "is:unread has:file", ""},
		{"Cid", "is:unread zebra", "m1"},
		{"Ann", "is:unread zeb*", "m3"},
		{"Nobody", "is:unread", ""},
		{"Bob", "has:file", "m2"},
		{"Bob", "zebra -has:file", "m3 m1"},
		{"Bob", "has:file OR from:Bob", "m3 m2"},
		{"Bob", "zebra is:unread before:2025-10-23T15:00:00Z", ""},
	} {
		for _, rank := range []bool{false, true} {
			q := asked(t, c.query)
			q.Agent, q.Rank = c.agent, rank
			got := strings.Fields(d.found(q))
			slices.Sort(got)
			slices.Reverse(got)
			if s := strings.Join(got, " "); s != c.want {
				t.Errorf("%s of %s (ranked: %v): %q, want %q", c.query, c.agent, rank, s, c.want)
			}
			n, err := d.CountMatches(t.Context(), q, 9)
			if err != nil || n != len(got) && q.Before.IsZero() {
				t.Errorf("%s of %s: %d matches, %v", c.query, c.agent, n, err)
			}
		}
		found, err := d.Threads(t.Context(), index.ThreadsQuery{Query: asked(t, c.query).Query, Project: "p", Agent: c.agent})
		if err != nil || (len(found.Threads) == 0) != (c.want == "") {
			t.Errorf("%s of %s: threads %v, %v", c.query, c.agent, found.Threads, err)
		}
	}
}
