package message

import (
	"bytes"
	"encoding/base64"
	"strings"

	"mailtree/maildir/lazy"
)

// encodedWord matches an encoded word, even if its text contains spaces or non-ASCII characters, which are invalid.
// The charset may be followed by a language. Spec: RFC 2047 2, RFC 2231 5.
var encodedWord = lazy.Regexp(`=\?([^?\s*]+)(?:\*[^?\s]*)?\?([bBqQ])\?([^?]*)\?=`)

// readable decodes the encoded words in a human-readable header field.
func (m *Message) readable(value string) string {
	var b strings.Builder
	var charset string
	var words [][]byte // adjacent words in the same charset that have not been converted yet
	flush := func() {
		b.WriteString(m.wordsToUTF8(charset, words))
		words = nil
	}
	at := 0
	for _, found := range encodedWord().FindAllStringSubmatchIndex(value, -1) {
		between := value[at:found[0]]
		name := strings.ToLower(value[found[2]:found[3]])
		if at == 0 || strings.TrimSpace(between) != "" {
			flush()
			b.WriteString(m.utf8(between))
		} else if name != charset {
			flush()
		}
		charset = name
		words = append(words, wordText(value[found[4]:found[5]], value[found[6]:found[7]]))
		at = found[1]
	}
	flush()
	b.WriteString(m.utf8(value[at:]))
	return b.String()
}

// wordsToUTF8 converts adjacent words in the same charset. A program may have split a character across two words, so
// wordsToUTF8 first tries to convert all the words together. If that fails, it converts them one by one.
func (m *Message) wordsToUTF8(charset string, words [][]byte) string {
	if text, err := fromCharset(charset, bytes.Join(words, nil)); err == nil && !strings.Contains(text, "\ufffd") {
		return text
	}
	var b strings.Builder
	for _, word := range words {
		b.WriteString(m.toUTF8(charset, word))
	}
	return b.String()
}

// wordText decodes the text of an encoded word, and copies invalid parts unchanged.
func wordText(encoding, text string) []byte {
	if strings.EqualFold(encoding, "b") {
		data, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(strings.Join(strings.Fields(text), ""), "="))
		if err != nil {
			data, _ = fromBase64([]byte(text))
		}
		return data
	}
	data, _ := quotedPrintable([]byte(strings.ReplaceAll(text, "_", " ") + "|")) // the final | protects trailing spaces
	return data[:len(data)-1]
}
