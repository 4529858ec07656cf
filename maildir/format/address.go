package format

import (
	"cmp"
	"errors"
	"strings"
)

// Address identifies a sender or recipient of a message: one of the project's agents, an agent of another project,
// written as name@slug, or an email address at another domain. Addresses can be compared with ==. Only an agent of
// the project has a folder, so call IsAgent or CheckName before building a path from an address.
type Address struct {
	Local  string // an agent's name, or the part before the @
	Domain string // a lower-case domain (international names as A-labels, xn--…) or a slug; empty for an agent of the project
}

// Limits for an address with a domain, in octets. Spec: RFC 5321 4.5.3.1, RFC 1035 2.3.4.
const (
	maxLocal  = 64
	maxDomain = 255
	maxLabel  = 63
)

// ParseAddress parses an agent's name or local@domain. It converts the domain to lower case, but keeps the case of
// the local part, which only the recipient's server may interpret. The local part must be a Dot-string as defined in
// RFC 5321, and the domain must be a host name: quoted text, IP addresses and non-ASCII letters are invalid. An
// address of an agent of another project (MayBeInProject) is also valid. The error's text is a sentence without its
// final period.
func ParseAddress(s string) (Address, error) {
	at := strings.LastIndexByte(s, '@')
	if at < 0 {
		if why := CheckName(s); why != "" {
			return Address{}, errors.New(Quote(s) + " is not an agent's name: " + why)
		}
		return Address{Local: s}, nil
	}
	a := Address{Local: s[:at], Domain: strings.ToLower(s[at+1:])}
	if why := cmp.Or(checkLocal(s[:at]), checkDomain(s[at+1:])); why != "" && !a.MayBeInProject() {
		return Address{}, errors.New(Quote(s) + " is not an address: " + why)
	}
	return a, nil
}

// MayBeInProject reports whether the address could belong to an agent of another project. This is the case if it
// consists of an agent's name and a slug without a dot. The store's configuration determines whether the domain is a
// slug or an email domain.
func (a Address) MayBeInProject() bool {
	return ValidName(a.Local) && ValidSlug(a.Domain) && !strings.Contains(a.Domain, ".")
}

// IsAgent reports whether the address is an agent's name.
func (a Address) IsAgent() bool { return a.Domain == "" }

// OnThisMachine reports whether the domain is localhost, a name below localhost, or an IP address. Such a domain never
// identifies a mail server on another machine. Spec: RFC 6761 6.3, RFC 3696 2.
func (a Address) OnThisMachine() bool {
	domain := a.Domain
	top := domain[strings.LastIndexByte(domain, '.')+1:]
	return top == "localhost" || top != "" && strings.Trim(top, "0123456789") == ""
}

// String returns the address in the form that ParseAddress reads.
func (a Address) String() string {
	if a.IsAgent() {
		return a.Local
	}
	return a.Local + "@" + a.Domain
}

func checkLocal(local string) string {
	switch {
	case local == "":
		return "there is nothing before the @"
	case len(local) > maxLocal:
		return "the part before the @ is longer than 64 characters"
	case strings.ContainsFunc(local, func(r rune) bool { return !inLocal(r) }):
		return "before the @, use letters, digits and !#$%&'*+-/=?^_`{|}~ with single dots between them"
	case strings.HasPrefix(local, ".") || strings.HasSuffix(local, ".") || strings.Contains(local, ".."):
		return "dots before the @ must be single and cannot come first or last"
	}
	return ""
}

// inLocal reports whether r is a dot or one of RFC 5322's atext characters.
func inLocal(r rune) bool { return inLabel(r) || strings.ContainsRune("!#$%&'*+/=?^_`{|}~.", r) }

func inLabel(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-'
}

// checkDomain returns what is wrong with an email domain, or "" if the domain is valid. It ignores case.
func checkDomain(domain string) string {
	if len(domain) > maxDomain {
		return "the part after the @ is longer than 255 characters"
	}
	if strings.HasPrefix(domain, "[") {
		return "after the @, use a domain name, not an IP address"
	}
	for label := range strings.SplitSeq(domain, ".") {
		switch {
		case label == "":
			return "the domain has an empty part"
		case len(label) > maxLabel:
			return "a part of the domain is longer than 63 characters"
		case strings.ContainsFunc(label, func(r rune) bool { return r >= 0x80 }):
			return "write the domain in ASCII; write international names as xn--…"
		case strings.ContainsFunc(label, func(r rune) bool { return !inLabel(r) }):
			return "the domain contains characters other than letters, digits, '-' and '.'"
		case label[0] == '-' || label[len(label)-1] == '-':
			return "a part of the domain begins or ends with '-'"
		}
	}
	return ""
}
