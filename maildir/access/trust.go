package access

import (
	"slices"
	"strings"

	"mailtree/maildir/core"
	"mailtree/maildir/format"
	"mailtree/maildir/refusal"
)

// A mailbox trusts mail from another domain if that domain vouches for the sender and the sender is on the mailbox's
// list. The lists are stored in the store's trusted_senders.json, never in a tree, because a `git pull` could change
// them there. See docs/reference/email.md, "Trust".

// maxTrustedSenders is the maximum number of senders that a mailbox may trust.
const maxTrustedSenders = 1000

// senderNamed returns a sender in the form that the lists use. This is an address, or @DOMAIN for all addresses at a
// domain. senderNamed returns ErrInvalid if the sender has neither form.
func senderNamed(given string) (string, error) {
	address := strings.TrimSpace(given)
	all := strings.HasPrefix(address, "@")
	if all {
		address = "anybody" + address
	}
	a, err := format.ParseAddress(address)
	if err != nil || a.IsAgent() {
		return "", &refusal.Error{
			What: refusal.Invalid("{name} is not a valid sender: use an address such as ann@example.org, " +
				"or @example.org for a whole domain."),
			Name: given,
		}
	}
	if all {
		return "@" + a.Domain, nil
	}
	return a.String(), nil
}

// TrustSender adds a sender to the mailbox's trusted senders. The sender is an address, or @DOMAIN for all addresses at
// a domain. TrustSender returns ErrInvalid if the sender has neither form, ErrTooLarge if the list is full, or
// ErrUnavailable.
func (b *Box) TrustSender(sender string) error {
	sender, err := senderNamed(sender)
	if err != nil {
		return err
	}
	if _, domain, _ := strings.Cut(sender, "@"); b.v.mail.Store.Domains.Has(domain) {
		return &refusal.Error{
			What: refusal.Invalid("{name} is at one of this server's own domains. Mail that is sent through this " +
				"server needs no trust. Mail from another server that claims one of these domains is never trusted."),
			Name: sender,
		}
	}
	return b.v.mail.Store.Trusted.Edit(b.v.mail.Slug, b.Name, func(list []string) ([]string, error) {
		switch {
		case slices.ContainsFunc(list, func(s string) bool { return strings.EqualFold(s, sender) }):
			return list, nil
		case len(list) >= maxTrustedSenders:
			return nil, &refusal.Error{
				What: refusal.TooLarge("The mailbox {name} trusts {limit} senders, which is the limit: remove one " +
					"first."),
				Name:  b.Name,
				Limit: maxTrustedSenders,
			}
		}
		list = append(list, sender)
		slices.Sort(list)
		return list, nil
	})
}

// DistrustSender removes a sender from the mailbox's trusted senders. If the sender is not on the list, it returns
// ErrNotFound with a list of the trusted senders. It may also return ErrInvalid or ErrUnavailable.
func (b *Box) DistrustSender(sender string) error {
	sender, err := senderNamed(sender)
	if err != nil {
		return err
	}
	return b.v.mail.Store.Trusted.Edit(b.v.mail.Slug, b.Name, func(list []string) ([]string, error) {
		left := slices.DeleteFunc(slices.Clone(list), func(s string) bool { return strings.EqualFold(s, sender) })
		if len(left) == len(list) {
			return nil, &refusal.Error{
				What:  refusal.NotFound("The mailbox {=other} does not trust {name}."),
				Name:  sender,
				Other: b.Name,
				Near:  core.Few(list),
			}
		}
		return left, nil
	})
}

// TrustedSenders lists the senders that the mailbox trusts. It returns ErrUnavailable if the lists cannot be read.
func (b *Box) TrustedSenders() ([]string, error) {
	return b.v.mail.Store.Trusted.Of(b.v.mail.Slug, b.Name)
}
