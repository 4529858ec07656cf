package format

import "unicode/utf8"

// StartsWithin reports whether offset i in text is inside a character. The text may begin in the middle of a
// character.
func StartsWithin(text string, i int) bool {
	for at := max(0, i-utf8.UTFMax+1); at < i && i < len(text); at++ {
		if _, size := utf8.DecodeRuneInString(text[at:]); at+size > i {
			return true
		}
	}
	return false
}

// HalfCharacter returns how many bytes at the end of text belong to an incomplete character.
func HalfCharacter(text string) int {
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if end := text[len(text)-n:]; utf8.RuneStart(end[0]) {
			if utf8.FullRuneInString(end) {
				return 0
			}
			return n
		}
	}
	return 0
}
