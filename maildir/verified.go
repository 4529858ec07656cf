package maildir

import (
	"mailtree/maildir/format"
	"mailtree/maildir/index"
	"mailtree/maildir/keys"
)

// Verified reports whether the seal of m is by a trusted key or the store's own key and still fits m, and
// who vouches for m then. It reports false for a message that was made or edited by hand, and for a seal by
// an untrusted key.
func (s *Store) Verified(m *format.Message) (keys.Voucher, bool) { return s.keys.Verified(m) }

// VerifiedIn is Verified for a message of the index. A message that this store's server sealed for another
// project is not verified, nor is one in an inbox that it was not sent to, nor one of another domain for which
// nobody vouches. If the message is not verified,
// the Voucher is zero, which means that no one vouches.
func (s *Store) VerifiedIn(m *index.MessageRow) (keys.Voucher, bool) {
	v, ok := s.Verified(&m.Message)
	ok = ok && (m.Door != format.DoorGateway || m.Auth != "none")
	if p := s.known(m.Project); !ok || m.Astray || v.Machine == "" && p != nil && m.Message.Project != p.name() {
		return keys.Voucher{}, false
	}
	return v, ok
}

// verifiedHere is Verified for the store's own seals only: auth is how this server itself authenticated the
// sender.
func (s *Store) verifiedHere(m *format.Message) (auth string, ok bool) {
	v, ok := s.Verified(m)
	if !ok || v.Machine != "" {
		return "", false
	}
	return v.Auth, true
}
