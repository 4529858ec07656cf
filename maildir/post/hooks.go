package post

import (
	"path/filepath"
	"slices"

	"mailtree/maildir/format"
)

// AttachedFiles returns a message's attachments with absolute paths. It omits attachments whose path does not match
// their content, and attachments that are not regular files. Otherwise, a message file that a user wrote, or a link
// in the tree, could name any file on this machine.
func (p *Post) AttachedFiles(m *format.Message) []format.Attachment {
	all := slices.DeleteFunc(slices.Clone(m.Attachments), func(a format.Attachment) bool {
		if a.SHA1 == "" || format.AttachmentSum(a.Path) != a.SHA1 {
			return true
		}
		st, err := p.mail.Tree.Stat(a.Path)
		return err != nil || !st.Mode.IsRegular()
	})
	for i := range all {
		all[i].Path = filepath.Join(p.mail.Tree.Dir(), filepath.FromSlash(all[i].Path))
	}
	return all
}
