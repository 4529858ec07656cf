// Package merge decides what becomes of each file when the mail of two machines meets. It reads and writes
// nothing: it is given what a file was in the last common commit, and what it is on each side. docs/sync.md,
// "Merge rules", tells the rules to people.
package merge

import (
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"mailtree/maildir/format"
)

// Entry is a file in a commit: Git's mode, and the name of its content. The zero Entry means that there is
// no file.
type Entry struct {
	Mode uint32
	Hash string
}

// Plain is the mode of an ordinary file. No other file crosses between machines.
const Plain = 0o100644

func (e Entry) exists() bool  { return e.Mode != 0 }
func (e Entry) special() bool { return e.exists() && e.Mode != Plain }

// File is a path that the two sides have in different states, or that both have changed.
type File struct {
	Path               string
	Base, Ours, Theirs Entry
}

// Change is what the merge makes of a path of our side.
type Change struct {
	Path    string
	Was, Is Entry
	Beside  bool // Is stands beside a message, where an earlier merge may have put it already
}

// Merge returns the changes that make our side the merge of both. theirsLater reports whether the last
// commit that changed a path is one of theirs; it is asked only about paths that both sides have changed.
// The other side, which calls Merge with the sides exchanged and the opposite answers, comes to the same
// files. stay counts the paths that theirs changed and that do not cross because of their mode or name.
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

// both merges a file that both sides have changed, each in its own way. Of a message both versions stay.
// Of other files the later one does; for a mark, that may be its removal. No other file that one side has
// changed is removed because the other side has removed it.
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

// longest is the most bytes that the path of a crossing file may have.
const longest = 1024

// Crosses reports whether a path is one of those that machines share. Claims and drafts stay on their
// machine, and so do hidden files, files that are still to be sent, and files of the mail with an invalid
// name.
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
