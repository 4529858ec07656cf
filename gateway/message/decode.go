package message

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"strings"

	"mailtree/maildir/format"
	"mailtree/maildir/lazy"
)

// decode decodes a part's transfer encoding. If the encoded text is invalid, decode reports a problem and leaves the
// text unchanged. That way, a message stays readable even if a program has truncated or wrapped its lines.
func (m *Message) decode(header []Field, body []byte) (data []byte) {
	whole := true
	encoding := keyword(value(header, "Content-Transfer-Encoding"))
	switch encoding {
	case "", "7bit", "8bit", "binary":
		return bytes.Clone(body)
	case "quoted-printable":
		data, whole = quotedPrintable(body)
	case "base64":
		if !looksLikeBase64(body) {
			m.problem("a part is labeled as base64 but is not valid base64, so it was not decoded")
			return bytes.Clone(body)
		}
		data, whole = fromBase64(body)
	case "x-uuencode", "uuencode", "x-uue", "uue":
		if data, whole = fromUU(body); len(data) == 0 {
			data = bytes.Clone(body)
		}
	default:
		m.problem("the transfer encoding %s is unknown, so the part was not decoded", format.Quote(encoding))
		return bytes.Clone(body)
	}
	if !whole {
		m.problem("a part contains invalid %s", encoding)
	}
	return data
}

// quotedPrintable decodes quoted-printable text, and copies invalid parts unchanged. It also reports whether all of the
// text was valid. Spec: RFC 2045 6.7.
func quotedPrintable(body []byte) (data []byte, whole bool) {
	data, whole = make([]byte, 0, len(body)), true
	for line := range bytes.Lines(body) {
		text := bytes.TrimRight(line, "\r\n")
		end := line[len(text):]
		text = bytes.TrimRight(text, " \t")
		if rest, soft := bytes.CutSuffix(text, []byte("=")); soft {
			text, end = rest, nil
		}
		for len(text) > 0 {
			var b [1]byte
			if text[0] == '=' && len(text) >= 3 {
				if _, err := hex.Decode(b[:], text[1:3]); err == nil {
					data, text = append(data, b[0]), text[3:]
					continue
				}
			}
			whole = whole && text[0] != '='
			data, text = append(data, text[0]), text[1:]
		}
		data = append(data, end...)
	}
	return data, whole
}

// fromBase64 decodes base64. The input may consist of several padded blocks in a row. Characters outside the alphabet
// are skipped. fromBase64 also reports whether the input was valid.
func fromBase64(body []byte) (data []byte, whole bool) {
	whole = true
	var letters []byte
	flush := func() {
		if len(letters)%4 == 1 { // a single leftover letter does not encode a byte
			letters, whole = letters[:len(letters)-1], false
		}
		var err error
		data, err = base64.RawStdEncoding.AppendDecode(data, letters)
		whole = whole && err == nil
		letters = letters[:0]
	}
	padded := false
	for _, c := range body {
		switch {
		case inBase64(c):
			letters = append(letters, c)
			padded = false
		case c == '=':
			flush()
			padded = true
		default:
			whole = whole && isBlank(c)
		}
	}
	whole = whole && (padded || len(letters)%4 == 0)
	flush()
	return data, whole
}

func inBase64(c byte) bool {
	return c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '+' || c == '/'
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }

// looksLikeBase64 reports whether body could be base64 with a few invalid characters. There must be at least ten base64
// characters for each invalid character. A space inside a line counts as invalid.
func looksLikeBase64(body []byte) bool {
	letters, others := 0, 0
	for line := range bytes.Lines(body) {
		for _, c := range bytes.TrimSpace(line) {
			if inBase64(c) || c == '=' {
				letters++
			} else {
				others++
			}
		}
	}
	return others*10 <= letters
}

// fromUU decodes uuencoded text, which consists of the lines between "begin MODE NAME" and "end". It also reports
// whether both delimiter lines exist and every line between them has its declared length.
func fromUU(body []byte) (data []byte, whole bool) {
	begun, whole := false, true
	for line := range bytes.Lines(body) {
		line = bytes.TrimRight(line, "\r\n")
		switch {
		case !begun:
			begun = bytes.HasPrefix(line, []byte("begin "))
		case string(line) == "end":
			return data, whole
		case len(line) > 0:
			text, ok := uuLine(line)
			data, whole = append(data, text...), whole && ok
		}
	}
	return data, false
}

// uuLine decodes a line of uuencoded text. The first character declares the line's length in bytes. It is followed by
// four characters for every three bytes. uuLine also reports whether the line has the declared length.
func uuLine(line []byte) (data []byte, whole bool) {
	size, text := int(line[0]-' ')&63, line[1:]
	for ; len(text) > 0 && len(data) < size; text = text[min(4, len(text)):] {
		four := [4]byte{' ', ' ', ' ', ' '}
		copy(four[:], text)
		var bits uint32
		for _, c := range four {
			bits = bits<<6 | uint32(c-' ')&63
		}
		data = append(data, byte(bits>>16), byte(bits>>8), byte(bits))
	}
	return data[:min(size, len(data))], len(data) >= size
}

// decodeText returns a part's text in UTF-8, with LF line endings.
func (m *Message) decodeText(header []Field, body []byte, params map[string]string) string {
	return plainLines(m.toUTF8(params["charset"], m.decode(header, body)))
}

// decodeHTML is like decodeText, but for HTML. If the part does not declare its charset, decodeHTML uses the charset
// declared in the HTML. The returned HTML declares UTF-8.
func (m *Message) decodeHTML(header []Field, body []byte, params map[string]string) string {
	data := m.decode(header, body)
	name := params["charset"]
	if found := metaCharset().FindSubmatch(data[:min(len(data), maxMeta)]); name == "" && found != nil {
		name = string(found[2])
	}
	return plainLines(inUTF8(m.toUTF8(name, data)))
}

// maxMeta is the number of bytes at the beginning of HTML in which to search for the charset. Browsers search 1,024
// bytes.
const maxMeta = 4096

// metaCharset matches a meta element up to the end of its charset.
var metaCharset = lazy.Regexp(`(?i)(<meta\b[^>]*\bcharset\s*=\s*["']?)([^"'\s/>;]+)`)

// inUTF8 changes the charset declared in meta elements at the beginning of HTML to UTF-8.
func inUTF8(text string) string {
	head := format.Cut(text, maxMeta)
	return metaCharset().ReplaceAllString(head, "${1}utf-8") + text[len(head):]
}

func plainLines(text string) string {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	text = strings.ReplaceAll(text, "\r", "\n")
	text = strings.ReplaceAll(text, "\x00", "\ufffd")
	return strings.TrimRight(text, " \t\n")
}
