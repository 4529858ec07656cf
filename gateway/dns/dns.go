// Package dns creates the signing key and the DNS records (MX, SPF, DKIM and DMARC) that a domain needs so that other
// servers accept its mail.
package dns

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

const keyBits = 2048 // every server can verify keys of this size, and they fit in a DNS record

// Selector returns the DKIM selector for a key created at the given time, which is "mt" followed by the year.
func Selector(now time.Time) string { return "mt" + strconv.Itoa(now.UTC().Year()) }

// MakeKey creates a key and writes it to a new file that only its owner can read. If the file already exists, MakeKey
// returns fs.ErrExist. It also returns any other write error.
func MakeKey(path string) (*rsa.PrivateKey, error) {
	key, err := rsa.GenerateKey(rand.Reader, keyBits)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	_, err = f.Write(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return nil, errors.Join(err, os.Remove(path))
	}
	return key, nil
}

// LoadKey reads a key written by MakeKey. It returns an error if other users can read the file.
func LoadKey(path string) (*rsa.PrivateKey, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("other users can read %s. To prevent this: `chmod 600 %s`", path, path)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(data)
	if block == nil {
		return nil, fmt.Errorf("%s does not contain a PEM-encoded key", path)
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	pair, ok := key.(*rsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("%s does not contain an RSA key", path)
	}
	return pair, nil
}

// Record is a DNS record that a domain must publish.
type Record struct {
	Type  string // MX or TXT
	Name  string // without a final dot
	Value string
}

// Records returns the records that a domain must publish if host receives and sends the domain's mail and signs it with
// the key.
func Records(domain, host, selector string, key *rsa.PublicKey) ([]Record, error) {
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return nil, err
	}
	return []Record{
		{"MX", domain, "10 " + host},
		{"TXT", domain, "v=spf1 mx -all"},
		{"TXT", selector + "._domainkey." + domain, "v=DKIM1; k=rsa; p=" + base64.StdEncoding.EncodeToString(der)},
		{"TXT", "_dmarc." + domain, "v=DMARC1; p=quarantine; rua=mailto:postmaster@" + domain},
	}, nil
}

// String returns the record as a line of a zone file. The text of a TXT record is split into strings of up to 255
// bytes.
func (r Record) String() string {
	value := r.Value + "."
	if r.Type == "TXT" {
		var parts []string
		for part := range slices.Chunk([]byte(r.Value), 255) {
			parts = append(parts, `"`+string(part)+`"`)
		}
		value = strings.Join(parts, " ")
	}
	return r.Name + ". IN " + r.Type + " " + value
}

// Resolver looks up records. *net.Resolver implements it.
type Resolver interface {
	LookupTXT(ctx context.Context, name string) ([]string, error)
	LookupMX(ctx context.Context, name string) ([]*net.MX, error)
}

// Check looks up the record. If the record is not published, the error is a sentence that says what is published
// instead, without a trailing period. For SPF and DMARC, Check accepts any single policy, because a domain's policy may
// contain more than Records returns.
func (r Record) Check(ctx context.Context, resolver Resolver) error {
	if r.Type == "MX" {
		return r.checkServer(ctx, resolver)
	}
	all, err := resolver.LookupTXT(ctx, r.Name)
	if err != nil {
		return r.missing(err)
	}
	version, _, _ := strings.Cut(strings.ReplaceAll(r.Value, ";", " "), " ")
	var found []string
	for _, text := range all {
		if strings.HasPrefix(strings.ReplaceAll(text, ";", " ")+" ", version+" ") {
			found = append(found, text)
		}
	}
	switch {
	case len(found) == 0:
		return fmt.Errorf("no TXT record at %s begins with %s", r.Name, version)
	case len(found) > 1:
		return fmt.Errorf("%d TXT records at %s begin with %s, so receivers ignore all of them", len(found), r.Name, version)
	case version == "v=DKIM1" && publicKey(found[0]) != publicKey(r.Value):
		return fmt.Errorf("a different key is published at %s", r.Name)
	}
	return nil
}

// missing returns the error to report if looking up the record failed with err. The error distinguishes an unpublished
// record from a failed lookup.
func (r Record) missing(err error) error {
	var none *net.DNSError
	if errors.As(err, &none) && none.IsNotFound {
		return fmt.Errorf("no %s record is published at %s", r.Type, r.Name)
	}
	return fmt.Errorf("cannot look up the %s records of %s: %w", r.Type, r.Name, err)
}

// publicKey returns the key in a DKIM record.
func publicKey(record string) string {
	for tag := range strings.SplitSeq(strings.ReplaceAll(record, " ", ""), ";") {
		if key, ok := strings.CutPrefix(tag, "p="); ok {
			return key
		}
	}
	return ""
}

func (r Record) checkServer(ctx context.Context, resolver Resolver) error {
	all, err := resolver.LookupMX(ctx, r.Name)
	if err != nil {
		return r.missing(err)
	}
	_, host, _ := strings.Cut(r.Value, " ")
	var hosts []string
	for _, mx := range all {
		if hosts = append(hosts, strings.TrimSuffix(mx.Host, ".")); strings.EqualFold(hosts[len(hosts)-1], host) {
			return nil
		}
	}
	return fmt.Errorf("the MX records at %s point to %s, not %s", r.Name, strings.Join(hosts, ", "), host)
}
