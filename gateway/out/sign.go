package out

import (
	"bytes"
	"crypto"

	"github.com/emersion/go-msgauth/dkim"
)

// signed contains the fields that a signature covers. The signature lists each field once more than it occurs in the
// message, so that adding another one breaks the signature. Spec: RFC 6376 8.15.
var signed = []string{"From", "To", "Cc", "Subject", "Date", "Message-ID", "Reply-To", "In-Reply-To", "References", "MIME-Version",
	"Content-Type"}

// Signer signs mail on behalf of a domain.
type Signer struct {
	Domain   string
	Selector string
	Key      crypto.Signer
}

// Sign adds a DKIM-Signature field at the top of a composed message, and returns the result.
func (s *Signer) Sign(raw []byte) ([]byte, error) {
	var b bytes.Buffer
	err := dkim.Sign(&b, bytes.NewReader(raw), &dkim.SignOptions{
		Domain: s.Domain, Selector: s.Selector, Signer: s.Key, Hash: crypto.SHA256,
		HeaderCanonicalization: dkim.CanonicalizationRelaxed, BodyCanonicalization: dkim.CanonicalizationRelaxed,
		HeaderKeys: append(present(raw), signed...),
	})
	return b.Bytes(), err
}

// present returns the fields in signed that a composed message contains. It lists each field only once.
func present(raw []byte) (names []string) {
	head, _, _ := bytes.Cut(raw, []byte("\r\n\r\n"))
	head = append([]byte("\n"), bytes.ToLower(head)...)
	for _, name := range signed {
		if bytes.Contains(head, append([]byte("\n"), append(bytes.ToLower([]byte(name)), ':')...)) {
			names = append(names, name)
		}
	}
	return names
}
