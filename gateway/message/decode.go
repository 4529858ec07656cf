package message

import (
	"bytes"
	"encoding/base64"
	"errors"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/emersion/go-message/charset"
	"golang.org/x/text/encoding/charmap"

	"mailtree/maildir/format"
)

// decode undoes the transfer encoding of a part. What is wrong in it is named and left as it stands:
// a program that cuts or wraps lines must not make a text unreadable.
func (w *walker) decode(header []Field, body []byte) []byte {
	switch encoding := keyword(value(header, "Content-Transfer-Encoding")); encoding {
	case "", "7bit", "8bit", "binary":
		return bytes.Clone(body)
	case "quoted-printable":
		data, whole := quotedPrintable(body)
		if !whole {
			w.m.problem("a part is not what quoted-printable allows")
		}
		return data
	case "base64":
		data, whole := fromBase64(body)
		if !whole {
			w.m.problem("a part is not what base64 allows")
		}
		return data
	default:
		w.m.problem("the transfer encoding %s is unknown: the part is kept as it came", format.Quote(encoding))
		return bytes.Clone(body)
	}
}

// quotedPrintable decodes a text and leaves what is not of that encoding as it is. Spec: RFC 2045
// 6.7.
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
			if text[0] != '=' {
				data, text = append(data, text[0]), text[1:]
				continue
			}
			var b byte
			if len(text) < 3 || !hexByte(text[1:3], &b) {
				data, text, whole = append(data, '='), text[1:], false
				continue
			}
			data, text = append(data, b), text[3:]
		}
		data = append(data, end...)
	}
	return data, whole
}

func hexByte(digits []byte, b *byte) bool {
	*b = 0
	for _, c := range bytes.ToLower(digits) {
		at := strings.IndexByte("0123456789abcdef", c)
		if at < 0 {
			return false
		}
		*b = *b<<4 | byte(at)
	}
	return true
}

// fromBase64 decodes until the padding, and passes over what is no letter of the alphabet.
func fromBase64(body []byte) (data []byte, whole bool) {
	letters := make([]byte, 0, len(body))
	whole = true
	for _, c := range body {
		switch {
		case c >= 'A' && c <= 'Z', c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '+', c == '/':
			letters = append(letters, c)
		case c == '=':
			return decodeLetters(letters, whole)
		default:
			whole = whole && strings.IndexByte(" \t\r\n", c) >= 0
		}
	}
	return decodeLetters(letters, whole && len(letters)%4 == 0)
}

func decodeLetters(letters []byte, whole bool) ([]byte, bool) {
	if len(letters)%4 == 1 {
		letters, whole = letters[:len(letters)-1], false
	}
	data := make([]byte, base64.RawStdEncoding.DecodedLen(len(letters)))
	n, err := base64.RawStdEncoding.Decode(data, letters)
	return data[:n], whole && err == nil
}

// decodeText is the text of a part: decoded, in UTF-8, with LF as line end.
func (w *walker) decodeText(header []Field, body []byte, params map[string]string) string {
	text := w.toUTF8(params["charset"], w.decode(header, body))
	text = strings.ReplaceAll(text, "\r\n", "\n")
	text = strings.ReplaceAll(text, "\r", "\n")
	text = strings.ReplaceAll(text, "\x00", "\ufffd")
	return strings.TrimRight(text, " \t\n")
}

// toUTF8 reads a text of a charset. Where the charset is unknown, or the text breaks its rules, it
// is UTF-8 if it can be, else Windows-1252.
func (w *walker) toUTF8(name string, data []byte) string {
	name = strings.ToLower(strings.TrimSpace(name))
	switch name {
	case "", "us-ascii", "ascii":
		if utf8.Valid(data) {
			return string(data)
		}
		return latin(string(data))
	case "iso-8859-1", "latin1": // which programs write where they mean its successor
		return latin(string(data))
	case "utf-8", "utf8":
		if !utf8.Valid(data) {
			w.m.problem("a part is not in UTF-8, as it says")
			return latinWhereNotUTF8(data)
		}
		return string(data)
	}
	text, err := fromCharset(name, data)
	if err != nil {
		w.m.problem("the charset %s is unknown: the text may be wrong", format.Quote(name))
		return latinWhereNotUTF8(data)
	}
	return text
}

func latinWhereNotUTF8(data []byte) string {
	if utf8.Valid(data) {
		return string(data)
	}
	if strings.Count(strings.ToValidUTF8(string(data), "\ufffd"), "\ufffd")*20 < len(data) { // a few bad bytes
		return strings.ToValidUTF8(string(data), "\ufffd")
	}
	return latin(string(data))
}

// latin reads a text as Windows-1252, which has a letter for nearly each byte.
func latin(s string) string {
	text, err := charmap.Windows1252.NewDecoder().String(s)
	if err != nil {
		return strings.ToValidUTF8(s, "\ufffd")
	}
	return text
}

func fromCharset(name string, data []byte) (string, error) {
	r, err := charsetReader(name, bytes.NewReader(data))
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(r)
	return strings.ToValidUTF8(string(text), "\ufffd"), err
}

// charsetReader is charset.Reader without what that is wrong about: an empty name.
func charsetReader(name string, r io.Reader) (io.Reader, error) {
	switch strings.ToLower(name) {
	case "":
		return nil, errors.New("no charset")
	case "utf-8", "utf8", "us-ascii", "ascii":
		return r, nil
	}
	return charset.Reader(name, r)
}
