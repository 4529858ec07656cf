// Package merge determines the result for each file when the mail of two machines is merged. It does not read or write
// files. Its input is each file's state in the last common commit and on each side. See docs/reference/sync.md, "Merge
// rules".
package merge

import (
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"mailtree/maildir/format"
)

// Entry is a file in a commit: its mode in Git, and Git's hash of its content. The zero Entry means that the file does
// not exist.
type Entry struct {
	Mode uint32
	Hash string
}

// Plain is Git's mode for an ordinary file. Only ordinary files are synchronized between machines.
const Plain = 0o100644

func (e Entry) exists() bool  { return e.Mode != 0 }
func (e Entry) special() bool { return e.exists() && e.Mode != Plain }

// File is a path at which the two sides differ, or that both sides have changed.
type File struct {
	Path               string
	Base, Ours, Theirs Entry
}

// Change is a change that the merge makes to a path on our side.
type Change struct {
	Path    string
	Was, Is Entry
	Beside  bool // the new version is written next to a message; an earlier merge may already have written it
}

// Merge returns the changes that turn our side into the merge of both sides. theirsLater reports whether the last
// commit that changed a path is theirs. Merge calls it only for paths that both sides have changed. If the other side
// calls Merge with the sides swapped and with a theirsLater that returns the opposite, both sides end up with the same
// files. stay is the number of paths that the other side has changed but that are not synchronized because of their
// mode or name.
func Merge(files []File, theirsLater func(path string) bool) (changes []Change, stay int) {
	for _, f := range files {
		switch {
		case f.Theirs == f.Base || f.Theirs == f.Ours:
		case !Crosses(f.Path):
			if k := format.Locate(f.Path).Kind; k == format.KindOther || k == format.KindAttachment {
				stay++
			}
		case f.Base.special() || f.Ours.special() || f.Theirs.special():
			stay++
		case f.Ours == f.Base:
			changes = append(changes, Change{Path: f.Path, Was: f.Ours, Is: f.Theirs})
		default:
			changes = append(changes, f.both(theirsLater)...)
		}
	}
	return changes, stay
}

// both merges a file that both sides have changed differently. For a message, both versions are kept. For any other
// file, only the later version is kept. If one side has removed the file and the other side has changed it, the file is
// kept, unless it is a mark. For a mark, the later change wins.
func (f File) both(theirsLater func(path string) bool) (changes []Change) {
	kind := format.Locate(f.Path).Kind
	if !kind.Mark() {
		switch {
		case !f.Theirs.exists():
			return nil
		case !f.Ours.exists():
			return []Change{{Path: f.Path, Was: f.Ours, Is: f.Theirs}}
		}
	}
	kept, aside := f.Ours, f.Theirs
	if theirsLater(f.Path) {
		kept, aside = aside, kept
		changes = append(changes, Change{Path: f.Path, Was: f.Ours, Is: f.Theirs})
	}
	if kind == format.KindCanonical || kind == format.KindInbox || kind == format.KindOutbox {
		changes = append(changes, Change{Path: format.EditBeside(f.Path, aside.Hash), Is: aside, Beside: true})
	}
	return changes
}

// longest is the maximum length, in bytes, of a synchronized file's path.
const longest = 1024

// Crosses reports whether the file at a path is synchronized between machines. Claims and drafts are not
// synchronized. Neither are hidden files, files that have not been sent yet, and mail files with an invalid name.
func Crosses(p string) bool {
	if len(p) > longest || !utf8.ValidString(p) || path.Clean(p) != p || path.IsAbs(p) || strings.ContainsFunc(p, unicode.IsControl) {
		return false
	}
	at := format.Locate(p)
	switch at.Kind {
	case format.KindIgnored, format.KindDraft, format.KindClaim, format.KindReleased:
		return false
	case format.KindOutbox:
		return at.Bad == "" && format.IsSentCopy(p)
	}
	for name := range strings.SplitSeq(p, "/") {
		if len(name) > 255 {
			return false
		}
	}
	return at.Bad == ""
}
