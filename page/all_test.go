package page_test

import (
	"strings"
	"testing"

	"mailtree/maildir"
	"mailtree/maildir/format"
	"mailtree/page"
)

// TestAllProjects checks that one list shows what waits for the user in all projects, that it stays next to a thread, and
// that an answer leads on to the next thread in another project, where it can be undone.
func TestAllProjects(t *testing.T) {
	s := open(t, page.Config{})
	front, err := s.store.EnsureProject(t.Context(), "/code/front")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"Xia", "pat"} {
		if err := front.Agents.EnsureAgent(t.Context(), name, maildir.Registration{Program: "test"}); err != nil {
			t.Fatal(err)
		}
	}
	mine := s.send("Ann", maildir.Draft{To: []string{"pat"}, Subject: "Which?", Body: "b"}).ID
	theirs, err := front.Box("Xia", format.Origin{}).Send(t.Context(), maildir.Draft{To: []string{"pat"}, Subject: "May I?", Body: "b"})
	if err != nil {
		t.Fatal(err)
	}
	b := s.person()
	at := "/p/" + front.Slug + "/"
	thread := at + "thread/" + theirs.ID + "?in=all"
	contains(t, b.see("/"), `<a href="/" title="" aria-current="true"><span>All projects <small></small></span> <b>2</b></a>`, "Which?", "May I?",
		`<small>front</small>`, `href="`+thread+"#"+theirs.ID+`"`, `data-stream="/stream?at=`)
	contains(t, b.see(thread), "Which?", `href="/">‹ All projects`, `<span>front <small>/code/front</small></span> <b>1</b>`)

	form := b.form(thread)
	form.Set("as", "yes")
	res, text := b.post(at+"message/"+theirs.ID+"/decide", form)
	to, _, _ := strings.Cut(res.Header.Get("Location"), "#")
	if !strings.HasPrefix(to, s.base+"/thread/"+mine+"?in=all&") {
		t.Fatalf("it leads to %q\n%s", to, text)
	}
	text = b.see(to)
	contains(t, text, "Sent to Xia.", "Which?")
	undo := undoes.FindStringSubmatch(text)
	if undo == nil || !strings.HasPrefix(undo[1], at+"message/") {
		t.Fatalf("it is undone at %q", undo)
	}
	if text := b.see("/"); strings.Contains(text, "May I?") || !strings.Contains(text, "Which?") {
		t.Errorf("after the answer:\n%s", text)
	}
	b.press(thread, undo[1])
	contains(t, b.see("/"), "May I?")
}
