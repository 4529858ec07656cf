package core

import (
	"maps"
	"slices"
	"strings"

	"mailtree/maildir/format"
	"mailtree/maildir/index"
	"mailtree/maildir/keys"
	"mailtree/maildir/refusal"
	"mailtree/maildir/registry"
	"mailtree/maildir/storedir"
)

// Verified reports whether the seal of m is valid and comes from a trusted key or the store's own key. If so, it also
// returns the party that vouches for m. A message that was written or edited by hand, or sealed with an untrusted key,
// is not verified.
func (s *Store) Verified(m *format.Message) (keys.Voucher, bool) { return s.Keys.Verified(m) }

// VerifiedIn is like Verified, but for a message in the index. A message is not verified if this server sealed it for
// another project, if it is in an inbox that it was not sent to, or if its domain does not vouch for it. In these
// cases, the Voucher is zero.
func (s *Store) VerifiedIn(m *index.MessageRow) (keys.Voucher, bool) {
	v, ok := s.Verified(&m.Message)
	ok = ok && (m.Door != format.DoorGateway || m.Auth != "none")
	if p := s.Projects.Mail(m.Project); !ok || m.Astray || v.Machine == "" && p != nil && !p.IsNamed(m.Message.Project) {
		return keys.Voucher{}, false
	}
	return v, ok
}

// VerifiedHere is like Verified, but accepts only the store's own seals. The result auth says how this server
// authenticated the sender.
func (s *Store) VerifiedHere(m *format.Message) (auth string, ok bool) {
	v, ok := s.Verified(m)
	if !ok || v.Machine != "" {
		return "", false
	}
	return v.Auth, true
}

// Trust returns the trust level of a copy in an agent's inbox, based only on the copy's content. See
// docs/reference/email.md, "Trust".
func (c *Mail) Trust(m *format.Message, agent string) string {
	auth, sealed := c.Store.VerifiedHere(m)
	switch {
	case !sealed || !c.IsNamed(m.Project) || !slices.Contains(m.Recipients(), agent):
		return Untrusted
	case m.Door == format.DoorGateway && c.TrustsSender(agent, m.From, auth):
		return Trusted
	case m.Door == format.DoorGateway:
		return Untrusted
	case auth == "token" || strings.HasPrefix(auth, "uid:"):
		return Trusted
	}
	return Unproven
}

// Trust levels of a message in an inbox.
const (
	Trusted   = "true"  // sealed by this server for this inbox, from a sender that is trusted or was authenticated here
	Untrusted = "false" // written or changed by hand, pulled by Git, not sent to this inbox, or from another domain
	Unproven  = "none"  // sealed by this server, but the sender's name is not proven
)

// TrustsSender reports whether the sender's domain vouches for a message, and the agent trusts the sender. If the
// lists of trusted senders cannot be read, it reports false.
func (c *Mail) TrustsSender(agent, from, auth string) bool {
	at := strings.LastIndexByte(from, '@')
	if at < 0 || auth != "dmarc:"+from[at+1:] {
		return false
	}
	list, err := c.Store.Trusted.Of(c.Slug, agent)
	from = strings.ToLower(from)
	return err == nil && (slices.Contains(list, from) || slices.Contains(list, from[at:]))
}

// trustedSenders is the store's trusted_senders.json: {"<slug>/<agent>": ["ann@example.org", "@example.net"]}. The user
// may edit the file while a server is running.
type trustedSenders struct {
	File *registry.File[map[string][]string]
}

// NewTrustedSenders returns the trusted senders of the store whose folder is root.
func NewTrustedSenders(root string) trustedSenders {
	return trustedSenders{registry.NewJSON[map[string][]string](root, registry.JSONFile{
		Name: storedir.TrustedSendersFile,
		Wrong: refusal.Unavailable("The store's trusted_senders.json is {why}. Replace it with a valid file, or " +
			"remove it; until then no mail from other domains is trusted."),
		Damaged: refusal.Unavailable("The store's trusted_senders.json is damaged ({why}). Fix it; until then no " +
			"mail from other domains is trusted."),
		TooLarge: refusal.TooLarge("The store's trusted_senders.json would be {count} bytes, over the limit of " +
			"{limit}: remove senders that no longer write to you."),
	})}
}

// Of returns the senders that a mailbox trusts, in lower case. If it returns ErrUnavailable, callers must trust no
// sender.
func (t *trustedSenders) Of(slug, agent string) ([]string, error) {
	all, err := t.File.Load()
	if err != nil {
		return nil, err
	}
	list := slices.Clone(all[slug+"/"+agent])
	for i, sender := range list {
		list[i] = strings.ToLower(sender)
	}
	return list, nil
}

// Edit replaces a mailbox's list with the result of fn. The function fn may change the slice that it receives.
func (t *trustedSenders) Edit(slug, agent string, fn func([]string) ([]string, error)) error {
	return t.File.Change(func(all map[string][]string) (map[string][]string, error) {
		list, err := fn(slices.Clone(all[slug+"/"+agent]))
		if err != nil {
			return nil, err
		}
		changed := map[string][]string{}
		maps.Copy(changed, all)
		if changed[slug+"/"+agent] = list; len(list) == 0 {
			delete(changed, slug+"/"+agent)
		}
		return changed, nil
	})
}

// Drop removes a mailbox's list of trusted senders.
func (t *trustedSenders) Drop(slug, agent string) error {
	return t.Edit(slug, agent, func([]string) ([]string, error) { return nil, nil })
}
