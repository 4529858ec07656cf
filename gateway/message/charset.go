package message

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/emersion/go-message/charset"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/encoding/unicode/utf32"

	"mailtree/maildir/format"
	"mailtree/maildir/lazy"
)

// toUTF8 converts text to UTF-8 from the charset with the given name. If the charset is unknown or the text is invalid
// in it, toUTF8 interprets the text as UTF-8 if possible, and as Windows-1252 otherwise.
func (m *Message) toUTF8(name string, data []byte) string {
	name = strings.ToLower(strings.TrimSpace(name))
	ascii, unicode := name == "" || name == "us-ascii" || name == "ascii", name == "utf-8" || name == "utf8"
	switch {
	case (ascii || unicode) && utf8.Valid(data):
		return string(data)
	case ascii, name == "iso-8859-1", name == "latin1": // programs that use these names mean Windows-1252
		return latin(string(data))
	case unicode:
		m.problem("some text is labeled as UTF-8 but is not valid UTF-8, so it may be garbled")
		return latinWhereNotUTF8(data)
	}
	text, err := fromCharset(name, data)
	if err != nil {
		m.problem("the charset %s is unknown, so the text may be garbled", format.Quote(name))
		return latinWhereNotUTF8(data)
	}
	return text
}

func latinWhereNotUTF8(data []byte) string {
	if utf8.Valid(data) {
		return string(data)
	}
	if strings.Count(strings.ToValidUTF8(string(data), "\ufffd"), "\ufffd")*20 < len(data) { // mostly valid UTF-8
		return strings.ToValidUTF8(string(data), "\ufffd")
	}
	return latin(string(data))
}

// latin decodes Windows-1252, which has a character for nearly every byte.
func latin(s string) string {
	text, err := charmap.Windows1252.NewDecoder().String(s)
	if err != nil {
		return strings.ToValidUTF8(s, "\ufffd")
	}
	return text
}

// fromCharset decodes text in the charset with the given name. It accepts the names that the library supports, and
// other common names.
func fromCharset(name string, data []byte) (string, error) {
	if name == "" { // the library accepts "" as a charset
		return "", errors.New("no charset")
	}
	if spelled(name) == "iso2022kr" {
		name, data = "euc-kr", withoutShifts(data)
	}
	r, err := charset.Reader(name, bytes.NewReader(data))
	if err != nil {
		known := byUsualName(name)
		if known == nil {
			return "", err
		}
		r = known.NewDecoder().Reader(bytes.NewReader(data))
	}
	text, err := io.ReadAll(r)
	return strings.ToValidUTF8(string(text), "\ufffd"), err
}

// spelled returns a charset's name in lower case, reduced to letters and digits, and without a leading x-.
func spelled(name string) string {
	name = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, strings.ToLower(name))
	return strings.TrimPrefix(name, "x")
}

// codePage matches the name of a code page, such as cp932, win1251 or ibm-850.
var codePage = lazy.Regexp(`^(?:cp|win|windows|ms|ibm|dos|codepage|csibm|cswindows)0*(\d+)$`)

// iso8859 matches the name of a part of ISO 8859, such as iso8859_15, 8859-2 or iso-8859-8-i.
var iso8859 = lazy.Regexp(`^(?:iso|isoiec|csiso)?8859(\d{1,2})[ei]?$`)

// byUsualName returns the charset for a common nonstandard name. If the name is unknown, it returns nil.
func byUsualName(name string) encoding.Encoding {
	name = spelled(name)
	if page := codePage().FindStringSubmatch(name); page != nil {
		return codePages[page[1]]
	}
	if part := iso8859().FindStringSubmatch(name); part != nil {
		return codePages["iso"+part[1]]
	}
	return usualNames[name]
}

// codePages maps the numbers of Windows, DOS and IBM code pages, and the names of ISO 8859 parts, to charsets.
var codePages = map[string]encoding.Encoding{
	"37": charmap.CodePage037, "437": charmap.CodePage437, "850": charmap.CodePage850, "852": charmap.CodePage852,
	"855": charmap.CodePage855, "858": charmap.CodePage858, "860": charmap.CodePage860, "862": charmap.CodePage862,
	"863": charmap.CodePage863, "865": charmap.CodePage865, "866": charmap.CodePage866, "874": charmap.Windows874,
	"932": japanese.ShiftJIS, "936": simplifiedchinese.GBK, "943": japanese.ShiftJIS, "949": korean.EUCKR,
	"950":  traditionalchinese.Big5,
	"1047": charmap.CodePage1047, "1140": charmap.CodePage1140, "1250": charmap.Windows1250, "1251": charmap.Windows1251,
	"1252": charmap.Windows1252, "1253": charmap.Windows1253, "1254": charmap.Windows1254, "1255": charmap.Windows1255,
	"1256": charmap.Windows1256, "1257": charmap.Windows1257, "1258": charmap.Windows1258,
	"1200": unicode.UTF16(unicode.LittleEndian, unicode.UseBOM), "1201": unicode.UTF16(unicode.BigEndian, unicode.UseBOM),
	"10000": charmap.Macintosh, "10007": charmap.MacintoshCyrillic,
	"20866": charmap.KOI8R, "20936": simplifiedchinese.GBK, "21866": charmap.KOI8U,
	"50220": japanese.ISO2022JP, "50221": japanese.ISO2022JP, "50222": japanese.ISO2022JP, "51932": japanese.EUCJP,
	"51936": simplifiedchinese.GBK, "51949": korean.EUCKR, "52936": simplifiedchinese.HZGB2312, "54936": simplifiedchinese.GB18030,
	"65001": unicode.UTF8,
	"iso1":  charmap.Windows1252, "iso2": charmap.ISO8859_2, "iso3": charmap.ISO8859_3, "iso4": charmap.ISO8859_4,
	"iso5": charmap.ISO8859_5, "iso6": charmap.ISO8859_6, "iso7": charmap.ISO8859_7, "iso8": charmap.ISO8859_8,
	"iso9": charmap.ISO8859_9, "iso10": charmap.ISO8859_10, "iso11": charmap.Windows874, "iso13": charmap.ISO8859_13,
	"iso14": charmap.ISO8859_14, "iso15": charmap.ISO8859_15, "iso16": charmap.ISO8859_16,
}

// usualNames maps other common names, in the form returned by spelled, to charsets.
var usualNames = map[string]encoding.Encoding{
	"eucjp": japanese.EUCJP, "ujis": japanese.EUCJP, "sjis": japanese.ShiftJIS, "shiftjis": japanese.ShiftJIS, "mskanji": japanese.ShiftJIS,
	"iso2022jp": japanese.ISO2022JP, "iso2022jp1": japanese.ISO2022JP, "iso2022jp2": japanese.ISO2022JP, "iso2022jp3": japanese.ISO2022JP,
	"iso2022jpms": japanese.ISO2022JP, "jis": japanese.ISO2022JP,
	"euckr": korean.EUCKR, "uhc": korean.EUCKR, "ksc5601": korean.EUCKR, "ksc56011987": korean.EUCKR, "ksx1001": korean.EUCKR,
	"gb2312": simplifiedchinese.GBK, "gb231280": simplifiedchinese.GBK, "euccn": simplifiedchinese.GBK, "gbk": simplifiedchinese.GBK,
	"gb18030": simplifiedchinese.GB18030, "hz": simplifiedchinese.HZGB2312, "hzgb2312": simplifiedchinese.HZGB2312,
	"big5": traditionalchinese.Big5, "big5hkscs": traditionalchinese.Big5, "big5eten": traditionalchinese.Big5,
	"koi8": charmap.KOI8R, "koi8r": charmap.KOI8R, "koi8u": charmap.KOI8U, "koi8ru": charmap.KOI8U,
	"mac": charmap.Macintosh, "macroman": charmap.Macintosh, "macintosh": charmap.Macintosh, "maccyrillic": charmap.MacintoshCyrillic,
	"tis620": charmap.Windows874, "latin0": charmap.ISO8859_15, "latin9": charmap.ISO8859_15, "latin10": charmap.ISO8859_16,
	"utf8": unicode.UTF8, "utf8mb4": unicode.UTF8, "unicode": unicode.UTF16(unicode.LittleEndian, unicode.UseBOM),
	"utf16": unicode.UTF16(unicode.BigEndian, unicode.UseBOM), "ucs2": unicode.UTF16(unicode.BigEndian, unicode.UseBOM),
	"utf16le": unicode.UTF16(unicode.LittleEndian, unicode.UseBOM), "utf16be": unicode.UTF16(unicode.BigEndian, unicode.UseBOM),
	"utf32": utf32.UTF32(utf32.BigEndian, utf32.UseBOM), "ucs4": utf32.UTF32(utf32.BigEndian, utf32.UseBOM),
	"utf32le": utf32.UTF32(utf32.LittleEndian, utf32.UseBOM), "utf32be": utf32.UTF32(utf32.BigEndian, utf32.UseBOM),
}

// withoutShifts converts ISO-2022-KR to EUC-KR. Between the control characters SO and SI, all bytes belong to Korean
// characters. Spec: RFC 1557.
func withoutShifts(data []byte) []byte {
	const so, si = 0x0e, 0x0f
	data = bytes.ReplaceAll(data, []byte("\x1b$)C"), nil)
	out := make([]byte, 0, len(data))
	shifted := false
	for _, c := range data {
		switch {
		case c == so || c == si:
			shifted = c == so
		case c == '\n': // each line begins in the unshifted state
			shifted = false
			out = append(out, c)
		case shifted && c > ' ' && c < 0x7f:
			out = append(out, c|0x80)
		default:
			out = append(out, c)
		}
	}
	return out
}
