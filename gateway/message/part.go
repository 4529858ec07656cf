package message

import (
	"bytes"
	"mime"
	"net/url"
	"path"
	"strconv"
	"strings"

	"mailtree/maildir/format"
	"mailtree/maildir/lazy"
)

// piece is a piece of the message's displayed text, as plain text, HTML, or both.
type piece struct{ plain, html string }

// part parses a part and the parts inside it, and returns the pieces of displayed text. It adds attachments to the
// message. byDefault is the type to assume if the part has no Content-Type.
func (m *Message) part(header []Field, body []byte, depth int, byDefault string) []piece {
	kind, params := m.contentType(header, byDefault)
	if strings.HasPrefix(kind, "multipart/") {
		if depth == maxDepth {
			m.problem("parts are nested more than %d levels deep; the rest is in the raw message", maxDepth)
			return nil
		}
		if parts := m.split(body, params["boundary"]); len(parts) > 0 {
			return m.multipart(kind, parts, depth)
		}
		m.problem("the %s content has no parts, so it is shown as text", kind)
		return []piece{{plain: m.decodeText(header, body, nil)}}
	}
	name := m.fileName(header, params)
	disposition := keyword(value(header, "Content-Disposition"))
	if disposition != "attachment" && isText(kind) && (name == "" || m.first(kind)) {
		m.texts++
		if kind == "text/html" {
			return []piece{{html: m.decodeHTML(header, body, params)}}
		}
		m.Markdown = m.Markdown || kind == "text/markdown"
		return []piece{{plain: m.decodeText(header, body, params)}}
	}
	data := m.decode(header, body)
	m.bounce(kind, data)
	m.attach(name, kind, data)
	return nil
}

// isText reports whether a part without a file name is displayed text rather than an attachment. A text part of
// unknown type is displayed as plain text. Spec: RFC 2046 4.1.4.
func isText(kind string) bool {
	_, file := extensions[kind]
	return kind == "text/plain" || kind == "text/html" || strings.HasPrefix(kind, "text/") && !file
}

// first reports whether a part with a file name is the message's text rather than an attached file. Such a part is the
// message's text if no text precedes it, or if it is an alternative version of the preceding text.
func (m *Message) first(kind string) bool {
	return (kind == "text/plain" || kind == "text/html") && (m.texts == 0 || m.alternatives > 0)
}

// multipart parses the parts of a multipart entity.
func (m *Message) multipart(kind string, parts [][]byte, depth int) (pieces []piece) {
	byDefault := "text/plain"
	if kind == "multipart/digest" {
		byDefault = "message/rfc822"
	}
	if kind == "multipart/alternative" {
		m.alternatives++
		defer func() { m.alternatives-- }()
	}
	for _, raw := range parts {
		if m.parts++; m.parts > maxParts {
			if m.parts == maxParts+1 {
				m.problem("there are more than %d parts; the rest is in the raw message", maxParts)
			}
			break
		}
		head, body := splitHeader(raw)
		if len(head) > MaxHeader {
			m.problem("a part's header is larger than %d KiB, so the part is omitted", MaxHeader>>10)
			continue
		}
		pieces = append(pieces, m.part(m.fields(head), body, depth+1, byDefault)...)
	}
	if kind == "multipart/alternative" && len(pieces) > 1 {
		var one piece
		for _, p := range pieces {
			one.plain = strings.Trim(one.plain+"\n\n"+p.plain, "\n")
			one.html += p.html
		}
		return []piece{one}
	}
	return pieces
}

// mediaType matches two words separated by a slash. Spec: RFC 2045 5.1.
var mediaType = lazy.Regexp(`^[^\x00-\x20\x7f-\x{10ffff}()<>@,;:\\"/\[\]?=]+/[^\x00-\x20\x7f-\x{10ffff}()<>@,;:\\"/\[\]?=]+$`)

// contentType returns the media type of a part and its parameters.
func (m *Message) contentType(header []Field, byDefault string) (kind string, params map[string]string) {
	field := value(header, "Content-Type")
	if strings.TrimSpace(field) == "" {
		return byDefault, nil
	}
	kind, params = m.parameters(field)
	if !mediaType().MatchString(kind) {
		m.problem("%s is not a valid media type", format.Quote(field))
		return byDefault, params
	}
	return kind, params
}

// parameter matches a name, an equals sign, and a word or quoted string.
var parameter = lazy.Regexp(`;\s*([^=;"]*?)\s*=\s*(?:"([^"]*)|([^;]*))`)

// parameters parses a field that consists of a value and parameters. If the field is invalid, it accepts anything
// that looks like a parameter.
func (m *Message) parameters(field string) (value string, params map[string]string) {
	value, params, err := mime.ParseMediaType(field)
	if err == nil && !strings.Contains(field, "*") {
		return value, params
	}
	value, _, _ = strings.Cut(field, ";")
	if params == nil {
		params = map[string]string{}
	}
	for _, found := range parameter().FindAllStringSubmatch(field, -1) {
		text := found[2] + strings.TrimSpace(found[3])
		name, extended := strings.CutSuffix(strings.ToLower(found[1]), "*")
		if extended {
			text = extendedValue(text)
		}
		if _, known := params[name]; !known {
			params[name] = text
		}
	}
	return strings.ToLower(strings.TrimSpace(value)), params
}

// extendedValue decodes charset'language'text, in which the text is percent-encoded. Spec: RFC 2231 4.
func extendedValue(s string) string {
	parts := strings.SplitN(s, "'", 3)
	if len(parts) != 3 {
		return s
	}
	text, err := url.PathUnescape(parts[2])
	if err != nil {
		return parts[2]
	}
	decoded, err := fromCharset(parts[0], []byte(text))
	if err != nil {
		return strings.ToValidUTF8(text, "\ufffd")
	}
	return decoded
}

// split splits a multipart at its boundary lines. Text before the first boundary and after the last boundary does not
// belong to any part.
func (m *Message) split(body []byte, boundary string) (parts [][]byte) {
	mark := []byte("--" + boundary)
	begin := -1 // beginning of the current part
	at := 0
	for line := range bytes.Lines(body) {
		text := bytes.TrimRight(line, " \t\r\n")
		ends := bytes.Equal(bytes.TrimSuffix(text, []byte("--")), mark) && len(text) == len(mark)+2
		if boundary != "" && (ends || bytes.Equal(text, mark)) {
			if begin >= 0 {
				parts = append(parts, withoutLineEnd(body[begin:at]))
			}
			if ends {
				return parts
			}
			if begin = at + len(line); len(parts) > maxParts {
				return parts
			}
		}
		at += len(line)
	}
	if begin >= 0 {
		m.problem("the last part has no closing boundary: the message may have been cut off")
		parts = append(parts, body[begin:])
	}
	return parts
}

// withoutLineEnd removes the last line ending of a part, which belongs to the boundary after the part.
func withoutLineEnd(part []byte) []byte {
	return bytes.TrimSuffix(bytes.TrimSuffix(part, []byte("\n")), []byte("\r"))
}

// fileName returns a part's file name, or "" if it has none.
func (m *Message) fileName(header []Field, params map[string]string) string {
	_, disposition := m.parameters(value(header, "Content-Disposition"))
	name := disposition["filename"]
	if name == "" {
		name = params["name"]
	}
	return cleanName(m.readable(name))
}

// cleanName converts a name to a file name without folders that is valid on every system.
func cleanName(name string) string {
	name = oneLine(strings.ToValidUTF8(name, "\ufffd"))
	name = path.Base(strings.ReplaceAll(name, `\`, "/"))
	name = strings.TrimLeft(strings.Map(func(r rune) rune {
		if strings.ContainsRune(`<>:"|?*`, r) {
			return '_'
		}
		return r
	}, name), ". ")
	if name == "/" || name == "" {
		return ""
	}
	extension := path.Ext(name)
	if len(name) > maxName && len(extension) < 20 {
		return format.Cut(strings.TrimSuffix(name, extension), maxName-len(extension)) + extension
	}
	return format.Cut(name, maxName)
}

// extensions maps media types to file extensions, for attachments without a name.
var extensions = map[string]string{
	"text/plain": ".txt", "text/html": ".html", "text/calendar": ".ics", "text/csv": ".csv", "text/x-patch": ".patch",
	"text/x-diff": ".diff", "text/vcard": ".vcf", "text/x-vcard": ".vcf", "text/rtf": ".rtf", "text/xml": ".xml", "text/css": ".css",
	"message/rfc822": ".eml", "message/delivery-status": ".txt", "text/rfc822-headers": ".txt", "application/pdf": ".pdf",
	"image/png": ".png", "image/jpeg": ".jpg", "image/gif": ".gif", "application/pgp-signature": ".asc",
	"application/pkcs7-signature": ".p7s", "application/pkcs7-mime": ".p7m", "application/json": ".json",
}

// attach adds an attachment to the message.
func (m *Message) attach(name, kind string, data []byte) {
	if name == "" {
		extension := extensions[kind]
		if extension == "" && strings.HasPrefix(kind, "text/") {
			extension = ".txt"
		} else if extension == "" {
			extension = ".bin"
		}
		name = "attachment-" + strconv.Itoa(len(m.Attachments)+1) + extension
	}
	m.Attachments = append(m.Attachments, Attachment{Name: name, Type: kind, Data: data})
}
