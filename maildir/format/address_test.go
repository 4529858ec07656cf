package format

import (
	"strings"
	"testing"
)

func TestParseAddress(t *testing.T) {
	t.Parallel()
	label := strings.Repeat("a", 63)
	long := strings.Repeat(label+".", 3) + label // 255 bytes
	for s, want := range map[string]Address{
		"Ann":                                  {Local: "Ann"},
		"ann@example.org":                      {"ann", "example.org"},
		"Ann.B+x@Example.ORG":                  {"Ann.B+x", "example.org"},
		"o'neil/x=1@localhost":                 {"o'neil/x=1", "localhost"},
		"x@xn--mnchen-3ya.example":             {"x", "xn--mnchen-3ya.example"},
		"x@XN--MNCHEN-3YA.example":             {"x", "xn--mnchen-3ya.example"},
		strings.Repeat("l", 64) + "@" + long:   {strings.Repeat("l", 64), long},
		"../x@example.org":                     {},
		"a@b@example.org":                      {},
		"":                                     {},
		"../x":                                 {},
		"@example.org":                         {},
		"ann@":                                 {},
		".ann@example.org":                     {},
		"ann.@example.org":                     {},
		"a..b@example.org":                     {},
		`"a b"@example.org`:                    {},
		"a b@example.org":                      {},
		"a\n@example.org":                      {},
		"é@example.org":                        {},
		"x@münchen.example":                    {},
		"x@\u212aelvin.example":                {}, // the Kelvin sign; its lower case is an ASCII k
		"x@example.org.":                       {},
		"x@a..b":                               {},
		"x@-a.org":                             {},
		"x@a-.org":                             {},
		"x@a_b.org":                            {},
		"x@[192.0.2.1]":                        {},
		"x@a/b":                                {},
		"x@" + label + "a.org":                 {},
		"x@" + long + ".a":                     {},
		strings.Repeat("l", 65) + "@localhost": {},
	} {
		a, err := ParseAddress(s)
		if a != want || (err != nil) != (want == Address{}) {
			t.Errorf("%q: got %+v, %v", s, a, err)
		}
		if err != nil {
			continue
		}
		if again, err := ParseAddress(a.String()); err != nil || again != a {
			t.Errorf("%q prints as %q, which is parsed as %+v, %v", s, a, again, err)
		}
		if a.IsAgent() != !strings.Contains(s, "@") {
			t.Errorf("%q: IsAgent is %v", s, a.IsAgent())
		}
	}
}
