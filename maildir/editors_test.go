package maildir_test

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"mailtree/fixtures/storetest"
	"mailtree/fixtures/tmuxtest"
	"mailtree/maildir/format"
)

// editor describes a real editor: how to start it, and the keys for typing and saving text.
type editor struct {
	name  string
	start string   // the command that starts the editor, without the file name
	begin []string // keys to press before text can be typed
	save  []string // keys that save the file, after which text can be typed again
}

var editors = []editor{
	{"vim", "vim -u NONE -i NONE -N", []string{"i"}, []string{"Escape", ":w!", "Enter", "A"}},
	{"vim with a backup", "vim -u NONE -i NONE -N --cmd 'set backup backupcopy=no'", []string{"i"}, []string{"Escape", ":w!", "Enter", "A"}},
	{"vim that overwrites", "vim -u NONE -i NONE -N --cmd 'set backup backupcopy=yes'", []string{"i"}, []string{"Escape", ":w!", "Enter", "A"}},
	{"emacs", "emacs -nw -Q", nil, []string{"C-x", "C-s"}},
	{"nano", "nano -I -B", nil, []string{"C-o", "Enter"}},
}

// TestEditors checks that text saved in a real editor is sent, and is not sent again when it is saved without
// changes.
func TestEditors(t *testing.T) {
	for _, e := range editors {
		t.Run(e.name, func(t *testing.T) {
			program, _, _ := strings.Cut(e.start, " ")
			if _, err := exec.LookPath(program); err != nil {
				t.Skipf("needs %s, which .ci/run installs", program)
			}
			a := newAuthor(t, storetest.Config{})
			s := tmuxtest.Start(t)
			const path = "agents/Ann/outbox/note.md"
			w := s.Program("writing", fmt.Sprintf("exec %s %s", e.start, a.path(path)))
			w.Shows("note.md")
			t.Cleanup(func() {
				if t.Failed() {
					t.Logf("the window shows:\n%s", s.Run("capture-pane", "-p", "-t", w.Pane))
				}
			})
			typed := func(keys ...string) {
				for _, k := range keys {
					s.Run("send-keys", "-t", w.Pane, k)
				}
			}
			typed(e.begin...)
			for _, line := range []string{"---json", `{"to": ["Bob"]}`, "---", "# Hello"} {
				s.Run("send-keys", "-t", w.Pane, "-l", "--", line)
				typed("Enter")
			}
			s.Run("send-keys", "-t", w.Pane, "-l", "Text.")
			w.Shows("Text.")
			typed(e.save...)
			a.await("Bob", "Ann", "Hello")
			if m := inbox(t, a.p, "Bob").Messages[0]; strings.TrimRight(m.Body, "\n") != "# Hello\nText." {
				t.Errorf("sent %q", m.Body)
			}
			typed(" ", "BSpace") // emacs does not save an unmodified buffer
			typed(e.save...)
			if strings.HasPrefix(e.name, "emacs") {
				typed("y", "e", "s", "Enter") // the file was removed, so emacs asks whether to save it
			}
			a.await("Ann", format.Postmaster, "Not sent: "+path)
			a.later()
			if n := len(slices.DeleteFunc(a.inbox("Bob", "Ann"), func(s string) bool { return s != "Hello" })); n != 1 {
				t.Errorf("Bob got the message %d times", n)
			}
		})
	}
}
