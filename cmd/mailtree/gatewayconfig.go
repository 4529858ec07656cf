package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os/user"
	"slices"
	"strconv"
	"strings"

	"mailtree/gateway/in"
	"mailtree/gateway/out"
	"mailtree/maildir/address"
)

// gatewaySettings are the settings for mail to and from other domains. See docs/reference/email.md, "The gateway".
func gatewaySettings() []setting {
	return []setting{
		{
			Name: "GATEWAY_LISTEN",
			Help: "addresses at which to receive mail from other domains, separated by commas: lmtp+unix:/PATH, " +
				"lmtp://127.0.0.1:2400, smtp://:25",
		},
		{Name: "GATEWAY_POSTMASTER", Help: "mailbox for postmaster@ and abuse@; required with GATEWAY_LISTEN"},
		{Name: "GATEWAY_CATCHALL", Help: "mailbox for mail to unknown addresses; if not set, the server refuses such mail"},
		{Name: "GATEWAY_CERT", Help: "PEM file with the certificate chain for STARTTLS"},
		{Name: "GATEWAY_KEY", Help: "PEM file with the certificate's private key"},
		{
			Name: "GATEWAY_MTA_USER",
			Help: "OS user that this machine's mail server runs as, such as postfix; required with TRUSTED_AUTHSERV",
		},
		{Name: "TRUSTED_AUTHSERV", Help: "name of this machine's mail server in Authentication-Results headers; " +
			"mailtree trusts results with that name"},
		{Name: "GATEWAY_ALLOW", Help: "domains that mail may be sent to, separated by commas; * means all"},
		{Name: "GATEWAY_RATE", Default: "60", Help: "maximum number of emails to other domains per mailbox per hour"},
		{Name: "GATEWAY_SMARTHOST", Help: "relay for mail to other domains: smtps://USER@HOST:465 or smtp://HOST:587 " +
			"(default: deliver to each domain's MX)"},
		{Name: "GATEWAY_PASSWORD_FILE", Help: "file whose first line is the password for GATEWAY_SMARTHOST"},
		{Name: "GATEWAY_RESOLVER", Help: "DNS server, as ADDRESS:PORT (default: the system's resolver)"},
	}
}

// parseGateway reads and checks the gateway's settings.
func (c *config) parseGateway(v map[string]string, home func() (string, error)) (errs []error) {
	bad := func(name, want string) {
		errs = append(errs, fmt.Errorf("%s is %q, but must be %s", name, v[name], want))
	}
	note := func(name string, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
		}
	}
	g := &c.Gateway
	var err error
	g.Listen, err = in.ParseListen(v["GATEWAY_LISTEN"])
	note("GATEWAY_LISTEN", err)
	named := address.Domains(c.Domains).Named
	g.CatchAll, g.Postmaster, g.Authserv = named(v["GATEWAY_CATCHALL"]), named(v["GATEWAY_POSTMASTER"]), v["TRUSTED_AUTHSERV"]
	if len(g.Listen) > 0 && g.Postmaster == "" {
		errs = append(errs, errors.New("GATEWAY_LISTEN is set, but GATEWAY_POSTMASTER is not: set it to the mailbox for "+
			"postmaster@ and abuse@"))
	}
	if (v["GATEWAY_CERT"] == "") != (v["GATEWAY_KEY"] == "") {
		errs = append(errs, errors.New("only one of GATEWAY_CERT and GATEWAY_KEY is set: STARTTLS needs both files"))
	} else if v["GATEWAY_CERT"] != "" {
		pair, err := tls.LoadX509KeyPair(v["GATEWAY_CERT"], v["GATEWAY_KEY"])
		note("GATEWAY_CERT", err)
		g.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	}
	g.MTAUser = -1
	if name := v["GATEWAY_MTA_USER"]; name != "" {
		if g.MTAUser, err = uidOf(name); err != nil {
			bad("GATEWAY_MTA_USER", "a user on this machine, such as postfix")
		}
	} else if g.Authserv != "" {
		errs = append(errs, errors.New("TRUSTED_AUTHSERV is set, but GATEWAY_MTA_USER is not: set it to the OS user that "+
			"the mail server runs as"))
	}
	g.Allow = fieldsOf(strings.ToLower(v["GATEWAY_ALLOW"]))
	if !all(g.Allow, func(d string) bool { return d == "*" || mailDomain(d) }) {
		bad("GATEWAY_ALLOW", "domains such as example.org, separated by commas, or *")
	}
	if g.Rate, err = strconv.Atoi(v["GATEWAY_RATE"]); err != nil || g.Rate < 1 || g.Rate > 100_000 {
		bad("GATEWAY_RATE", "a number from 1 to 100000")
	}
	if host := v["GATEWAY_SMARTHOST"]; host != "" {
		g.Smarthost, err = out.ParseSmarthost(host)
		note("GATEWAY_SMARTHOST", err)
	}
	if file := v["GATEWAY_PASSWORD_FILE"]; file != "" && g.Smarthost != nil {
		g.Smarthost.PasswordFile, err = absolute(file, home)
		note("GATEWAY_PASSWORD_FILE", err)
	}
	if g.Smarthost != nil && g.Smarthost.User != "" && g.Smarthost.PasswordFile == "" {
		errs = append(errs, errors.New("GATEWAY_SMARTHOST contains a user name, but GATEWAY_PASSWORD_FILE is not set: set it to a "+
			"file that contains the password"))
	}
	if g.DNS = v["GATEWAY_RESOLVER"]; g.DNS != "" {
		if _, _, err := net.SplitHostPort(g.DNS); err != nil {
			bad("GATEWAY_RESOLVER", "an address with a port, such as 127.0.0.1:53")
		}
	}
	return errs
}

// uidOf returns the uid of a user given by name or number.
func uidOf(name string) (int, error) {
	if u, err := user.Lookup(name); err == nil {
		name = u.Uid
	}
	return strconv.Atoi(name)
}

// fieldsOf splits a list at commas. It drops empty elements, and the spaces around elements.
func fieldsOf(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })
}

func all(list []string, is func(string) bool) bool {
	return !slices.ContainsFunc(list, func(s string) bool { return !is(s) })
}
