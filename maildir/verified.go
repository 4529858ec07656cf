package maildir

import (
	"mailtree/maildir/format"
	"mailtree/maildir/index"
	"mailtree/maildir/keys"
)

// Verified reports whether m is as a server wrote it whose key this store trusts, its own among
// them, and who vouches for it then. A message that is made or edited by hand, or sealed by a key
// that nobody trusts, gives false.
func (s *Store) Verified(m *format.Message) (keys.Voucher, bool) { return s.keys.Verified(m) }

// VerifiedIn is Verified for a message of the index: one that this store's own server sealed for
// another project is not verified where somebody has put it, nor one in an inbox that it was not
// sent to. Of what is not verified the voucher is the zero one, which says that nobody vouches.
func (s *Store) VerifiedIn(m *index.MessageRow) (keys.Voucher, bool) {
	v, ok := s.Verified(&m.Message)
	if p := s.known(m.Project); !ok || m.Astray || v.Machine == "" && p != nil && m.Message.Project != p.name() {
		return keys.Voucher{}, false
	}
	return v, ok
}

// verifiedHere is Verified for the store's own seals alone: what this server itself found out about
// the sender.
func (s *Store) verifiedHere(m *format.Message) (auth string, ok bool) {
	v, ok := s.Verified(m)
	if !ok || v.Machine != "" {
		return "", false
	}
	return v.Auth, true
}
