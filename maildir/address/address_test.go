package address

import (
	"errors"
	"strings"
	"testing"

	"mailtree/maildir/refusal"
)

// TestIDOf checks that IDOf accepts ids, and Message-IDs at any domain, with or without brackets. It also checks that
// IDOf rejects anything else, including "".
func TestIDOf(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 998-len("@a"))
	for in, want := range map[string]string{
		"msg_1": "msg_1", " <msg_1@mailtree.local> ": "msg_1", "msg_1@MAILTREE.LOCAL": "msg_1", "<msg_1>": "msg_1",
		"<1.a+b@example.org>": "1.a+b@example.org", "a@b@mailtree.local": "a@b@mailtree.local", long + "@a": long + "@a",
		"": "", "<>": "", "<<msg_1>>": "", "<msg_1": "", "msg_1>": "", "garbage <>": "", "two words": "",
		"a@b c": "", "<a@b> <c@d>": "", "a@b,c@d": "", "@": "", "a@": "", "@a": "", "@mailtree.local": "",
		"../msg_1": "", "a/b@mailtree.local": "", "é": "", "a\u202e@b": "", long + "x@a": "", long: "",
	} {
		got, err := (Domains{Default}).IDOf(refusal.InReplyTo, in)
		if got != want || errors.Is(err, refusal.ErrInvalid) != (want == "") {
			t.Errorf("%q: %q %v, want %q", in, got, err, want)
		}
	}
}
