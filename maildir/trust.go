package maildir

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"mailtree/maildir/format"
	"mailtree/maildir/refusal"
	"mailtree/maildir/registry"
	"mailtree/maildir/storedir"
	"mailtree/maildir/tree"
)

// A mailbox trusts mail of another domain if that domain vouches for the sender and the mailbox's list names
// the sender. The lists are in the store's trusted_senders.json, never in a tree that a `git pull` could
// change. See docs/email.md, "Trust".

// maxTrustedSenders is the most senders that a mailbox may trust.
const maxTrustedSenders = 1000

// trustedSenders is the store's trusted_senders.json: {"<slug>/<agent>": ["ann@example.org", "@example.net"]}.
// A person may edit it while a server runs.
type trustedSenders struct {
	file *registry.File[map[string][]string]
}

func newTrustedSenders(root string) trustedSenders {
	file := registry.JSONFile{
		Name: storedir.TrustedSendersFile,
		Wrong: refusal.Unavailable("The store's trusted_senders.json is {why}: put the right file there, or remove this one; until then " +
			"no mail of other domains is trusted."),
		Damaged: refusal.Unavailable("The store's trusted_senders.json is damaged ({why}): mend it; until then no mail of other domains is " +
			"trusted."),
		TooLarge: refusal.TooLarge("The store's trusted_senders.json would have {count} bytes, over the limit of {limit}: take out senders " +
			"that no longer write."),
	}
	return trustedSenders{registry.New(filepath.Join(root, storedir.TrustedSendersFile), registry.Format[map[string][]string]{
		Limit: registry.MaxJSON,
		Parse: func(data []byte, _ tree.FileStat) (all map[string][]string, err error) {
			err = file.Decode(data, &all)
			return all, err
		},
		Print:  func(all map[string][]string) ([]byte, error) { return file.Encode(all) },
		Refuse: file.Refuse,
	})}
}

// of returns the senders that a mailbox trusts, in lower case. It returns ErrUnavailable; no sender is
// trusted then.
func (t *trustedSenders) of(slug, agent string) ([]string, error) {
	all, err := t.file.Load()
	if err != nil {
		return nil, err
	}
	list := slices.Clone(all[slug+"/"+agent])
	for i, sender := range list {
		list[i] = strings.ToLower(sender)
	}
	return list, nil
}

// edit replaces the list of a mailbox by the result of fn, which may change the list that it gets.
func (t *trustedSenders) edit(slug, agent string, fn func([]string) ([]string, error)) error {
	return t.file.Change(func(all map[string][]string) (map[string][]string, error) {
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

// drop forgets the senders that a mailbox trusts.
func (t *trustedSenders) drop(slug, agent string) error {
	return t.edit(slug, agent, func([]string) ([]string, error) { return nil, nil })
}

// senderNamed returns a sender in the form of a list: an address, or @DOMAIN for all addresses of a domain.
// It returns ErrInvalid.
func senderNamed(given string) (string, error) {
	address := strings.TrimSpace(given)
	all := strings.HasPrefix(address, "@")
	if all {
		address = "anybody" + address
	}
	a, err := format.ParseAddress(address)
	if err != nil || a.IsAgent() {
		return "", &Error{
			What: refusal.Invalid("{name} is no sender of another domain: write an address such as ann@example.org, or @example.org " +
				"for all of a domain."),
			Name: given,
		}
	}
	if all {
		return "@" + a.Domain, nil
	}
	return a.String(), nil
}

// TrustSender adds a sender to those that the mailbox trusts: an address, or @DOMAIN for all addresses of a
// domain. It returns ErrInvalid, ErrUnavailable, and ErrTooLarge for a list that may not grow.
func (b *OpenBox) TrustSender(sender string) error {
	sender, err := senderNamed(sender)
	if err != nil {
		return err
	}
	if _, domain, _ := strings.Cut(sender, "@"); b.box.p.store.Domains().Has(domain) {
		return &Error{
			What: refusal.Invalid("{name} is at a domain of this server, whose own mail needs no trust, and none that comes from " +
				"elsewhere under its name gets it."),
			Name: sender,
		}
	}
	return b.box.p.store.trusted.edit(b.box.p.Slug, b.Name, func(list []string) ([]string, error) {
		switch {
		case slices.ContainsFunc(list, func(s string) bool { return strings.EqualFold(s, sender) }):
			return list, nil
		case len(list) >= maxTrustedSenders:
			return nil, &Error{
				What:  refusal.TooLarge("The mailbox {name} trusts {limit} senders, which is the limit: take one out first."),
				Name:  b.Name,
				Limit: maxTrustedSenders,
			}
		}
		list = append(list, sender)
		slices.Sort(list)
		return list, nil
	})
}

// DistrustSender takes a sender from those that the mailbox trusts. It returns ErrInvalid, ErrUnavailable,
// and ErrNotFound, which lists the senders.
func (b *OpenBox) DistrustSender(sender string) error {
	sender, err := senderNamed(sender)
	if err != nil {
		return err
	}
	return b.box.p.store.trusted.edit(b.box.p.Slug, b.Name, func(list []string) ([]string, error) {
		left := slices.DeleteFunc(slices.Clone(list), func(s string) bool { return strings.EqualFold(s, sender) })
		if len(left) == len(list) {
			return nil, &Error{What: refusal.NotFound("The mailbox {=other} does not trust {name}."), Name: sender, Other: b.Name, Near: few(list)}
		}
		return left, nil
	})
}

// TrustedSenders lists the senders that the mailbox trusts. It returns ErrUnavailable.
func (b *OpenBox) TrustedSenders() ([]string, error) {
	return b.box.p.store.trusted.of(b.box.p.Slug, b.Name)
}

// trustsSender reports whether an agent trusts the sender of mail that the sender's domain vouches for. It
// reports false while the lists cannot be read.
func (p *Project) trustsSender(agent, from, auth string) bool {
	at := strings.LastIndexByte(from, '@')
	if at < 0 || auth != "dmarc:"+from[at+1:] {
		return false
	}
	list, err := p.store.trusted.of(p.Slug, agent)
	from = strings.ToLower(from)
	return err == nil && (slices.Contains(list, from) || slices.Contains(list, from[at:]))
}
