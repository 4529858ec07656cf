// Package format defines the paths and the file formats of a mail tree. It does not read or write files.
//
//   - Locate identifies the file at a path. CanonicalPath, InboxPath and similar functions return paths.
//   - ParseMessage, ParseProfile, ParseClaim, ParseProject, ParseMark and ParseStatus parse a file's bytes. A
//     *tree.FormatError reports the invalid line. FormatMessage and similar functions write the form that the parsers
//     read.
//   - Seal signs a message file, and SealHolds checks the seal.
//   - ParseAddress parses the sender or a recipient of a message, which is an agent or an email address at another
//     domain.
//   - CheckName and ValidID check names and ids.
//
// docs/reference/tree.md describes the same format for users.
package format

import (
	"crypto/sha1"
	"encoding/hex"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"

	"mailtree/maildir/lazy"
)

// Kind is the kind of a file in the tree. It depends only on the path. See docs/reference/tree.md, "The tree of a
// project".
type Kind uint8

// The kinds of files. KindIgnored files, such as hidden files, editor swap files, .git and .mailtree, are not part of
// the tree. KindOther files, such as a README or an image for a draft, are kept and committed, but mailtree does not
// use them.
const (
	KindIgnored    Kind = iota
	KindOther           // not used by mailtree
	KindProject         // project.json
	KindCanonical       // messages/**/<id>.md
	KindProfile         // agents/<Name>/profile.json
	KindStatus          // agents/<Name>/status
	KindInbox           // agents/<Name>/inbox/**/<id>.md
	KindRead            // agents/<Name>/inbox/**/<id>.read
	KindAck             // agents/<Name>/inbox/**/<id>.ack
	KindOutbox          // agents/<Name>/outbox/**/<id>.md
	KindDraft           // agents/<Name>/drafts/**
	KindClaim           // claims/**/*.json
	KindReleased        // claims/**/*.released
	KindAttachment      // attachments/**
	KindArchived        // agents/<Name>/inbox/**/<id>.archived
	KindHold            // agents/<Name>/hold
	KindLater           // agents/<Name>/inbox/**/<id>.later
)

var kindNames = [...]string{
	"ignored", "other", "project", "message", "profile", "status", "inbox", "read", "ack", "outbox",
	"draft", "claim", "released", "attachment", "archived", "hold", "later",
}

// String returns the kind's name, as used in index dumps and the log.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "unknown"
}

// Mark reports whether files of this kind are marks, which record what a recipient has done with a delivery.
func (k Kind) Mark() bool {
	return k == KindRead || k == KindAck || k == KindArchived || k == KindLater
}

// Place describes a file in the tree, based only on the file's path.
type Place struct {
	Kind  Kind
	Agent string // the agent whose folder contains the file; empty for other files
	ID    string // message id of a message, copy or mark, which is the file name's stem; empty for other files
	Bad   string // why the path is invalid (the stem is not an id, or the folder is not an agent's name); empty if the path is valid
}

// ValidID reports whether id is a valid message id: [A-Za-z0-9][A-Za-z0-9._-]{0,127}. See docs/reference/tree.md, "A
// message".
func ValidID(id string) bool { return len(id) <= 128 && PlainName(id) }

// PlainName reports whether s consists of letters, digits, '.', '_' and '-', and begins with a letter or
// digit.
func PlainName(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		case i > 0 && (c == '.' || c == '_' || c == '-'):
		default:
			return false
		}
	}
	return s != ""
}

// Ignored reports whether a file with the given name is not part of the tree, because it is a hidden file, an
// editor's backup file, or a swap file. See docs/reference/tree.md, "The tree of a project".
func Ignored(base string) bool {
	return base == "" || base[0] == '.' || strings.HasSuffix(base, "~") || strings.HasSuffix(base, ".swp") ||
		strings.HasSuffix(base, ".swx") || base == "4913" || (base[0] == '#' && strings.HasSuffix(base, "#"))
}

// Locate returns the place of the file at p, a slash-separated path relative to the tree's root. The place depends
// only on the first two or three elements of the path and on the file name. The folders in between may have any name
// that is not ignored. See docs/reference/tree.md, "The tree of a project".
func Locate(p string) Place {
	for e := range strings.SplitSeq(p, "/") {
		if Ignored(e) {
			return Place{Kind: KindIgnored}
		}
	}
	head, rest, deep := strings.Cut(p, "/")
	if !deep {
		if p == ProjectFile {
			return Place{Kind: KindProject}
		}
		return Place{Kind: KindOther}
	}
	switch head {
	case MessagesDir:
		return locateMessage(KindCanonical, "", rest)
	case AgentsDir:
		return locateAgent(rest)
	case ClaimsDir:
		return locateClaim(rest)
	case AttachmentsDir:
		return Place{Kind: KindAttachment}
	}
	return Place{Kind: KindOther}
}

func locateAgent(p string) Place {
	name, rest, deep := strings.Cut(p, "/")
	if !deep {
		return Place{Kind: KindOther}
	}
	pl := Place{Kind: KindOther, Agent: name}
	box, in, below := strings.Cut(rest, "/")
	switch {
	case rest == profileFile:
		pl.Kind = KindProfile
	case rest == statusFile:
		pl.Kind = KindStatus
	case rest == holdFile:
		pl.Kind = KindHold
	case below && box == InboxDir:
		pl = locateMessage(KindInbox, name, in)
	case below && box == OutboxDir:
		pl = locateMessage(KindOutbox, name, in)
	case below && box == DraftsDir:
		pl.Kind = KindDraft
	}
	if why := CheckName(name); why != "" && pl.Kind != KindOther && pl.Kind != KindDraft {
		pl.Bad = "the folder name " + Quote(name) + " is not an agent's name: " + why + ". Rename the folder"
	}
	return pl
}

// sentCopy matches the paths that the server gives to senders' copies of messages, and the paths that EditBeside
// derives from them.
var sentCopy = lazy.Regexp(`^agents/[^/]+/outbox/\d{4}/\d\d/\d\d/(?:\d+/)?msg_\d{8}_[0-9a-f]{16}(?:\.edit-[0-9a-f]{12})?\.md$`)

// IsSentCopy reports whether the file at a path in an outbox is the copy of a sent message. Any other file in an
// outbox was saved by a user or agent to be sent.
func IsSentCopy(p string) bool { return sentCopy().MatchString(p) }

const editBeside = ".edit-"

// EditBeside returns the path for a second version of the message at path p. The argument hash is the hash of the
// second version's content. Because the id in the file differs from the file name, the index reports the file as a
// problem.
func EditBeside(p, hash string) string {
	return strings.TrimSuffix(p, ".md") + editBeside + hash[:12] + ".md"
}

func locateMessage(k Kind, agent, p string) Place {
	base := path.Base(p)
	ext := path.Ext(base)
	pl := Place{Kind: k, Agent: agent, ID: strings.TrimSuffix(base, ext)}
	switch {
	case ext == ".md":
	case k == KindInbox && ext == ".read":
		pl.Kind = KindRead
	case k == KindInbox && ext == ".ack":
		pl.Kind = KindAck
	case k == KindInbox && ext == ".archived":
		pl.Kind = KindArchived
	case k == KindInbox && ext == ".later":
		pl.Kind = KindLater
	default:
		return Place{Kind: KindOther, Agent: agent}
	}
	if !ValidID(pl.ID) {
		pl.Bad = "the file's name is not a message id: use at most 128 letters, digits, '.', '_' and '-', " +
			"beginning with a letter or digit"
	}
	return pl
}

func locateClaim(p string) Place {
	switch path.Ext(p) {
	case ".json":
		return Place{Kind: KindClaim}
	case releasedExt:
		return Place{Kind: KindReleased}
	}
	return Place{Kind: KindOther}
}

// Names used in the tree. No other source file contains these names as literals.
const (
	ProjectFile    = "project.json"
	MessagesDir    = "messages"
	AgentsDir      = "agents"
	ClaimsDir      = "claims"
	ClaimsAbout    = ClaimsDir + "/README" // exists only in the shared list; new content means that the list was recreated
	AttachmentsDir = "attachments"
	MachinesDir    = "machines"
	profileFile    = "profile.json"
	statusFile     = "status"
	holdFile       = "hold"
	InboxDir       = "inbox"
	OutboxDir      = "outbox"
	DraftsDir      = "drafts"
	releasedExt    = ".released"
	GitIgnore      = ".gitignore"
	GitAttributes  = ".gitattributes"
	RunDir         = ".mailtree" // untracked run-time state (see maildir/doc.go), which the watcher and the history skip
)

// Names in RunDir.
const (
	JournalFile = RunDir + "/journal"
	SeenDir     = RunDir + "/seen"     // one file per agent; its mtime is the time when the agent was last active
	SessionsDir = RunDir + "/sessions" // one file per seat (maildir/seat) with the seat's agent and announced messages
	NotifiedDir = RunDir + "/notified" // written by earlier versions: one file per agent in a tmux window
	QueueDir    = RunDir + "/queue"    // one file per message and recipient at another domain (package outgoing)
	StoppedDir  = RunDir + "/stopped"  // one file per agent, action and claim that blocked it (package claim)

	DismissedDir = RunDir + "/dismissed" // one file per agent (package dismissed)
)

func day(t time.Time) string { return t.UTC().Format("2006/01/02") }

// CanonicalPath returns the path of the canonical file of a message created at t.
func CanonicalPath(id string, t time.Time) string {
	return MessagesDir + "/" + day(t) + "/" + id + ".md"
}

// InboxPath returns the path of the agent's inbox copy of a message created at t.
func InboxPath(agent, id string, t time.Time) string {
	return AgentsDir + "/" + agent + "/" + InboxDir + "/" + day(t) + "/" + id + ".md"
}

// OutboxPath returns the path of the agent's outbox copy of a message created at t.
func OutboxPath(agent, id string, t time.Time) string {
	return AgentsDir + "/" + agent + "/" + OutboxDir + "/" + day(t) + "/" + id + ".md"
}

// DraftPath returns the path of the agent's nth new draft within the second that contains t.
func DraftPath(agent string, t time.Time, n int) string {
	name := t.UTC().Format("20060102-150405")
	if n > 1 {
		name += "-" + strconv.Itoa(n)
	}
	return AgentsDir + "/" + agent + "/" + DraftsDir + "/" + name + ".md"
}

// ProfilePath returns the path of the agent's profile.
func ProfilePath(agent string) string { return AgentsDir + "/" + agent + "/" + profileFile }

// StatusPath returns the path of the agent's status file.
func StatusPath(agent string) string { return AgentsDir + "/" + agent + "/" + statusFile }

// HoldPath returns the path of the agent's hold file.
func HoldPath(agent string) string { return AgentsDir + "/" + agent + "/" + holdFile }

// ClaimPath returns the path of an agent's claim on a pattern. A suffix distinguishes the file from another file for
// the same pattern and agent.
func ClaimPath(pattern, agent, suffix string) string {
	sum := sha1.Sum([]byte(pattern))
	return ClaimsDir + "/" + hex.EncodeToString(sum[:]) + "-" + agent + suffix + ".json"
}

// ListedClaim returns the file name of the claim at p in the shared list of claims, which has no folders.
func ListedClaim(p string) string { return url.PathEscape(strings.TrimPrefix(p, ClaimsDir+"/")) }

// ClaimOfListed returns the path of the claim with the given file name in the shared list. The boolean result reports
// whether name is the file name of a claim or of ClaimsAbout.
func ClaimOfListed(name string) (p string, is bool) {
	file, err := url.PathUnescape(name)
	p = ClaimsDir + "/" + file
	at := Locate(p)
	return p, err == nil && (p == ClaimsAbout || at.Kind == KindClaim && at.Bad == "")
}

// AttachmentPath returns the path of an attachment, given the SHA-1 of its content in hex. The argument ext begins
// with a dot or is empty.
func AttachmentPath(sum, ext string) string {
	return AttachmentsDir + "/" + sum[:2] + "/" + sum + ext
}

// MachinePath returns the path of the public key that a machine publishes, given the key's id.
func MachinePath(keyID string) string { return MachinesDir + "/" + keyID + ".key" }

// MachineOfKey returns the key id in a path that MachinePath returned. The boolean result reports whether p is such a
// path.
func MachineOfKey(p string) (keyID string, is bool) {
	keyID, is = strings.CutSuffix(path.Base(p), ".key")
	return keyID, is && MachinePath(keyID) == p
}

// MachineFormatPath returns the path of the file in which a machine publishes the highest project format that it
// supports, given the id of the machine's key. Older versions keep and synchronize this file, but do not read it.
func MachineFormatPath(keyID string) string { return MachinesDir + "/" + keyID + ".format" }

// AttachmentSum returns the SHA-1 (in hex) in an attachment's path, or "" for any other path.
func AttachmentSum(p string) string {
	base := path.Base(p)
	sum, _, _ := strings.Cut(base, ".")
	if len(sum) != 2*sha1.Size || strings.Trim(sum, "0123456789abcdef") != "" || AttachmentPath(sum, base[len(sum):]) != p || Ignored(base) {
		return ""
	}
	return sum
}

// MessageFiles lists the file names that can belong to a message: the file names of the message, its copies and their
// marks.
func MessageFiles(id string) []string {
	copied := id + ".md"
	return []string{copied, ReadMark(copied), AckMark(copied), ArchivedMark(copied), LaterMark(copied)}
}

// ReadMark returns the path of the mark that records that the inbox copy at p was read.
func ReadMark(p string) string { return strings.TrimSuffix(p, ".md") + ".read" }

// AckMark returns the path of the mark that records that the inbox copy at p was acknowledged.
func AckMark(p string) string { return strings.TrimSuffix(p, ".md") + ".ack" }

// ArchivedMark returns the path of the mark that records that the inbox copy at p was archived.
func ArchivedMark(p string) string { return strings.TrimSuffix(p, ".md") + ".archived" }

// LaterMark returns the path of the mark that hides the thread of the inbox copy at p until a later time.
func LaterMark(p string) string { return strings.TrimSuffix(p, ".md") + ".later" }

// ReleasedMark returns the path of the mark that records that the claim at p was released.
func ReleasedMark(p string) string { return strings.TrimSuffix(p, ".json") + releasedExt }

// ClaimOfMark returns the path of the claim that the release mark at p belongs to.
func ClaimOfMark(p string) string { return strings.TrimSuffix(p, releasedExt) + ".json" }
