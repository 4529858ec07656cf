// Package resume keeps on disk what an MCP session needs to go on after the server was started
// anew: what its client said in initialize, and what it subscribed to. Each session is one file of
// a Folder, mode 0600, named by the session's id:
//
//	{"initialize":{"protocolVersion":"2025-06-18",…},"uris":["resource://inbox/BlueLake"]}
//
// A file is read, replaced and removed whole.
package resume

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"mailtree/maildir/tree"
)

// Session is what is kept of a session.
type Session struct {
	Initialize json.RawMessage `json:"initialize"` // the params of its initialize
	URIs       []string        `json:"uris"`       // that it is subscribed to
}

// Lasts is how long a session is kept that nobody uses.
const Lasts = 24 * time.Hour

// Bounds of what is kept of one session. A client that says more begins anew.
const (
	maxURIs  = 256
	maxBytes = 256 << 10
)

// Folder keeps sessions. With no Dir it keeps none. Its methods may run at once for different
// sessions.
type Folder struct {
	Dir  string // made when the first session is kept
	Key  []byte // signs the ids; whoever does not know it cannot make one
	Most int    // sessions that are kept; of more, the ones unused for longest are dropped
}

// nonceLen is the length of rand.Text.
const nonceLen = 26

// NewID makes the id of a session that belongs to owner: a nonce, and the signature of both.
func (f *Folder) NewID(owner string) string {
	nonce := rand.Text()
	return nonce + "." + f.sign(nonce, owner)
}

func (f *Folder) sign(nonce, owner string) string {
	mac := hmac.New(sha256.New, f.Key)
	mac.Write([]byte("session\x00" + nonce + "\x00" + owner))
	return base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(mac.Sum(nil)[:16])
}

// made reports whether NewID made the id for that owner. Such an id is a file name.
func (f *Folder) made(id, owner string) bool {
	nonce, signature, ok := strings.Cut(id, ".")
	plain := len(nonce) == nonceLen && strings.Trim(nonce, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") == ""
	return ok && plain && hmac.Equal([]byte(signature), []byte(f.sign(nonce, owner)))
}

// Load returns what is kept of a session. ok is false where nothing is, where it was unused for
// Lasts, and for an id that was not made for this owner.
func (f *Folder) Load(id, owner string) (s Session, ok bool) {
	if f.Dir == "" || !f.made(id, owner) {
		return s, false
	}
	name := filepath.Join(f.Dir, id)
	info, err := os.Lstat(name)
	if err != nil || time.Since(info.ModTime()) > Lasts {
		return s, false
	}
	data, _, err := tree.ReadPlain(name, maxBytes)
	return s, err == nil && json.Unmarshal(data, &s) == nil && s.Initialize != nil
}

// Save keeps a session, and drops it where there is more to keep of it than may be. Errors: of the
// file system.
func (f *Folder) Save(id string, s Session) error {
	if f.Dir == "" {
		return nil
	}
	data, err := json.Marshal(s)
	if err != nil {
		return err
	}
	if len(s.URIs) > maxURIs || len(data) > maxBytes {
		f.Remove(id)
		return nil
	}
	name := filepath.Join(f.Dir, id)
	if _, err := os.Lstat(name); errors.Is(err, fs.ErrNotExist) {
		if err := f.makeRoom(); err != nil {
			return err
		}
	}
	return tree.WriteFile(name, data)
}

// makeRoom drops the sessions that were unused for Lasts, and of the others so many that there is
// room for one more.
func (f *Folder) makeRoom() error {
	if err := os.MkdirAll(f.Dir, 0o700); err != nil {
		return err
	}
	entries, err := os.ReadDir(f.Dir)
	if err != nil {
		return err
	}
	var kept []fs.FileInfo
	for _, e := range entries {
		info, err := e.Info()
		switch {
		case err != nil || !info.Mode().IsRegular():
		case time.Since(info.ModTime()) > Lasts:
			f.Remove(info.Name())
		default:
			kept = append(kept, info)
		}
	}
	slices.SortFunc(kept, func(a, b fs.FileInfo) int { return a.ModTime().Compare(b.ModTime()) })
	for _, info := range kept[:max(0, len(kept)-f.Most+1)] {
		f.Remove(info.Name())
	}
	return nil
}

// Use notes that a session that is kept is used. Of one that is not kept it notes nothing.
func (f *Folder) Use(id string) {
	if f.Dir != "" {
		now := time.Now()
		_ = os.Chtimes(filepath.Join(f.Dir, id), now, now)
	}
}

// Remove drops a session that has ended. The id is one that the server has made.
func (f *Folder) Remove(id string) {
	if f.Dir != "" {
		_ = os.Remove(filepath.Join(f.Dir, id)) // one that stays is dropped after Lasts
	}
}
