package markdown

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// sentences cuts prose after ".", "!", "?" (and their full-width forms), closing
// quotes and brackets included. A sentence without such an end is the rest.
func (p prose) sentences() []prose {
	var all []prose
	start := 0
	for start < len(p.mask) {
		end := sentenceEnd(p.mask, start)
		if s := strings.TrimLeft(p.mask[start:end], " "); s != "" {
			all = append(all, p.slice(end-len(s), end))
		}
		start = end
	}
	return all
}

// question says whether the sentence ends in "?", "?!" or the like, and has a
// word.
func (p prose) question() bool {
	s := strings.TrimRight(strings.TrimRightFunc(p.mask, closing), "!！")
	asks := strings.HasSuffix(s, "?") || strings.HasSuffix(s, "？")
	return asks && strings.IndexFunc(s, unicode.IsLetter) >= 0
}

// asks says whether the last sentence is a question.
func (p prose) asks() bool {
	all := p.sentences()
	return len(all) > 0 && all[len(all)-1].question()
}

// beforeQuestions is the prose without the questions at its end.
func (p prose) beforeQuestions() prose {
	told := 0
	for start := 0; start < len(p.mask); {
		end := sentenceEnd(p.mask, start)
		if s := p.slice(start, end); strings.TrimSpace(s.mask) != "" && !s.question() {
			told = end
		}
		start = end
	}
	return p.slice(0, told)
}

// sentenceEnd returns the end of the sentence that begins at start.
func sentenceEnd(s string, start int) int {
	for i := start; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if !terminal(r) {
			i += n
			continue
		}
		end := i + len(s[i:]) - len(strings.TrimLeftFunc(s[i:], terminal))
		end += len(s[end:]) - len(strings.TrimLeftFunc(s[end:], closing))
		if endsHere(s, i, end, r) {
			return end
		}
		i = end
	}
	return len(s)
}

// endsHere says whether the terminal r at i, which with what closes reaches to
// end, ends a sentence: "3.5", "x?y=1", "e.g. this" and "vs. that" go on.
func endsHere(s string, i, end int, r rune) bool {
	if end == len(s) || r > unicode.MaxASCII {
		return true
	}
	if s[end] != ' ' {
		return false
	}
	if r != '.' {
		return true
	}
	next, _ := utf8.DecodeRuneInString(s[end+1:])
	abbreviated := i >= 2 && s[i-2] == '.'
	return !unicode.IsLower(next) && !abbreviated
}

func terminal(r rune) bool {
	switch r {
	case '.', '!', '?', '…', '。', '！', '？':
		return true
	}
	return false
}

func closing(r rune) bool {
	switch r {
	case '"', '\'', '”', '’', '»', ')', ']':
		return true
	}
	return false
}
