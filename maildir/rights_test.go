package maildir_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"mailtree/fixtures/storetest"
	"mailtree/maildir"
	"mailtree/maildir/attachment"
	"mailtree/maildir/claim"
	"mailtree/maildir/format"
	"mailtree/maildir/history"
	"mailtree/maildir/hook"
	"mailtree/maildir/index"
)

// covers checks that the keys of calls are exactly the names of the exported methods of v's type.
func covers[F any](t *testing.T, v any, calls map[string]F) {
	t.Helper()
	of := reflect.TypeOf(v)
	named := map[string]bool{}
	for i := range of.NumMethod() {
		name := of.Method(i).Name
		named[name] = true
		if _, ok := calls[name]; !ok {
			t.Errorf("%s.%s is new: add what it answers to a caller who may not use it", of, name)
		}
	}
	for name := range calls {
		if !named[name] {
			t.Errorf("%s.%s no longer exists: remove it from this list", of, name)
		}
	}
}

// answerText returns the complete text of results and errors.
func answerText(answers ...any) string {
	var all strings.Builder
	for _, a := range answers {
		if err, ok := a.(error); ok {
			var e *maildir.Error
			if errors.As(err, &e) {
				fmt.Fprintf(&all, "%+v ", *e)
			}
			fmt.Fprintf(&all, "%v ", err)
			continue
		}
		v := reflect.ValueOf(a)
		for v.Kind() == reflect.Pointer && !v.IsNil() {
			v = v.Elem()
		}
		if v.IsValid() {
			fmt.Fprintf(&all, "%+v ", v.Interface())
		}
	}
	return all.String()
}

// TestForeignUser checks that no method lets a user read or change anything in another user's mail. The test calls
// every exported method that is available to a user.
func TestForeignUser(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, storetest.Config{User: func() int { return 1000 }}).Store
	p := projectIn(t, s, "Zed")
	origin := format.Origin{}
	ann, eve := p.As(maildir.Caller{UID: 500}, origin), p.As(maildir.Caller{UID: 1500}, origin)
	for name, v := range map[string]*maildir.View{"Ann": ann, "Eve": eve} {
		if _, err := v.CreateMailbox(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	file := send(t, p, "Zed", maildir.Draft{To: []string{"Ann"}, Subject: "hidden subject", Body: "hidden body", ThreadID: "hidden-thread",
		Files: []attachment.File{attachment.Alternative("hidden text")}})
	annBox, err := ann.Box(t.Context(), "Ann")
	if err != nil {
		t.Fatal(err)
	}
	id := file.ID
	state := func() string {
		t.Helper()
		rows, err := annBox.List(t.Context(), index.BoxQuery{Limit: 10})
		sentRows, sentErr := annBox.List(t.Context(), index.BoxQuery{Limit: 10, Sent: true})
		senders, trustErr := annBox.TrustedSenders()
		hooks, hookErr := ann.Hooks(t.Context(), "Ann")
		boxes, boxErr := ann.Mailboxes(t.Context())
		if err := errors.Join(err, sentErr, trustErr, hookErr, boxErr); err != nil {
			t.Fatal(err)
		}
		return answerText(rows, sentRows, senders, hooks, boxes)
	}
	before := state()

	type call = func(v *maildir.View) []any
	view := map[string]call{
		"Box":           func(v *maildir.View) []any { return all(v.Box(t.Context(), "Ann")) },
		"CreateMailbox": func(v *maildir.View) []any { return all(v.CreateMailbox(t.Context(), "Ann")) },
		"DeleteHook":    func(v *maildir.View) []any { return []any{v.DeleteHook(t.Context(), "hidden-hook")} },
		"DeleteMailbox": func(v *maildir.View) []any { return all(v.DeleteMailbox(t.Context(), "Ann", true)) },
		"Exists":        nil, // hook_create tells every caller whether a mailbox exists
		"Hooks":         func(v *maildir.View) []any { return all(v.Hooks(t.Context(), "Ann")) },
		"Mailbox": func(v *maildir.View) []any {
			_, err := v.Mailbox(t.Context(), "Zeb") // this name is similar to Zed
			return append(all(v.Mailbox(t.Context(), "Ann")), err)
		},
		"Mailboxes":      func(v *maildir.View) []any { return all(v.Mailboxes(t.Context())) },
		"OpenAttachment": func(v *maildir.View) []any { return all(v.OpenAttachment(t.Context(), file.Attachments[0].SHA1)) },
	}
	covers(t, eve, view)
	// A result may contain the requested name. It must not contain any of Ann's mail, or the name Zed, which Eve does
	// not know.
	quiet := func(verb string, answers []any) {
		t.Helper()
		said := answerText(answers...)
		for _, secret := range []string{"hidden", "Zed"} {
			if strings.Contains(strings.ReplaceAll(said, "hidden-hook", ""), secret) {
				t.Errorf("%s reveals to a foreign user: %s", verb, said)
			}
		}
		if now := state(); now != before {
			t.Errorf("%s changed Ann's mail: %s\nbefore: %s", verb, now, before)
		}
	}
	for verb, do := range view {
		if do == nil {
			continue
		}
		answers := do(eve)
		quiet(verb, answers)
		if err, _ := answers[len(answers)-1].(error); err == nil && verb != "Mailboxes" {
			t.Errorf("%s does what a foreign user asks for: %+v", verb, answers)
		}
	}

	users := map[string]func(u maildir.User) []any{
		"Project": func(u maildir.User) []any { return all(u.Project(t.Context(), "/abs/path/shopp")) },
		"EnsureProject": func(u maildir.User) []any {
			return all(u.EnsureProject(t.Context(), "/abs/path/shopp"))
		},
	}
	guest := s.As(maildir.Caller{UID: 1500}, origin)
	covers(t, guest, users)
	for verb, do := range users {
		answers := do(guest)
		if err, _ := answers[1].(error); !errors.Is(err, maildir.ErrNotFound) || strings.Contains(strings.ReplaceAll(answerText(err), "shopp", ""), "shop") {
			t.Errorf("%s reveals to a guest: %v", verb, answerText(answers...))
		}
	}

	eveBox, err := eve.Box(t.Context(), "Eve")
	if err != nil {
		t.Fatal(err)
	}
	own := map[string]func(b *maildir.UserBox) []any{
		"List": func(b *maildir.UserBox) []any {
			return all(b.List(t.Context(), index.BoxQuery{ID: id, Agent: "Ann", Project: p.Slug, Limit: 1}))
		},
		"Read": func(b *maildir.UserBox) []any { return all(b.Read(t.Context(), maildir.RawQuery{ID: id})) },
		"Reply": func(b *maildir.UserBox) []any {
			return all(b.Reply(t.Context(), id, maildir.Draft{Body: "an answer"}))
		},
		"Send": func(b *maildir.UserBox) []any { // sends in the thread of a message that is not in the mailbox
			return all(b.Send(t.Context(), maildir.Draft{To: []string{"Eve"}, Body: "b", InReplyTo: id, ThreadID: "", References: []string{id}}))
		},
		"SetRead":    func(b *maildir.UserBox) []any { return []any{b.SetRead(t.Context(), id, true)} },
		"FullID":     func(b *maildir.UserBox) []any { return all(b.FullID(t.Context(), "id", id[:len(id)-4])) },
		"Delivery":   func(b *maildir.UserBox) []any { status, _ := b.Delivery(&index.BoxRow{}); return []any{status} },
		"Deliveries": func(b *maildir.UserBox) []any { return []any{b.Deliveries(&index.BoxRow{})} },
		"File":       func(b *maildir.UserBox) []any { return []any{b.File(&index.BoxRow{})} },
		"Slug":       func(b *maildir.UserBox) []any { return []any{b.Slug()} },
		"CreateHook": func(b *maildir.UserBox) []any {
			return all(b.CreateHook(t.Context(), hook.Hook{Event: hook.OnReceive, Cmd: []string{"/bin/true"}}))
		},
		"TrustSender":    func(b *maildir.UserBox) []any { return []any{b.TrustSender("new@example.org")} },
		"DistrustSender": func(b *maildir.UserBox) []any { return []any{b.DistrustSender("hidden@example.org")} },
		"TrustedSenders": func(b *maildir.UserBox) []any { return all(b.TrustedSenders()) },
		"Delete":         nil, // called last, because it removes Eve's mailbox
	}
	covers(t, eveBox, own)
	for verb, do := range own {
		if do == nil {
			continue
		}
		said := do(eveBox)
		for i := range said { // ignores words that the call itself contains
			if err, ok := said[i].(error); ok && verb == "DistrustSender" {
				said[i] = errors.New(strings.ReplaceAll(answerText(err), "hidden@example.org", ""))
			}
		}
		quiet("UserBox."+verb, said)
	}
	if _, err := eveBox.Delete(t.Context(), true); err != nil {
		t.Error(err)
	}
	quiet("UserBox.Delete", nil)
	_, again := eveBox.Delete(t.Context(), true)
	_, sent := eveBox.Send(t.Context(), maildir.Draft{To: []string{"Ann"}, Body: "b"})
	quiet("a deleted UserBox", []any{again, sent})
}

// all returns a result and an error as a slice.
func all[T any](v T, err error) []any { return []any{v, err} }

// TestForeignMachine checks that a program on this machine cannot act as another machine's agent, but can read that
// agent's mail. The test calls every exported method of Box.
func TestForeignMachine(t *testing.T) {
	t.Parallel()
	a, b := sharedByTwo(t)
	toAnn, toBob := b.send(t, "Bob", "Ann", "one").ID, a.send(t, "Ann", "Bob", "two").ID
	a.send(t, "Ann", "Bob", "three")
	level(t, a, b)
	box := b.p.Box("Ann", format.Origin{})
	person := format.Through(t.Context(), format.DoorCLI) // a user may act as any agent
	if _, err := box.Undo(person, maildir.Undoing{}); err != nil {
		t.Fatal(err)
	}
	text, err := b.p.Amendable(t.Context(), toBob)
	if err != nil {
		t.Fatal(err)
	}
	hi := maildir.Draft{To: []string{"Bob"}, Body: "hi"}

	acts := map[string]func(b *maildir.Box) []any{
		"Acknowledge": func(b *maildir.Box) []any { return all(b.Acknowledge(t.Context(), toAnn)) },
		"Amend": func(b *maildir.Box) []any {
			return all(b.Amend(t.Context(), maildir.Amendment{ID: toBob, Text: text.Text + "more"}))
		},
		"Archive": func(b *maildir.Box) []any { return all(b.Archive(t.Context(), toAnn)) },
		"Claim":   func(b *maildir.Box) []any { return all(b.Claim(t.Context(), claim.Request{Patterns: []string{"x"}})) },
		"Decide":  func(b *maildir.Box) []any { return all(b.Decide(t.Context(), maildir.Decision{ID: toAnn})) },
		"Delete":  func(b *maildir.Box) []any { return all(b.Delete(t.Context(), toBob)) },
		"Free": func(b *maildir.Box) []any {
			return all(b.Free(t.Context(), maildir.Freeing{Holder: "Bob", Pattern: "y"}))
		},
		"Forward": func(b *maildir.Box) []any { return all(b.Forward(t.Context(), toBob, hi)) },
		"Go":      func(b *maildir.Box) []any { return all(b.Go(t.Context(), "Bob")) },
		"Hold":    func(b *maildir.Box) []any { return all(b.Hold(t.Context(), maildir.Holding{Agent: "Bob"})) },
		"Finish":  func(b *maildir.Box) []any { return all(b.Finish(t.Context(), []string{toAnn})) },
		"Inbox": func(b *maildir.Box) []any {
			return all(b.Inbox(t.Context(), index.InboxQuery{Limit: 10}, true, maildir.Waiting{}))
		},
		"Later":       func(b *maildir.Box) []any { return all(b.Later(t.Context(), toAnn, time.Hour)) },
		"NewDraft":    func(b *maildir.Box) []any { _, _, err := b.NewDraft(t.Context(), []string{"Bob"}); return []any{err} },
		"Pop":         func(b *maildir.Box) []any { return all(b.Pop(t.Context())) },
		"PopWait":     func(b *maildir.Box) []any { return all(b.PopWait(t.Context(), maildir.Waiting{}, nil)) },
		"Redo":        func(b *maildir.Box) []any { return all(b.Redo(t.Context(), maildir.Undoing{})) },
		"Release":     func(b *maildir.Box) []any { return all(b.Release(t.Context(), []string{"z"})) },
		"ReleaseFrom": func(b *maildir.Box) []any { return all(b.ReleaseFrom(t.Context(), claim.From{}, []string{"z"})) },
		"Reply":       func(b *maildir.Box) []any { return all(b.Reply(t.Context(), toAnn, maildir.Draft{Body: "hi"})) },
		"Send":        func(b *maildir.Box) []any { return all(b.Send(t.Context(), hi)) },
		"SetRead":     func(b *maildir.Box) []any { return all(b.SetRead(t.Context(), toAnn, true)) },
		"Undo":        func(b *maildir.Box) []any { return all(b.Undo(t.Context(), maildir.Undoing{})) },
	}
	reads := map[string]func(b *maildir.Box) []any{
		"AwaitReply": nil,                                                               // not called: it would wait
		"Addressees": nil,                                                               // not called: it uses only the message
		"Decides":    nil,                                                               // not called: it uses only the message
		"Dismiss":    func(b *maildir.Box) []any { return all(b.Dismiss(t.Context())) }, // changes nothing that others see
		"Counts":     func(b *maildir.Box) []any { return all(b.Counts(t.Context())) },
		"Delivery":   func(b *maildir.Box) []any { return all(b.Delivery(t.Context(), toAnn)) },
		"InboxAsOf": func(b *maildir.Box) []any {
			return all(b.InboxAsOf(t.Context(), index.InboxQuery{Limit: 1}, history.Moment{At: time.Now()}))
		},
		"Prepare":     func(b *maildir.Box) []any { return all(b.Prepare(t.Context(), "", hi)) },
		"Undoable":    func(b *maildir.Box) []any { return all(b.Undoable(t.Context(), 3)) },
		"UnreadSince": func(b *maildir.Box) []any { return all(b.UnreadSince(t.Context())) },
		"Waits":       func(b *maildir.Box) []any { return all(b.Waits(t.Context(), maildir.WaitsQuery{})) },
	}
	both := map[string]bool{}
	for _, names := range []map[string]func(b *maildir.Box) []any{acts, reads} {
		for name := range names {
			both[name] = true
		}
	}
	covers(t, box, both)
	files := gitFiles(t, b)
	for verb, do := range acts {
		answers := do(box)
		if err, _ := answers[len(answers)-1].(error); !errors.Is(err, maildir.ErrConflict) {
			t.Errorf("%s as another machine's agent: %s", verb, answerText(answers...))
		}
	}
	for verb, do := range reads {
		if do == nil {
			continue
		}
		answers := do(box)
		if err, _ := answers[len(answers)-1].(error); err != nil {
			t.Errorf("%s for another machine's agent: %v", verb, err)
		}
	}
	if now := gitFiles(t, b); !slices.Equal(now, files) {
		t.Errorf("the tree has changed: %v, before %v", now, files)
	}
}

// gitFiles lists the files of a machine's tree.
func gitFiles(t *testing.T, m sharer) []string {
	t.Helper()
	if err := m.p.FlushHistory(t.Context()); err != nil {
		t.Fatal(err)
	}
	return strings.Fields(gitIn(t, m.p.Dir(), "ls-files", "--cached", "--others", "--exclude-standard"))
}
