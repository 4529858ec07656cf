package page_test

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"mailtree/fixtures/storetest"
	"mailtree/maildir"
	"mailtree/maildir/format"
	"mailtree/maildir/history"
	"mailtree/maildir/index"
	"mailtree/maildir/outgoing"
	"mailtree/maildir/seat"
	"mailtree/page"
)

// press submits a form in a view, with the given fields changed, and follows the redirect.
func (b *browser) press(view, action string, fields ...string) string {
	b.Helper()
	form := b.form(view)
	for i := 0; i < len(fields); i += 2 {
		form.Set(fields[i], fields[i+1])
	}
	res, text := b.post(action, form)
	if res.StatusCode != http.StatusSeeOther {
		b.Fatalf("POST %s: %s\n%s", action, res.Status, text)
	}
	to, _, _ := strings.Cut(res.Header.Get("Location"), "#")
	return b.see(to)
}

// TestUndo checks that users can undo an operation both from the notice that follows it and from the message's
// history.
func TestUndo(t *testing.T) {
	t.Parallel()
	s := open(t, page.Config{})
	b := s.person()
	asked := s.send("Ann", maildir.Draft{To: []string{"pat"}, Subject: "Which index?", Body: "a?"})
	thread, message := s.base+"/thread/"+asked.ID, s.base+"/message/"+asked.ID

	contains(t, b.press(thread, message+"/mark", "as", "archived"), "Archived: <bdi>Which index?</bdi></p>", "Undo <kbd>", "Nothing needs you.")
	contains(t, b.see(s.base+"/inbox?archived=1"), "Which index?")
	history := b.see(message + "/history")
	contains(t, history, "archived it", "sent it", "Undo your last action", "a?\n</span>")
	contains(t, b.press(message+"/history", message+"/undo"), "Undone: <bdi>Which index?</bdi></p>")
	if d, err := s.p.Box("pat", format.Origin{}).Delivery(t.Context(), asked.ID); err != nil || d.Archived || d.Read {
		t.Errorf("after the undo: %+v, %v", d, err)
	}
	if text := b.see(message + "/history"); strings.Contains(text, "Undo your last action") {
		t.Errorf("an undone action can be undone:\n%s", text)
	}

	text := b.press(s.base+"/compose", s.base+"/send", "to", "Bob", "subject", "Plan", "body", "b")
	contains(t, text, "Sent to Bob.", "Undo <kbd>")
	inbox, err := s.p.Box("Bob", format.Origin{}).Inbox(t.Context(), index.InboxQuery{}, true, maildir.Waiting{})
	if err != nil || len(inbox.Messages) != 1 {
		t.Fatalf("Bob has %+v, %v", inbox, err)
	}
	plan := inbox.Messages[0].ID
	text = b.press(s.base+"/thread/"+plan, s.base+"/message/"+plan+"/mark", "as", "deleted")
	contains(t, text, "Deleted for everyone.", "Bob</bdi> had read it.", "Undo <kbd>")
	contains(t, b.see(s.base+"/message/"+plan+"/history"), "deleted it for everyone", "The message no longer exists.")
	contains(t, b.press(s.base+"/compose", s.base+"/message/"+plan+"/undo"), "Undone: <bdi>Plan</bdi>.")
	contains(t, b.press(s.base+"/compose", s.base+"/message/"+plan+"/undo"), "Undone: <bdi>Plan</bdi>.", "Bob</bdi> had read it and has been notified.")
	if _, err := s.p.Message(t.Context(), plan); !errors.Is(err, maildir.ErrNotFound) {
		t.Errorf("the message still exists: %v", err)
	}
}

// TestOtherProject checks that the form suggests the addresses of another project's agents only to a signed-in user.
// A message must reach that project, and undoing it must list the agents there that had read it.
func TestOtherProject(t *testing.T) {
	t.Parallel()
	s := open(t, page.Config{})
	front, err := s.store.EnsureProject(t.Context(), "/code/front")
	if err != nil {
		t.Fatal(err)
	}
	if err := front.Agents.EnsureAgent(t.Context(), "Xia", maildir.Registration{Program: "test"}); err != nil {
		t.Fatal(err)
	}
	b := s.person()
	contains(t, b.see(s.base+"/compose"), `<option value="Bob">`, `<option value="Xia@front">`)
	text := b.press(s.base+"/compose", s.base+"/send", "to", "Xia", "subject", "Plan", "body", "b")
	contains(t, text, "Sent to Xia@"+front.Slug+".", "Undo <kbd>")
	if strings.Contains(text, "queued") {
		t.Error("the message is said to wait")
	}
	inbox, err := front.Box("Xia", format.Origin{}).Inbox(t.Context(), index.InboxQuery{}, true, maildir.Waiting{})
	if err != nil || len(inbox.Messages) != 1 || inbox.Messages[0].From != "pat@"+s.p.Slug {
		t.Fatalf("Xia has %+v, %v", inbox, err)
	}
	id := inbox.Messages[0].ID
	contains(t, b.see("/p/"+front.Slug+"/message/"+id+"/history"), "delivered it from another project")
	contains(t, b.press(s.base+"/message/"+id+"/history", s.base+"/message/"+id+"/undo"), "Xia@"+front.Slug+"</bdi> had read it and has been notified.")
}

// TestUndoRelease checks that users can undo the release of their own claims, and that doing so does not undo any later
// operation.
func TestUndoRelease(t *testing.T) {
	t.Parallel()
	s := open(t, page.Config{})
	b := s.person()
	b.press(s.base+"/compose", s.base+"/send", "to", "Bob", "subject", "Plan", "body", "b") // makes pat an agent
	if _, err := s.p.Box(claimOf("pat", "app/api/*.py").Agent, format.Origin{}).Claim(t.Context(), claimOf("pat", "app/api/*.py")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.p.Box("pat", format.Origin{}).Undo(t.Context(), maildir.Undoing{Verb: history.VerbRelease}); !errors.Is(err, maildir.ErrNotFound) {
		t.Errorf("pat has released nothing: %v", err)
	}
	contains(t, b.press(s.base+"/claims", s.base+"/claims/release"), "Released.", `claims/undo"`, "No claims or recent edits.", "Ended", "released")
	s.send("pat", maildir.Draft{To: []string{"Bob"}, Subject: "Later", Body: "b"})
	contains(t, b.press(s.base+"/compose", s.base+"/claims/undo"), "Undone.", "app/api/*.py")
	contains(t, b.see(s.base+"/threads"), "Later")
}

// TestHistoryUndo checks that the history shows operations on the page with the channel "page", and that a message
// that was sent by saving a file can be undone.
func TestHistoryUndo(t *testing.T) {
	t.Parallel()
	s := open(t, page.Config{})
	b := s.person()
	b.press(s.base+"/compose", s.base+"/send", "to", "Bob", "subject", "Plan", "body", "b") // makes pat an agent
	saved, err := s.p.Box("pat", format.Origin{}).Send(format.Through(t.Context(), format.DoorFile), maildir.Draft{To: []string{"Bob"}, Body: "b"})
	if err != nil {
		t.Fatal(err)
	}
	message := s.base + "/message/" + saved.ID
	contains(t, b.see(message+"/history"), "via file", "Undo your last action")
	b.press(message+"/history", message+"/undo")
	contains(t, b.see(message+"/history"), "via page", "undid: sent it")
}

// TestHistoryOpen checks that without a session, the history does not show bcc recipients.
func TestHistoryOpen(t *testing.T) {
	t.Parallel()
	s := open(t, page.Config{Person: "pat"})
	sent := s.send("Ann", maildir.Draft{To: []string{"pat"}, BCC: []string{"Bob"}, Subject: "s", Body: "b"})
	if _, err := s.p.Box("Bob", format.Origin{}).Acknowledge(t.Context(), sent.ID); err != nil {
		t.Fatal(err)
	}
	activity := s.base + "/activity?agent=Bob"
	contains(t, s.person().see(activity), "acknowledged")
	if text := s.browser().see(activity); strings.Contains(text, "acknowledged") {
		t.Errorf("without a session:\n%s", text)
	}
	history := s.base + "/message/" + sent.ID + "/history"
	contains(t, s.person().see(history), "agents/Bob/inbox")
	_, text, _ := strings.Cut(s.browser().see(history), "<main") // the rail lists all agents
	if !strings.Contains(text, "agents/pat/inbox") || strings.Contains(text, "Bob") {
		t.Errorf("without a session:\n%s", text)
	}
}

// TestOnce checks that a second click has no effect, even while the first click is being handled. A changed form must
// be treated as a new form.
func TestOnce(t *testing.T) {
	t.Parallel()
	s := open(t, page.Config{})
	b := s.person()
	asked := s.send("Ann", maildir.Draft{To: []string{"pat"}, Subject: "s", Body: "b"})
	for _, as := range []string{"read", "archived"} {
		b.press(s.base+"/thread/"+asked.ID, s.base+"/message/"+asked.ID+"/mark", "as", as)
	}
	form := b.form(s.base + "/compose")
	var to [3]string
	var all sync.WaitGroup
	for i := range to {
		all.Go(func() {
			res, _ := b.post(s.base+"/message/"+asked.ID+"/undo", url.Values{"key": form["key"], "csrf": form["csrf"]})
			to[i] = res.Status + res.Header.Get("Location")
		})
	}
	all.Wait()
	if to[0] != to[1] || to[1] != to[2] {
		t.Errorf("the responses are %q", to)
	}
	if d, err := s.p.Box("pat", format.Origin{}).Delivery(t.Context(), asked.ID); err != nil || d.Archived || !d.Read {
		t.Errorf("three clicks undid: %+v, %v", d, err)
	}
	form.Set("to", "Bob")
	form.Set("body", "b")
	for _, subject := range []string{"one", "two"} {
		form.Set("subject", subject)
		res, text := b.post(s.base+"/send", form)
		if want := map[string]int{"one": http.StatusSeeOther, "two": http.StatusConflict}[subject]; res.StatusCode != want {
			t.Errorf("%s: %s\n%s", subject, res.Status, text)
		}
	}
}

// TestUndoBCC checks that the form with an undone message lists the recipients of blind copies.
func TestUndoBCC(t *testing.T) {
	t.Parallel()
	s := open(t, page.Config{})
	b := s.person()
	sent := s.send("pat", maildir.Draft{To: []string{"Bob"}, BCC: []string{"Ann"}, Subject: "Plan", Body: "b"})
	contains(t, b.press(s.base+"/compose", s.base+"/message/"+sent.ID+"/undo"), "Undone: <bdi>Plan</bdi>.", "This form cannot send blind copies, so it omits the bcc recipients: Ann.")
}

// TestGoneOutside checks that an undo says which recipients at other domains still have the message.
func TestGoneOutside(t *testing.T) {
	t.Parallel()
	s := bareStore(t, page.Config{}, storetest.Config{
		NoWatcher: true,
		Domains:   []string{"mail.example.net"},
		Outside:   maildir.Outside{Allow: []string{"example.org"}},
	})
	if err := s.p.Agents.EnsureAgent(t.Context(), "pat", maildir.Registration{Program: "test"}); err != nil {
		t.Fatal(err)
	}
	sent := s.send("pat", maildir.Draft{To: []string{"cat@example.org"}, Subject: "Plan", Body: "b"})
	item, err := s.p.Outgoing().Get(outgoing.ID(sent.ID, "cat@example.org"))
	if err != nil || item == nil {
		t.Fatalf("%v %v", item, err)
	}
	item.State = outgoing.Sent
	if err := s.p.Outgoing().Save(item); err != nil {
		t.Fatal(err)
	}
	contains(t, s.person().press(s.base+"/compose", s.base+"/message/"+sent.ID+"/undo"), "Undone: <bdi>Plan</bdi>.",
		"It was already sent to <bdi>cat@example.org</bdi> and cannot be recalled there.")
}

// TestForgedOutcome checks that a link created by someone else cannot make a view say that something was done.
func TestForgedOutcome(t *testing.T) {
	t.Parallel()
	s := open(t, page.Config{})
	b := s.person()
	sent := s.send("pat", maildir.Draft{To: []string{"Bob"}, Subject: "Plan", Body: "b"})
	form := b.form(s.base + "/thread/" + sent.ID)
	form.Set("as", "deleted")
	res, _ := b.post(s.base+"/message/"+sent.ID+"/mark", form)
	to := res.Header.Get("Location")
	contains(t, b.see(to), "Deleted for everyone.")
	for _, forged := range []string{
		s.base + "/?did=deleted&of=" + sent.ID + "&readers=Ann",
		to + "&readers=Ann",
		strings.Replace(to, "did=deleted", "did=archived", 1),
	} {
		if text := b.see(forged); strings.Contains(text, `class="done"`) {
			t.Errorf("%s says what was done:\n%s", forged, text)
		}
	}
}

// TestUndoShort checks that the URL of an undo may contain an abbreviated message id.
func TestUndoShort(t *testing.T) {
	t.Parallel()
	s := open(t, page.Config{})
	b := s.person()
	sent := s.send("pat", maildir.Draft{To: []string{"Bob"}, Subject: "Plan", Body: "b"})
	contains(t, b.press(s.base+"/compose", s.base+"/message/"+sent.ID[:len(sent.ID)-4]+"/undo"), "Undone: <bdi>Plan</bdi>.", `value="Plan"`)
}

// TestOncePanic checks that a form can be sent again after its handler has panicked.
func TestOncePanic(t *testing.T) {
	t.Parallel()
	tries := 0
	s := open(t, page.Config{Nudge: func(_ context.Context, _, _ string, told func(how, why string)) error {
		if tries++; tries == 1 {
			panic(http.ErrAbortHandler)
		}
		told("", "its window is in use")
		return nil
	}})
	s.nudgeable()
	b := s.person()
	form := b.form(s.base + "/agents")
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+s.base+"/agents/Bob/nudge", strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.AddCookie(b.cookies[0])
	if res, err := http.DefaultClient.Do(r); err == nil {
		res.Body.Close()
		t.Fatalf("the response to the first try: %s", res.Status)
	}
	if res, text := b.post(s.base+"/agents/Bob/nudge", form); res.StatusCode != http.StatusSeeOther || tries != 2 {
		t.Errorf("%d tries, the second: %s\n%s", tries, res.Status, text)
	}
}

// TestNudge checks that the Now view shows how each agent can be woken and how its last wake went. A nudge must wake an
// agent and report the result, and a forged link must not be able to make the view show such a report.
func TestNudge(t *testing.T) {
	t.Parallel()
	nudged, c := "", &clock{now: time.Now()}
	s := open(t, page.Config{Now: c.time, Nudge: func(_ context.Context, _, agent string, told func(how, why string)) error {
		if agent == "Bob" {
			nudged += agent
			told("", "its window is in use")
		}
		return nil
	}})
	k := maildir.SessionKey{Client: "gemini", ID: "1"}
	if _, err := s.p.Sessions.Begin(t.Context(), maildir.SessionEvent{SessionKey: k, Dir: "/code/backend", Agent: "Bob", Pane: maildir.Pane{Tmux: "/tmp/x,1,1", Pane: "%1"}}); err != nil {
		t.Fatal(err)
	}
	sent := s.send("Ann", maildir.Draft{To: []string{"Bob"}, Subject: "s", Body: "b"})
	s.p.Sessions.NoteWake(k, seat.Wake{Outcome: seat.Nobody, Why: "its window is busy"})
	b := s.person()
	contains(t, b.see(s.base+"/agents"), "gemini, woken in tmux", "nobody to wake: its window is busy",
		`title="oldest from `, "Nudge</button>")
	contains(t, b.words(s.base+"/agents", `<li id="Bob">`, "</div>"), "1 unread now")
	if text := s.browser().see(s.base + "/agents"); strings.Contains(text, "Nudge") {
		t.Errorf("without a session:\n%s", text)
	}
	contains(t, b.press(s.base+"/agents", s.base+"/agents/Bob/nudge"), "Bob was not woken: its window is in use.")
	if nudged != "Bob" {
		t.Errorf("%q was woken", nudged)
	}
	outside := maildir.SessionEvent{SessionKey: maildir.SessionKey{Client: "gemini", ID: "2"}, Dir: "/code/backend", Agent: "Dan"}
	if _, err := s.p.Sessions.Begin(t.Context(), outside); err != nil { // this session is not in a window
		t.Fatal(err)
	}
	const nobody = "none of its sessions can be woken"
	for agent, why := range map[string]string{"Ann": "it has no unread mail", "Cat": nobody, "Dan": nobody} {
		if err := s.p.Agents.EnsureAgent(t.Context(), agent, maildir.Registration{Program: "test"}); err != nil {
			t.Fatal(err)
		}
		if why == nobody {
			s.send("Ann", maildir.Draft{To: []string{agent}, Subject: "s", Body: "b"})
		}
		contains(t, b.press(s.base+"/agents", s.base+"/agents/"+agent+"/nudge"), agent+" was not woken: "+why+".")
	}
	if n := strings.Count(b.see(s.base+"/agents"), "Nudge</button>"); n != 1 {
		t.Errorf("%d agents can be nudged, but only Bob has unread mail and a window", n)
	}
	s.p.Sessions.NoteWake(k, seat.Wake{Outcome: seat.Typed, For: sent.ID})
	if err := s.p.Agents.SetPresence(t.Context(), "Cat", format.Ready); err != nil {
		t.Fatal(err)
	}
	// Bob can be nudged again, and Cat can be nudged in its window.
	contains(t, b.see(s.base+"/agents"), `aria-label="Nudge Bob"`, `aria-label="Nudge Cat"`)
	if text := b.see(s.base + "/agents?by=x&said=Send+your+token"); strings.Contains(text, "token") {
		t.Errorf("a link can make the view say anything:\n%s", text)
	}
}

// TestActivityMarks checks that acknowledging and archiving a message are shown on one line each, although they also
// mark the message as read. Merely reading a message must not be shown.
func TestActivityMarks(t *testing.T) {
	t.Parallel()
	s := open(t, page.Config{})
	bob := s.p.Box("Bob", format.Origin{})
	for subject, do := range map[string]func(context.Context, string) (*index.Delivery, error){
		"acked": bob.Acknowledge, "put away": bob.Archive,
		"seen": func(ctx context.Context, id string) (*index.Delivery, error) { return bob.SetRead(ctx, id, true) },
	} {
		sent := s.send("Ann", maildir.Draft{To: []string{"Bob"}, Subject: subject, Body: "b"})
		if _, err := do(t.Context(), sent.ID); err != nil {
			t.Fatal(err)
		}
	}
	text := s.browser().see(s.base + "/activity?agent=Bob")
	contains(t, text, "acknowledged", "archived")
	if got := strings.Count(text, `<span class="why">read</span>`); got != 0 {
		t.Errorf("%d readings:\n%s", got, text)
	}
}

// TestActivityDeeds checks that the activity shows who undid, restored or changed a message, and that it shows only
// once that a message was written.
func TestActivityDeeds(t *testing.T) {
	t.Parallel()
	s := open(t, page.Config{})
	pat := s.p.Box("pat", format.Origin{})
	sent := s.send("Ann", maildir.Draft{To: []string{"pat"}, Subject: "Plan", Body: "b"})
	reply, err := pat.Reply(t.Context(), sent.ID, maildir.Draft{Body: "mine"})
	if err != nil {
		t.Fatal(err)
	}
	b := s.browser()
	has := func(agent, what string, want int) {
		t.Helper()
		text := b.see(s.base + "/activity?agent=" + agent)
		if n := strings.Count(text, `<span class="why">`+what+`</span>`); n != want {
			t.Errorf("%s %s %d times, not %d:\n%s", agent, what, n, want, text)
		}
	}
	if _, err := pat.Undo(t.Context(), maildir.Undoing{ID: reply.ID}); err != nil {
		t.Fatal(err)
	}
	has("pat", "undid", 1)
	if _, err := pat.Redo(t.Context(), maildir.Undoing{}); err != nil {
		t.Fatal(err)
	}
	has("pat", "restored", 1)
	has("pat", "wrote", 1)
	old, err := s.p.Amendable(t.Context(), reply.ID)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pat.Amend(t.Context(), maildir.Amendment{ID: reply.ID, Text: strings.Replace(old.Text, "mine", "other", 1)}); err != nil {
		t.Fatal(err)
	}
	has("pat", "changed", 1)
	has("Ann", "wrote", 1)
}

// TestActivityFold checks that three consecutive operations of the same kind by one agent are shown on one line, and
// that two are shown on two lines.
func TestActivityFold(t *testing.T) {
	t.Parallel()
	s := open(t, page.Config{})
	for _, from := range []string{"Ann", "Ann", "Ann", "Bob", "Bob"} {
		s.send(from, maildir.Draft{To: []string{"pat"}, Subject: "by " + from, Body: "b"})
	}
	text := s.browser().see(s.base + "/activity")
	if n := strings.Count(text, `<details class="fold"`); n != 1 {
		t.Errorf("there are %d folds:\n%s", n, text)
	}
	contains(t, s.browser().words(s.base+"/activity", `<details class="fold"`, "</summary>"), "Ann wrote 3 times")
}

// TestActivityByHand checks that if a user deletes a message's files in the tree, the activity shows the user name from
// Git's configuration.
func TestActivityByHand(t *testing.T) {
	t.Parallel()
	s := open(t, page.Config{})
	gone := s.send("Ann", maildir.Draft{To: []string{"Bob"}, Subject: "Gone", Body: "b"})
	if err := s.p.FlushHistory(t.Context()); err != nil {
		t.Fatal(err)
	}
	for key, value := range map[string]string{"user.name": "Robin Roe", "user.email": "robin@example.org"} {
		if out, err := exec.Command("git", "-C", s.p.Dir(), "config", key, value).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	m, err := s.p.MessageHead(t.Context(), gone.ID)
	if err == nil {
		err = errors.Join(os.Remove(filepath.Join(s.p.Dir(), m.Path)), s.p.Rescan(t.Context()), s.p.FlushHistory(t.Context()))
	}
	if err != nil {
		t.Fatal(err)
	}
	contains(t, s.person().see(s.base+"/activity"), `<bdi class="name">Robin Roe</bdi></span>`+"\n"+`<span class="why">removed</span>`)
}

// TestActivityNotice checks that the recipients of a notice about a changed message are shown only to the author of
// the change.
func TestActivityNotice(t *testing.T) {
	t.Parallel()
	s := open(t, page.Config{Person: "pat"})
	sent := s.send("Ann", maildir.Draft{To: []string{"Bob"}, Subject: "Plan", Body: "old", ThreadID: "T-1"})
	old, err := s.p.Amendable(t.Context(), sent.ID)
	if err != nil {
		t.Fatal(err)
	}
	change := maildir.Amendment{ID: sent.ID, Text: strings.Replace(old.Text, "old", "new", 1)}
	if _, err := s.p.Box("pat", format.Origin{}).Amend(t.Context(), change); err != nil {
		t.Fatal(err)
	}
	activity, thread := s.base+"/activity", s.base+"/thread/T-1"
	contains(t, s.person().see(activity), `<bdi>Changed: Plan</bdi> <small>to <bdi class="name">Ann</bdi></small>`,
		`<bdi>Plan</bdi> <small>to <bdi class="name">Bob</bdi></small>`)
	contains(t, s.person().see(thread), `<summary>bcc <bdi class="name">Ann</bdi>`)
	for _, view := range []string{activity, thread} {
		if text := s.browser().see(view); strings.Contains(text, `bcc <bdi`) || strings.Contains(text, `to <bdi class="name">Ann`) {
			t.Errorf("without a session:\n%s", text)
		}
	}
}

// TestActivityGone checks that the activity shows that a deleted message is gone, and links to its history. Without a
// session, the activity must not show which agent deleted the message, because that agent may have received a blind
// copy.
func TestActivityGone(t *testing.T) {
	t.Parallel()
	s := open(t, page.Config{})
	sent := s.send("Ann", maildir.Draft{To: []string{"Bob"}, Subject: "Plan", Body: "b"})
	b := s.browser()
	contains(t, b.see(s.base+"/activity"), "Plan", s.base+"/thread/"+sent.ID+"#"+sent.ID)
	if _, err := s.p.Box("Bob", format.Origin{}).Delete(t.Context(), sent.ID); err != nil {
		t.Fatal(err)
	}
	text := b.see(s.base + "/activity")
	contains(t, s.person().see(s.base+"/activity"), `<bdi class="name">Bob</bdi></span>`+"\n"+`<span class="why">removed</span>`)
	contains(t, text, "Somebody", "a message that no longer exists", s.base+"/message/"+sent.ID+"/history")
	if alone := b.see(s.base + "/activity?agent=Ann"); strings.Contains(alone, "removed") {
		t.Errorf("Ann has removed it:\n%s", alone)
	}
	if strings.Contains(text, ">"+sent.ID+"<") {
		t.Errorf("it shows an id:\n%s", text)
	}
}

// nudgeable gives Bob a session in a tmux window, and unread mail.
func (s *site) nudgeable() {
	s.Helper()
	k := maildir.SessionKey{Client: "gemini", ID: "1"}
	pane := maildir.Pane{Tmux: "/tmp/x,1,1", Pane: "%1"}
	if _, err := s.p.Sessions.Begin(s.Context(), maildir.SessionEvent{SessionKey: k, Dir: "/code/backend", Agent: "Bob", Pane: pane}); err != nil {
		s.Fatal(err)
	}
	s.send("Ann", maildir.Draft{To: []string{"Bob"}, Subject: "s", Body: "b"})
}
