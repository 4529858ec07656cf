package page_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	perms "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"

	"mailtree/maildir"
	"mailtree/maildir/format"
	"mailtree/maildir/index"
	"mailtree/page"
)

// drop drops files onto the center of the element that the script returns.
func (b *tab) drop(element string, files ...string) {
	b.Helper()
	var at []float64
	b.must("find the place", chromedp.Evaluate(`(r => [r.x + r.width / 2, r.y + r.height / 2])(`+element+`.getBoundingClientRect())`, &at))
	data := &input.DragData{Items: []*input.DragDataItem{}, Files: files, DragOperationsMask: 1}
	for _, step := range []input.DispatchDragEventType{input.DragEnter, input.DragOver, input.Drop} {
		b.must("drop", input.DispatchDragEvent(step, at[0], at[1], data))
	}
}

// chips is a script that returns the names of the attached files, which are shown on chips.
const chips = `[...document.querySelectorAll(".files .chip")].map(e => e.textContent).join()`

// TestBrowserAttach checks that the user can attach files by dropping them and by pasting a picture, in a new message
// and in a reply. Each file must have a chip that removes the file. Pasted text must remain text.
func TestBrowserAttach(t *testing.T) {
	t.Parallel()
	s := open(t, page.Config{})
	asked := s.send("Ann", maildir.Draft{To: []string{"pat"}, Subject: "How does it look?", Body: "b"})
	dir := t.TempDir()
	var files []string
	for _, name := range []string{"plan.txt", "notes.txt"} {
		files = append(files, filepath.Join(dir, name))
		if err := os.WriteFile(files[len(files)-1], []byte("the text of "+name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b := s.tab()
	b.enter()
	allowed := []perms.PermissionType{perms.PermissionTypeClipboardReadWrite, perms.PermissionTypeClipboardSanitizedWrite}
	b.must("allow the clipboard", chromedp.ActionFunc(perms.GrantPermissions(allowed).WithOrigin(s.url).WithBrowserContextID(b.profile).Do))
	copied := func(item string) {
		t.Helper()
		b.must("copy", chromedp.Evaluate(`window.copied = false; (async () => { await navigator.clipboard.write([new ClipboardItem(`+item+`)]); window.copied = true })(); 0`, nil))
		b.await(`window.copied`)
	}
	const picture = `{"image/png": await new Promise(done => Object.assign(document.createElement("canvas"), {width: 30, height: 20}).toBlob(done))}`
	paste := input.DispatchKeyEvent(input.KeyDown).WithKey("v").WithModifiers(input.ModifierCtrl).WithCommands([]string{"paste"})

	b.must("write", press("c"), chromedp.WaitVisible(`#to`), chromedp.SendKeys(`#to`, "Ann"), chromedp.SendKeys(`#subject`, "Plan"), chromedp.Focus(`#body`))
	copied(`{"text/plain": new Blob(["some text"], {type: "text/plain"})}`)
	b.must("paste the text", chromedp.Focus(`#body`), paste)
	b.await(`document.getElementById("body").value === "some text"`)
	b.expect("", chips)
	copied(picture)
	b.must("paste the picture", chromedp.Focus(`#body`), paste)
	b.await(chips + ` === "image.png ×"`)
	b.drop(`document.getElementById("body")`, files...)
	b.await(chips + ` === "image.png ×,plan.txt ×,notes.txt ×"`)
	b.shoot("attach")
	b.must("remove one", chromedp.Click(`//button[contains(., "notes.txt")]`))
	b.expect("image.png ×,plan.txt ×", chips)
	b.expect("some text", `document.getElementById("body").value`)
	b.must("send", chromedp.Focus(`#body`), pressWith(input.ModifierCtrl, "Enter"), said("p", "Sent to Ann."))
	s.has(t, "Plan", "image.png plan.txt")

	b.visit("/thread/" + asked.ID)
	b.drop(`document.querySelector("article")`, files[0])
	b.await(chips + ` === "plan.txt ×"`)
	b.must("reply", chromedp.SendKeys(`#reply-body`, "Like this."), pressWith(input.ModifierCtrl, "Enter"), said("p", "Sent to Ann."))
	s.has(t, "Re: How does it look?", "plan.txt")
}

// has checks that Ann's newest message has the given subject and attached files, and that the text of an attached
// file is complete.
func (s *site) has(t *testing.T, subject, files string) {
	t.Helper()
	inbox, err := s.p.Box("Ann", format.Origin{}).Inbox(t.Context(), index.InboxQuery{}, false, maildir.Waiting{})
	if err != nil || len(inbox.Messages) == 0 {
		t.Fatalf("Ann has %+v, %v", inbox, err)
	}
	m := inbox.Messages[0]
	var names []string
	for _, a := range m.Attachments {
		names = append(names, a.Name)
		data, err := s.p.Attachment(a.SHA1, 1<<20)
		if err != nil || strings.HasSuffix(a.Name, ".txt") && string(data.Data) != "the text of "+a.Name {
			t.Errorf("%s is %+v, %v", a.Name, data, err)
		}
	}
	if got := strings.Join(names, " "); m.Subject != subject || got != files {
		t.Errorf("Ann has %q with the files %q, not %q with %q", m.Subject, got, subject, files)
	}
}
