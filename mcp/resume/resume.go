// Package resume stores on disk what an MCP session needs to continue after a restart of the server: the params of the
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

// Lasts is how long an unused session is kept.
const Lasts = 24 * time.Hour

// The limits of one session. Larger sessions are not kept, so their clients must begin new ones.
const (
	maxURIs  = 256
	maxBytes = 256 << 10
)

// Folder stores sessions. If Dir is empty, it stores nothing. Its methods may be called concurrently for different
// sessions.
type Folder struct {
	Dir  string // created when the first session is stored
	Key  []byte // signs the ids, so that only this server can create them
	Most int    // maximum number of kept sessions; the least recently used ones are dropped
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

// Load returns the stored session. If there is none, if it has been unused for Lasts, or if the id was not created for
// this owner, ok is false.
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

// Save stores a session. If the session exceeds the limits, Save drops it instead. Save returns errors from the file
// system.
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

// makeRoom drops the sessions that have been unused for Lasts, and then the least recently used sessions until there is
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

// Use records that a stored session has just been used. It ignores sessions that are not stored.
func (f *Folder) Use(id string) {
	if f.Dir != "" {
		now := time.Now()
		_ = os.Chtimes(filepath.Join(f.Dir, id), now, now)
	}
}

// Remove drops a session that has ended. The id must have been created by the server.
func (f *Folder) Remove(id string) {
	if f.Dir != "" {
		_ = os.Remove(filepath.Join(f.Dir, id)) // a file that remains is dropped after Lasts
	}
}
