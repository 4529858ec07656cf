// Package unsent contains the text of Postmaster's notice about an unsent file in an outbox, and reads the reason back
// from the notice.
package unsent

import (
	"context"
	"slices"
	"strings"

	"mailtree/maildir/format"
	"mailtree/maildir/index"
	"mailtree/maildir/tree"
)

const (
	intro   = "Your file was not sent:\n\n    "
	closing = "\n\nThe file is still in your outbox. Fix it and save it: the server sends it two seconds after its last " +
		"change. To cancel, delete the file or move it to your drafts."
)

// Body returns the text of a notice about the file at path. The parameter why explains why the file was not sent.
func Body(path, why string) string { return opening(path) + why + closing }

func opening(path string) string { return intro + format.Printable(path) + "\n\n" }

// reason returns, in one line, why the file at path was not sent. ok is false if body is not the text of a notice about
// that file.
func reason(path, body string) (why string, ok bool) {
	why, begins := strings.CutPrefix(body, opening(path))
	why, ends := strings.CutSuffix(strings.TrimRight(why, "\n"), closing)
	return strings.ReplaceAll(why, "\n", " "), begins && ends
}

// Thread returns the id of the thread for all notices about the file at path.
func Thread(path string) string { return "unsent-" + tree.SHA256([]byte(path))[:16] }

// Key returns the idempotency key of a notice about the file at path with the given bytes. Different bytes or a
// different reason result in a different key.
func Key(path string, data []byte, why string) string {
	return about(path, data) + " " + tree.SHA256([]byte(why))[:16]
}

// about returns the beginning that all keys for the same path and bytes share.
func about(path string, data []byte) string {
	return "unsent " + tree.SHA256(append([]byte(path+"\n"), data...))[:32]
}

// Explain replaces the reason format.NotYetSent with the reason in Postmaster's newest notice about the bytes that the
// file has now, if there is such a notice. The function treeOf returns a project's tree, or nil if the tree is not open.
// Explain leaves files that cannot be read unchanged, and returns any error from the index.
func Explain(ctx context.Context, ix index.Index, treeOf func(slug string) *tree.Tree, all []format.Problem) error {
	for i := range all {
		p := &all[i]
		t := treeOf(p.Project)
		if t == nil || p.Reason != format.NotYetSent {
			continue
		}
		data, _, err := t.Read(p.Path, t.MaxFile())
		if err != nil {
			continue
		}
		notices, err := ix.Thread(ctx, index.ThreadQuery{Project: p.Project, Thread: Thread(p.Path), Bodies: true})
		if err != nil {
			return err
		}
		for _, n := range slices.Backward(notices) {
			if n.From != format.Postmaster || !strings.HasPrefix(n.Key, about(p.Path, data)) {
				continue
			}
			if why, ok := reason(p.Path, n.Body); ok {
				p.Reason = "the file was not sent: " + why
				break
			}
		}
	}
	return nil
}
