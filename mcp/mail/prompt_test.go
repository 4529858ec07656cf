package mail

import (
	"regexp"
	"strings"
	"testing"
)

// TestPromptTexts checks that each prompt's text contains exactly the prompt's arguments, and that completions exist
// only for arguments of a prompt or template.
func TestPromptTexts(t *testing.T) {
	for _, p := range prompts {
		given := map[string]string{}
		for _, a := range p.args {
			given[a.name] = "<" + a.name + ">"
		}
		text, err := p.textWith(given)
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range given {
			if !strings.Contains(text, value) {
				t.Errorf("%s leaves %s out", p.name, name)
			}
		}
		if left := regexp.MustCompile(`\{\w+\}`).FindString(text); left != "" {
			t.Errorf("%s has no argument %s", p.name, left)
		}
		for name := range completes[p.name] {
			if given[name] == "" {
				t.Errorf("%s completes %s, which is not an argument", p.name, name)
			}
		}
	}
}

func TestPromptTooLong(t *testing.T) {
	ask := prompts[1]
	long := strings.Repeat("x", maxArgument+1)
	const want = "question is 4097 bytes long, over the limit of 4096: shorten it"
	if _, err := ask.textWith(map[string]string{"to": "BlueLake", "question": long}); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	if _, err := ask.textWith(map[string]string{"to": "BlueLake", "question": long[1:]}); err != nil {
		t.Error(err)
	}
}
