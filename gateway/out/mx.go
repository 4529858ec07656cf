package out

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"

	"mailtree/maildir/outgoing"
)

const maxServers = 5 // maximum number of a domain's servers to try

// Resolver looks up mail servers. *net.Resolver implements it.
type Resolver interface {
	LookupMX(ctx context.Context, name string) ([]*net.MX, error)
	LookupIPAddr(ctx context.Context, host string) ([]net.IPAddr, error)
}

// MX is a Transport that delivers directly to the servers of the recipient's domain. It uses TLS if the server offers
// it. MX does not verify the server's certificate, because the server's name comes from DNS, which is not
// authenticated.
type MX struct {
	Resolver Resolver
	Name     string // our host name, for EHLO

	dial dialer // set by tests; nil means the function dial
}

// Deliver implements Transport.
func (m *MX) Deliver(ctx context.Context, i *outgoing.Item, raw []byte, sending func() error) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, deliveryTime)
	defer cancel()
	domain := i.Domain()
	servers, err := m.Servers(ctx, domain)
	if err != nil {
		return "", err
	}
	for _, server := range servers {
		var reply string
		reply, err = m.through(ctx, server, i, raw, sending)
		var refusal *Refusal
		if err == nil || errors.As(err, &refusal) || errors.Is(err, ErrUnanswered) || errors.Is(err, errStore) {
			return reply, err
		}
	}
	return "", err
}

// Servers returns a domain's mail servers, most preferred first. Spec: RFC 5321 5.1, RFC 7505.
func (m *MX) Servers(ctx context.Context, domain string) (hosts []string, err error) {
	all, err := m.Resolver.LookupMX(ctx, domain)
	var missing *net.DNSError
	if err != nil && !(errors.As(err, &missing) && missing.IsNotFound) {
		return nil, fmt.Errorf("cannot look up the mail servers of %s: %w", domain, err)
	}
	for _, mx := range all {
		if mx.Host == "." {
			return nil, &Refusal{domain + " does not accept mail"}
		}
		hosts = append(hosts, strings.TrimSuffix(mx.Host, "."))
	}
	if len(hosts) == 0 {
		hosts = []string{domain}
	}
	return hosts[:min(len(hosts), maxServers)], nil
}

// shared is the address space that providers share among several customers. Spec: RFC 6598.
var shared = net.IPNet{IP: net.IPv4(100, 64, 0, 0).To4(), Mask: net.CIDRMask(10, 32)}

// public reports whether an address could belong to another domain's mail server. Anyone who controls a domain's DNS
// records can choose the address, but must not be able to make this server connect to machines in its private network.
func public(ip net.IP) bool {
	return ip.IsGlobalUnicast() && !ip.IsPrivate() && !shared.Contains(ip)
}

// through delivers a message through a single server.
func (m *MX) through(ctx context.Context, host string, i *outgoing.Item, raw []byte, sending func() error) (string, error) {
	addresses, err := m.Resolver.LookupIPAddr(ctx, host)
	var missing *net.DNSError
	if errors.As(err, &missing) && missing.IsNotFound && strings.HasSuffix(i.To, "@"+host) {
		return "", &Refusal{"the domain " + host + " does not exist"}
	} else if err != nil {
		return "", err
	}
	connects := m.dial
	if connects == nil {
		connects = dial
	}
	err = fmt.Errorf("%s has no address", host)
	for _, a := range addresses[:min(len(addresses), 2)] {
		if !public(a.IP) {
			err = fmt.Errorf("%s points to %s, which is an address on this machine or a private network. "+
				"To send mail there, set GATEWAY_SMARTHOST", host, a.IP)
			continue
		}
		var conn net.Conn
		if conn, err = connects(ctx, "tcp", net.JoinHostPort(a.String(), "25")); err != nil {
			continue
		}
		defer conn.Close()
		config := &tls.Config{ServerName: host, InsecureSkipVerify: true} //nolint:gosec // as MX documents
		c, err := connect(ctx, conn, m.Name, config, false)
		if err != nil {
			return "", fmt.Errorf("%s: %w", host, err)
		}
		reply, err := transfer(c, i, raw, sending)
		if err == nil {
			c.Quit() // the reply to QUIT does not matter
		}
		return reply, err
	}
	return "", err
}
