package auth

import (
	"bytes"
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-msgauth/dkim"

	"mailtree/gateway/message"
)

// zone is a resolver for tests that maps names to TXT records. If a name has several records, the string lists them one
// per line.
type zone map[string]string

func (z zone) LookupTXT(_ context.Context, name string) ([]string, error) {
	switch text, ok := z[strings.ToLower(strings.TrimSuffix(name, "."))]; {
	case !ok:
		return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
	case text == "SERVFAIL":
		return nil, &net.DNSError{Err: "server failure", Name: name, IsTemporary: true}
	default:
		return strings.Split(text, "\n"), nil
	}
}

func (z zone) LookupMX(context.Context, string) ([]*net.MX, error) { return nil, nil }

func (z zone) LookupIPAddr(context.Context, string) ([]net.IPAddr, error) { return nil, nil }

func (z zone) LookupAddr(context.Context, string) ([]string, error) { return nil, nil }

var key = sync.OnceValue(func() *rsa.PrivateKey {
	k, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return k
})

func keyRecord(tags string) string {
	der, err := x509.MarshalPKIXPublicKey(&key().PublicKey)
	if err != nil {
		panic(err)
	}
	return "v=DKIM1; k=rsa; " + tags + "p=" + base64.StdEncoding.EncodeToString(der)
}

// world returns the DNS records for the tests. All domains share one key, which the tests use for signing.
func world() zone {
	return zone{
		"_dmarc.bank.example": "v=DMARC1; p=reject", "_dmarc.strict.example": "v=DMARC1; p=reject; adkim=s; aspf=s",
		"_dmarc.two.example": "v=DMARC1; p=none\nv=DMARC1; p=reject", "_dmarc.broken.example": "v=DMARC1; p=perhaps",
		"_dmarc.slow.example": "SERVFAIL", "_dmarc.evil.example": "v=DMARC1; p=none", "_dmarc.odd.example": "some text\nv=DMARC1;p=none",
		"_dmarc.shop.co.uk": "v=DMARC1; p=none", "_dmarc.alice.github.io": "v=DMARC1; p=none", "_dmarc.xn--bank-0na.example": "v=DMARC1; p=none",
		"_dmarc.bank.example.evil.example": "v=DMARC1; p=none",
		"bank.example":                     "v=spf1 ip4:192.0.2.1 -all", "news.bank.example": "v=spf1 ip4:192.0.2.1 -all",
		"evil.example": "v=spf1 +all", "strict.example": "v=spf1 ip4:192.0.2.1 -all", "helo.bank.example": "v=spf1 ip4:192.0.2.1 -all",
		"s._domainkey.bank.example": keyRecord(""), "s._domainkey.news.bank.example": keyRecord(""), "s._domainkey.evil.example": keyRecord(""),
		"s._domainkey.strict.example": keyRecord(""), "s._domainkey.mail.strict.example": keyRecord(""), "s._domainkey.nopolicy.example": keyRecord(""),
		"s._domainkey.two.example": keyRecord(""), "s._domainkey.broken.example": keyRecord(""), "s._domainkey.slow.example": keyRecord(""),
		"s._domainkey.odd.example": keyRecord(""), "s._domainkey.shop.co.uk": keyRecord(""), "s._domainkey.co.uk": keyRecord(""),
		"s._domainkey.other.co.uk": keyRecord(""), "s._domainkey.alice.github.io": keyRecord(""), "s._domainkey.eve.github.io": keyRecord(""),
		"s._domainkey.xn--bank-0na.example": keyRecord(""), "test._domainkey.bank.example": keyRecord("t=y; "),
		"revoked._domainkey.bank.example": "v=DKIM1; p=", "down._domainkey.bank.example": "SERVFAIL",
		"ed._domainkey.bank.example": keyRecord("h=sha1; "), "s._domainkey.bank.example.evil.example": keyRecord(""),
	}
}

const (
	plain = "From: Ann <ann@bank.example>\r\nTo: build@mail.example.net\r\nSubject: Pay\r\nMessage-ID: <1@bank.example>\r\n\r\nPay now.\r\n"
	bank  = "192.0.2.1" // bank.example sends from this machine
	evil  = "203.0.113.9"
)

// signed signs a message on behalf of a domain and returns the signed message.
func signed(t *testing.T, raw, domain, selector string, change func(*dkim.SignOptions)) string {
	t.Helper()
	o := &dkim.SignOptions{Domain: domain, Selector: selector, Signer: key(), Hash: crypto.SHA256, HeaderKeys: []string{"From", "Subject", "To"},
		HeaderCanonicalization: dkim.CanonicalizationRelaxed, BodyCanonicalization: dkim.CanonicalizationRelaxed}
	if change != nil {
		change(o)
	}
	var b bytes.Buffer
	if err := dkim.Sign(&b, strings.NewReader(raw), o); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// signedInPart returns a message whose valid signature covers only the first n bytes of the body. The argument tag is
// the DKIM tag that declares n. If tag is "", the signature does not declare n.
func signedInPart(t *testing.T, raw, domain string, n int, tag string) string {
	t.Helper()
	_, body, _ := strings.Cut(raw, "\r\n\r\n")
	sum := sha256.Sum256([]byte(body[:n]))
	sender, _, _ := strings.Cut(raw, "\r\n")
	field := fmt.Sprintf("DKIM-Signature: v=1; a=rsa-sha256; c=simple/simple; d=%s; s=s; h=From; %sbh=%s; b=", domain, tag,
		base64.StdEncoding.EncodeToString(sum[:]))
	digest := sha256.Sum256([]byte(sender + "\r\n" + field))
	signature, err := rsa.SignPKCS1v15(nil, key(), crypto.SHA256, digest[:])
	if err != nil {
		t.Fatal(err)
	}
	return field + base64.StdEncoding.EncodeToString(signature) + "\r\n" + raw
}

func from(sender string) string { return strings.Replace(plain, "ann@bank.example", sender, 1) }

func smtp(ip, sender string) Peer {
	return Peer{IP: netip.MustParseAddr(ip), Helo: "mx.example", MailFrom: sender}
}

// TestPasses checks that authentic messages pass, and that the result is the sender's domain.
func TestPasses(t *testing.T) {
	t.Parallel()
	results := "Authentication-Results: mx.ours.example; spf=pass (x; y) smtp.mailfrom=\"a;b\"@c.example;\r\n dmarc=pass (p=reject) header.from=bank.example\r\n"
	for name, c := range map[string]struct {
		raw    string
		peer   Peer
		domain string
		by     string
	}{
		"signature":                {signed(t, plain, "bank.example", "s", nil), Peer{}, "bank.example", "dkim"},
		"signature by a subdomain": {signed(t, plain, "news.bank.example", "s", nil), Peer{}, "bank.example", "dkim"},
		"from a subdomain":         {signed(t, from("ann@news.bank.example"), "bank.example", "s", nil), Peer{}, "news.bank.example", "dkim"},
		"strict":                   {signed(t, from("ann@strict.example"), "strict.example", "s", nil), Peer{}, "strict.example", "dkim"},
		"other records too":        {signed(t, from("ann@odd.example"), "odd.example", "s", nil), Peer{}, "odd.example", "dkim"},
		"second of two signatures": {signed(t, signed(t, plain, "bank.example", "s", nil), "evil.example", "s", nil), Peer{}, "bank.example", "dkim"},
		"capital letters":          {signed(t, from("Ann@BANK.example"), "Bank.Example", "s", nil), Peer{}, "bank.example", "dkim"},
		"handmade signature":       {signedInPart(t, plain, "bank.example", len("Pay now.\r\n"), ""), Peer{}, "bank.example", "dkim"},
		"machine":                  {plain, smtp(bank, "x@bank.example"), "bank.example", "spf"},
		"machine of a subdomain":   {plain, smtp(bank, "x@news.bank.example"), "bank.example", "spf"},
		"machine, null sender":     {plain, Peer{IP: netip.MustParseAddr(bank), Helo: "helo.bank.example"}, "bank.example", "spf"},
		"results from our server":  {results + "Received: by ours\r\n" + plain, Peer{Trusted: true}, "bank.example", "mx.ours.example"},
		"name that looks like it":  {signed(t, strings.Replace(plain, "Ann <ann@bank.example>", `"ann@bank.example" <eve@evil.example>`, 1), "evil.example", "s", nil), Peer{}, "evil.example", "dkim"},
		"forged result is below":   {signed(t, "Received: by x\r\n"+results+plain, "bank.example", "s", nil), Peer{Trusted: true}, "bank.example", "dkim"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := check(t, c.raw, c.peer)
			if r.Domain != c.domain || r.By != c.by {
				t.Errorf("%+v, want %s by %s", r, c.domain, c.by)
			}
		})
	}
}

// TestSpoofs checks that messages with a forged sender do not pass. The messages cover every known way to forge a
// sender.
func TestSpoofs(t *testing.T) {
	t.Parallel()
	ours := func(rest string) string { return "Authentication-Results: mx.ours.example; " + rest + "\r\n" }
	pass := ours("dmarc=pass header.from=bank.example")
	arc := func(dmarc string) string {
		return "ARC-Seal: i=1; a=rsa-sha256; cv=none; d=bank.example; s=s; b=eA==\r\n" +
			"ARC-Message-Signature: i=1; a=rsa-sha256; d=bank.example; s=s; h=From; bh=eA==; b=eA==\r\n" +
			"ARC-Authentication-Results: i=1; mx.ours.example; dkim=pass header.d=bank.example; dmarc=" + dmarc + " header.from=bank.example\r\n"
	}
	valid := signed(t, plain, "bank.example", "s", nil)
	sign := func(raw, domain string) string { return signed(t, raw, domain, "s", nil) }
	ofEvil := smtp(evil, "eve@evil.example")
	mta := Peer{Trusted: true}
	for name, c := range map[string]struct {
		raw  string
		peer Peer
	}{
		"nothing":                                {plain, Peer{}},
		"someone else's envelope":                {plain, ofEvil},
		"envelope of the victim":                 {plain, smtp(evil, "ann@bank.example")},
		"null sender":                            {plain, smtp(evil, "")},
		"spf behind our server":                  {plain, Peer{Helo: "bank.example", MailFrom: "ann@bank.example"}},
		"spf of a subdomain, strict":             {from("ann@strict.example"), smtp(bank, "x@mail.strict.example")},
		"someone else's signature":               {sign(plain, "evil.example"), ofEvil},
		"signature by a subdomain, strict":       {sign(from("ann@strict.example"), "mail.strict.example"), Peer{}},
		"signature of a public suffix":           {sign(from("ann@shop.co.uk"), "co.uk"), Peer{}},
		"signature by a neighbor":                {sign(from("ann@shop.co.uk"), "other.co.uk"), Peer{}},
		"signature by a neighboring site":        {sign(from("ann@alice.github.io"), "eve.github.io"), Peer{}},
		"no policy":                              {sign(from("ann@nopolicy.example"), "nopolicy.example"), Peer{}},
		"two policies":                           {sign(from("ann@two.example"), "two.example"), Peer{}},
		"broken policy":                          {sign(from("ann@broken.example"), "broken.example"), Peer{}},
		"policy that cannot be looked up":        {sign(from("ann@slow.example"), "slow.example"), Peer{}},
		"another text":                           {strings.Replace(valid, "Pay now", "Pay me", 1), Peer{}},
		"another subject":                        {strings.Replace(valid, "Subject: Pay", "Subject: Play", 1), Peer{}},
		"a second subject":                       {"Subject: Urgent\r\n" + valid, Peer{}},
		"another sender":                         {strings.Replace(valid, "ann@", "boss@", 1), Peer{}},
		"a second From above":                    {"From: eve@evil.example\r\n" + valid, Peer{}},
		"a second From below":                    {strings.Replace(valid, "\r\n\r\n", "\r\nFrom: boss@bank.example\r\n\r\n", 1), Peer{}},
		"a second From with a space":             {"From : boss@bank.example\r\n" + valid, Peer{}},
		"a second From in capitals":              {"FROM: boss@bank.example\r\n" + valid, Peer{}},
		"a second Content-Type":                  {"Content-Type: text/html\r\nContent-Type: text/plain\r\n" + valid, Peer{}},
		"text after the signed length":           {strings.Replace(valid, "DKIM-Signature: ", "DKIM-Signature: l=10; ", 1), Peer{}},
		"text that is partly signed":             {signedInPart(t, plain, "bank.example", 4, "l=4; "), Peer{}},
		"text that is signed, with a length":     {signedInPart(t, plain, "bank.example", len("Pay now.\r\n"), "l=10; "), Peer{}},
		"text added after a signed length":       {signedInPart(t, plain, "bank.example", len("Pay now.\r\n"), "l=10; ") + "To me.\r\n", Peer{}},
		"subdomain signed by its domain, strict": {sign(from("ann@news.strict.example"), "strict.example"), Peer{}},
		"organization without a policy":          {sign(from("ann@mail.nopolicy.example"), "nopolicy.example"), Peer{}},
		"sha1":                                   {strings.Replace(valid, "a=rsa-sha256", "a=rsa-sha1", 1), Peer{}},
		"signature without a body":               {valid[:strings.Index(valid, "From:")] + "From: Eve <ann@bank.example>\r\n\r\n", Peer{}},
		"only arc":                               {arc("none") + plain, Peer{}},
		"arc that says that dmarc passes":        {arc("pass") + "Received: by ours\r\n" + plain, mta},
		"arc in our name from outside":           {arc("pass") + plain, ofEvil},
		"our name in a comment":                  {"Authentication-Results: (mx.ours.example) mx.evil.example; dmarc=pass header.from=bank.example\r\nReceived: by x\r\n" + plain, mta},
		"our name, then another":                 {"Authentication-Results: mx.ours.example mx.evil.example; dmarc=pass header.from=bank.example\r\nReceived: by x\r\n" + plain, mta},
		"results above and below a hop":          {ours("dmarc=fail header.from=bank.example") + "Received: by ours\r\n" + pass + plain, mta},
		"results in another field":               {strings.Replace(pass, "Authentication-Results", "X-Authentication-Results", 1) + "Received: by x\r\n" + plain, mta},
		"results with a temporary error":         {ours("dmarc=temperror header.from=bank.example") + "Received: by x\r\n" + plain, mta},
		"address only in the name":               {strings.Replace(plain, "Ann <ann@bank.example>", `"ann@bank.example" <eve@evil.example>`, 1), Peer{}},
		"letters that look the same":             {sign(from("ann@b\u0430nk.example"), "evil.example"), ofEvil},
		"expired":                                {signed(t, plain, "bank.example", "s", func(o *dkim.SignOptions) { o.Expiration = time.Unix(1, 0) }), Peer{}},
		"key that is revoked":                    {signed(t, plain, "bank.example", "revoked", nil), Peer{}},
		"key in test mode":                       {signed(t, plain, "bank.example", "test", nil), Peer{}},
		"key that cannot be looked up":           {signed(t, plain, "bank.example", "down", nil), Peer{}},
		"key for another hash":                   {signed(t, plain, "bank.example", "ed", nil), Peer{}},
		"no such key":                            {signed(t, plain, "bank.example", "none", nil), Peer{}},
		"signature without From":                 {strings.Replace(valid, "h=From:", "h=Frog:", 1), Peer{}},
		"i of another domain":                    {strings.Replace(valid, "d=bank.example;", "d=evil.example; i=@bank.example;", 1), Peer{}},
		"two addresses":                          {sign(from("ann@bank.example>, Eve <eve@evil.example"), "bank.example"), Peer{}},
		"two addresses, the other first":         {sign(strings.Replace(plain, "Ann", "eve@evil.example, Ann", 1), "evil.example"), ofEvil},
		"group":                                  {sign(strings.Replace(plain, "Ann <ann@bank.example>", "Bank: ann@bank.example;", 1), "bank.example"), Peer{}},
		"empty group before":                     {sign(strings.Replace(plain, "Ann <", "x:;, Ann <", 1), "bank.example"), Peer{}},
		"no From, but Sender":                    {sign(strings.Replace(plain, "From:", "From-X: x\r\nSender:", 1)+"", "bank.example"), smtp(bank, "ann@bank.example")},
		"no From at all":                         {strings.Replace(plain, "From:", "X:", 1), smtp(bank, "ann@bank.example")},
		"address in brackets twice":              {sign(strings.Replace(plain, "Ann <", "<eve@evil.example> <", 1), "evil.example"), ofEvil},
		"address and comment":                    {sign(strings.Replace(plain, "Ann <ann@bank.example>", "ann@bank.example (<eve@evil.example>", 1), "evil.example"), ofEvil},
		"an IP address as the domain":            {from("ann@[192.0.2.1]"), smtp(bank, "ann@bank.example")},
		"dot after the domain":                   {sign(from("ann@bank.example."), "evil.example"), ofEvil},
		"victim as part of a longer domain":      {sign(from("ann@bank.example.evil.example"), "bank.example"), Peer{}},
		"results from the sender":                {"Received: by ours\r\n" + pass + plain, mta},
		"results from an unknown server":         {pass + "Received: by ours\r\n" + plain, Peer{}},
		"results from another server":            {strings.Replace(pass, "ours", "evil", 1) + "Received: by ours\r\n" + plain, mta},
		"results for another sender":             {ours("dmarc=pass header.from=evil.example") + "Received: by ours\r\n" + plain, mta},
		"results twice":                          {pass + ours("dmarc=fail header.from=bank.example") + "Received: by ours\r\n" + plain, mta},
		"results twice, the other first":         {ours("dmarc=fail header.from=bank.example") + pass + "Received: by ours\r\n" + plain, mta},
		"results that fail":                      {ours("dmarc=fail header.from=bank.example") + "Received: by ours\r\n" + valid, mta},
		"results in a comment":                   {ours("dmarc=fail (x; dmarc=pass header.from=bank.example) header.from=bank.example") + "Received: by x\r\n" + plain, mta},
		"results in quotation marks":             {ours(`spf=pass smtp.mailfrom="; dmarc=pass header.from=bank.example; x="@evil.example`) + "Received: by x\r\n" + plain, mta},
		"results in an unclosed quotation":       {ours(`spf=pass smtp.mailfrom=x"; dmarc=pass header.from=bank.example`) + "Received: by x\r\n" + plain, mta},
		"results after an extra parenthesis":     {ours(`spf=pass (by x) ; y) ; dmarc=pass header.from=bank.example`) + "Received: by x\r\n" + plain, mta},
		"results from a longer name":             {strings.Replace(pass, "ours.example", "ours.example.evil.example", 1) + "Received: by x\r\n" + plain, mta},
		"results without a trusted name or hop":  {strings.Replace(pass, "mx.ours.example", "", 1) + plain, mta},
		"results for one of two senders":         {pass + "Received: by x\r\n" + strings.Replace(plain, "Ann <", "eve@evil.example, <", 1), mta},
		"signature only in the results":          {ours("dkim=pass header.d=bank.example; spf=pass smtp.mailfrom=bank.example") + "Received: by x\r\n" + plain, mta},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := check(t, c.raw, c.peer)
			if r.Domain != "" || r.Auth() != "none" || r.Reason == "" {
				t.Errorf("the check passed: %+v", r)
			}
			t.Log(r.Reason)
		})
	}
}

func check(t *testing.T, raw string, peer Peer) Result {
	t.Helper()
	m, err := message.Parse([]byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	c := &Checker{Resolver: world(), Trusted: "mx.ours.example"}
	return c.Check(t.Context(), strings.NewReader(raw), m, peer)
}
