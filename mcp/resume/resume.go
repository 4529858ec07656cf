// Package resume stores on disk what the server needs to continue an MCP session after a restart: the params of the
// client's initialize request, and the session's subscriptions. Each session is a file in a Folder, with mode 0600 and
// the session's id as its name:
//
//	{"initialize":{"protocolVersion":"2025-06-18",…},"uris":["resource://inbox/BlueLake"]}
//
// Each file is read, replaced or removed as a whole.
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

// Session is the stored state of one session.
type Session struct {
	Initialize json.RawMessage `json:"initialize"` // the params of the session's initialize request
	URIs       []string        `json:"uris"`       // the resources that the session is subscribed to
}

// Lasts is how long a session is stored after its last use.
const Lasts = 24 * time.Hour

// The limits of a session. A session that exceeds them is not stored, so its client must begin a new session after a
// restart.
const (
	maxURIs  = 256
	maxBytes = 256 << 10
)

// Folder stores sessions. If Dir is empty, it stores nothing. Its methods may be called concurrently for different
// sessions.
type Folder struct {
	Dir  string // created when the first session is stored
	Key  []byte // signs the ids, so that only this server can create them
	Most int    // maximum number of stored sessions; the least recently used ones are dropped
}

// nonceLen is the length of the string that rand.Text returns.
const nonceLen = 26

// NewID returns an id for a new session that belongs to owner. It consists of a nonce and a signature of the nonce and
// the owner.
func (f *Folder) NewID(owner string) string {
	nonce := rand.Text()
	return nonce + "." + f.sign(nonce, owner)
}

func (f *Folder) sign(nonce, owner string) string {
	mac := hmac.New(sha256.New, f.Key)
	mac.Write([]byte("session\x00" + nonce + "\x00" + owner))
	return base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(mac.Sum(nil)[:16])
}

// made reports whether NewID created the id for the given owner. If so, the id is safe to use as a file name.
func (f *Folder) made(id, owner string) bool {
	nonce, signature, ok := strings.Cut(id, ".")
	plain := len(nonce) == nonceLen && strings.Trim(nonce, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") == ""
	return ok && plain && hmac.Equal([]byte(signature), []byte(f.sign(nonce, owner)))
}

// Load returns a stored session. If there is no such session, if it has been unused for Lasts, or if its id was not
// created for this owner, ok is false.
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

// Save stores a session. If the session exceeds the limits, Save removes it from the folder instead. Save returns any
// error from the file system.
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

// makeRoom drops all sessions that have been unused for Lasts. Then it drops the least recently used sessions until
// there is room for one more.
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

// Use records that a stored session is in use. It does nothing if the session is not stored.
func (f *Folder) Use(id string) {
	if f.Dir != "" {
		now := time.Now()
		_ = os.Chtimes(filepath.Join(f.Dir, id), now, now)
	}
}

// Remove removes a session that has ended. The id must come from NewID.
func (f *Folder) Remove(id string) {
	if f.Dir != "" {
		_ = os.Remove(filepath.Join(f.Dir, id)) // a file that remains is dropped once it has been unused for Lasts
	}
}
