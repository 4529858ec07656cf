package gateway

import (
	"context"
	"crypto/rsa"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"mailtree/gateway/dns"
	"mailtree/maildir/storedir"
)

const keyExt = ".pem"

// KeyFolder returns the folder that contains the keys that sign a domain's mail. Each key is in a file named
// SELECTOR.pem.
func KeyFolder(store, domain string) string { return filepath.Join(store, storedir.GatewayDir, domain) }

// KeyFile returns the file and the selector of the key that signs a domain's mail. If there are several keys, it
// returns the newest, whose name sorts last. If the domain has no key, KeyFile returns fs.ErrNotExist. It also returns
// any error from reading the folder.
func KeyFile(store, domain string) (file, selector string, err error) {
	folder := KeyFolder(store, domain)
	entries, err := os.ReadDir(folder)
	if err != nil {
		return "", "", err
	}
	for _, e := range slices.Backward(entries) {
		if name, ok := strings.CutSuffix(e.Name(), keyExt); ok {
			return filepath.Join(folder, e.Name()), name, nil
		}
	}
	return "", "", fmt.Errorf("there is no key in %s: %w", folder, fs.ErrNotExist)
}

// LoadKey returns the key that signs a domain's mail, along with its selector. It returns the same errors as KeyFile
// and dns.LoadKey.
func LoadKey(store, domain string) (key *rsa.PrivateKey, selector string, err error) {
	file, selector, err := KeyFile(store, domain)
	if err != nil {
		return nil, "", err
	}
	key, err = dns.LoadKey(file)
	return key, selector, err
}

// MakeKey creates a key for the domain, named after the year. If the domain already has a key, MakeKey does nothing and
// made is false. MakeKey returns any read or write error.
func MakeKey(store, domain string, now time.Time) (made bool, err error) {
	if _, _, err := KeyFile(store, domain); !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	if err := os.MkdirAll(KeyFolder(store, domain), 0o700); err != nil {
		return false, err
	}
	_, err = dns.MakeKey(filepath.Join(KeyFolder(store, domain), dns.Selector(now)+keyExt))
	return err == nil, err
}

// RecordState is a DNS record that a domain must publish, with the result of looking it up.
type RecordState struct {
	dns.Record
	Problem error // nil if the record is published
}

// Records looks up the DNS records that a domain must publish if host receives and sends the domain's mail. It
// returns the same errors as LoadKey.
func (c *Config) Records(ctx context.Context, store, domain, host string) (all []RecordState, err error) {
	key, selector, err := LoadKey(store, domain)
	if err != nil {
		return nil, err
	}
	records, err := dns.Records(domain, host, selector, &key.PublicKey)
	for _, r := range records {
		all = append(all, RecordState{r, r.Check(ctx, c.NameServer())})
	}
	return all, err
}
