package message

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/emersion/go-message/charset"
	"golang.org/x/text/encoding/charmap"

	"mailtree/maildir/format"
)

// decode decodes the transfer encoding of a part. It reports invalid text as a problem and leaves the text
// as it is, so that a program that cut or wrapped lines does not make a message unreadable.
func (m *Message) decode(header []Field, body []byte) (data []byte) {
	whole := true
	encoding := keyword(value(header, "Content-Transfer-Encoding"))
	switch encoding {
	case "", "7bit", "8bit", "binary":
		return bytes.Clone(body)
	case "quoted-printable":
		data, whole = quotedPrintable(body)
	case "base64":
		data, whole = fromBase64(body)
	default:
		m.problem("the transfer encoding %s is unknown: the part is kept as it came", format.Quote(encoding))
		return bytes.Clone(body)
	}
	if !whole {
		m.problem("a part is not what %s allows", encoding)
	}
	return data
}

// quotedPrintable decodes a text, and copies what is invalid in it. whole reports that all of it was valid.
// Spec: RFC 2045 6.7.
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

// fromBase64 decodes up to the padding, and skips characters outside the alphabet. whole reports that the
// text was valid.
func fromBase64(body []byte) (data []byte, whole bool) {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	body, _, padded := bytes.Cut(body, []byte("="))
	whole = true
	letters := bytes.Map(func(r rune) rune {
		if strings.ContainsRune(alphabet, r) {
			return r
		}
		whole = whole && strings.ContainsRune(" \t\r\n", r)
		return -1
	}, body)
	whole = whole && (padded || len(letters)%4 == 0)
	if len(letters)%4 == 1 { // the letters that are left over are not a byte
		letters, whole = letters[:len(letters)-1], false
	}
	data, err := base64.RawStdEncoding.AppendDecode(nil, letters)
	return data, whole && err == nil
}

// decodeText returns the text of a part: decoded, in UTF-8, with LF as line end.
func (m *Message) decodeText(header []Field, body []byte, params map[string]string) string {
	text := m.toUTF8(params["charset"], m.decode(header, body))
	text = strings.ReplaceAll(text, "\r\n", "\n")
	text = strings.ReplaceAll(text, "\r", "\n")
	text = strings.ReplaceAll(text, "\x00", "\ufffd")
	return strings.TrimRight(text, " \t\n")
}

// toUTF8 converts text from a charset. If the charset is unknown or the text is invalid in it, toUTF8 takes
// the text as UTF-8 if that is possible, and otherwise as Windows-1252.
func (m *Message) toUTF8(name string, data []byte) string {
	name = strings.ToLower(strings.TrimSpace(name))
	ascii, unicode := name == "" || name == "us-ascii" || name == "ascii", name == "utf-8" || name == "utf8"
	switch {
	case (ascii || unicode) && utf8.Valid(data):
		return string(data)
	case ascii, name == "iso-8859-1", name == "latin1": // programs write these names and mean Windows-1252
		return latin(string(data))
	case unicode:
		m.problem("a part is not in UTF-8, as it says")
		return latinWhereNotUTF8(data)
	}
	text, err := fromCharset(name, data)
	if err != nil {
		m.problem("the charset %s is unknown: the text may be wrong", format.Quote(name))
		return latinWhereNotUTF8(data)
	}
	return text
}

func latinWhereNotUTF8(data []byte) string {
	if utf8.Valid(data) {
		return string(data)
	}
	if strings.Count(strings.ToValidUTF8(string(data), "\ufffd"), "\ufffd")*20 < len(data) { // a few invalid bytes
		return strings.ToValidUTF8(string(data), "\ufffd")
	}
	return latin(string(data))
}

// latin converts text from Windows-1252, which has a character for nearly every byte.
func latin(s string) string {
	text, err := charmap.Windows1252.NewDecoder().String(s)
	if err != nil {
		return strings.ToValidUTF8(s, "\ufffd")
	}
	return text
}

func fromCharset(name string, data []byte) (string, error) {
	if name == "" { // the library takes "" for a charset
		return "", errors.New("no charset")
	}
	r, err := charset.Reader(name, bytes.NewReader(data))
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(r)
	return strings.ToValidUTF8(string(text), "\ufffd"), err
}
