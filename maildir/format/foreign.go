package format

import (
	"bytes"
	"cmp"
	"fmt"
	"net/mail"
	"slices"
	"strings"
	"time"

	"mailtree/maildir/foreign"
	"mailtree/maildir/tree"
)

// The header of a file in an outbox may be YAML or TOML. Mail from other systems has TOML headers. The server reads
// such mail in place and never rewrites it. See docs/reference/tree.md, "Mail from other systems".

// foreignLimits contains the limits for YAML and TOML headers, which are the same as for a JSON header.
var foreignLimits = foreign.Limits{Bytes: MaxHeader, Depth: maxDepth}

// IsForeign reports whether a message file has the header of another mail system. The server never changes such a
// file.
func IsForeign(data []byte) bool {
	return bytes.HasPrefix(data, []byte(foreign.TOML)) && foreign.Is(data, foreign.TOML)
}

// parseForeignDraft parses a file in an outbox whose header is YAML or TOML. It returns the header as a JSON object,
// with the values of known keys converted to the form that a JSON header uses. The error is a *tree.FormatError.
func parseForeignDraft(data []byte, fence string) (header *object, body string, err error) {
	f, err := foreign.Parse(data, fence, foreignLimits)
	if err != nil {
		return nil, "", err
	}
	var b linedObject
	sent := fence == foreign.TOML && !slices.ContainsFunc(f.Keys, func(k foreign.Key) bool { return draftKey(k.Name) == "id" })
	for _, k := range f.Keys {
		key := draftKey(k.Name)
		if sent && key == "message_id" { // another system has already sent this message
			key = "id"
		}
		value, why := draftValue(key, k.Value)
		if why != "" {
			return nil, "", &tree.FormatError{Line: k.Line, Reason: why}
		}
		b.put(k.Line-1, key, value)
	}
	header, err = parseObject(b.object(), 1)
	return header, f.Body, err
}

// draftValue returns a header value as JSON. If the key is known, it converts the value to the form that a JSON
// header uses. The result why says what is wrong with the value, or is "" if the value is valid.
func draftValue(key string, v any) (value []byte, why string) {
	kind := kindOf(key)
	if kind == nil {
		return compact(v), ""
	}
	items, isList := v.([]any)
	_, isObject := v.(map[string]any)
	_, isText := kind.(*string)
	flag, isFlag := kind.(*bool)
	switch {
	case isObject:
		return nil, Quote(key) + " contains nested keys: write a plain value"
	case isList && (isText || isFlag):
		return nil, Quote(key) + " is a list: write a single value"
	case isText:
		return compact(fmt.Sprint(v)), ""
	case isFlag:
		if *flag, why = plainFlag(key, fmt.Sprint(v)); why != "" {
			return nil, why
		}
		return compact(flag), ""
	case !isList:
		list := plainItems(fmt.Sprint(v))
		return compact(&list), ""
	}
	list := make([]string, len(items))
	for i, item := range items {
		switch item.(type) {
		case []any, map[string]any:
			return nil, Quote(key) + " contains a nested list or keys: write a flat list"
		}
		list[i] = fmt.Sprint(item)
	}
	return compact(&list), ""
}

// parseForeignMail parses a message from another system. The message's id is its file name. parseForeignMail reads the
// sender, the recipients, the time and the content, but ignores keys that describe the message's trust or state. The
// error is a *tree.FormatError.
func parseForeignMail(id string, data []byte) (*Message, error) {
	f, err := foreign.Parse(data, foreign.TOML, foreignLimits)
	if err != nil {
		return nil, err
	}
	m := &foreignHeader{Message: Message{Body: f.Body, Digest: digest(data, "")}}
	var lines linedObject // used for the line numbers in errors
	for _, k := range f.Keys {
		name := strings.ToLower(k.Name)
		lines.put(k.Line-1, name, []byte("0"))
		switch name {
		case "id", "message_id":
			own, _, beside := strings.Cut(id, editBeside)
			if beside && name == "id" && foreignText(k.Value) == own {
				return nil, &tree.FormatError{Line: k.Line, Reason: editedApart}
			}
			m.ID = id
		}
		m.read(name, k.Value)
	}
	o, err := parseObject(lines.object(), 1)
	if err != nil {
		return nil, err
	}
	if m.made != "" {
		if m.Created, err = foreignTime(m.made); err != nil {
			key := "date"
			if o.has("created") {
				key = "created"
			}
			return nil, o.bad(key, Quote(key)+": "+err.Error())
		}
	}
	return &m.Message, m.check(id, o)
}

// foreignHeader is a message from another system whose header is being read.
type foreignHeader struct {
	Message
	made string // the message's time, which is the value of created or, if created is missing, of date
}

// read sets the message field that corresponds to a header key.
func (m *foreignHeader) read(name string, value any) {
	text, list := foreignText(value), foreignList(value)
	switch name {
	case "message_id":
		m.MessageID = bareID(text)
	case "from":
		m.From = foreignAddress(text)
	case "to":
		m.To = foreignAddresses(list)
	case "cc":
		m.CC = foreignAddresses(list)
	case "bcc":
		m.BCC = foreignAddresses(list)
	case "reply_to":
		m.ReplyTo = foreignAddresses(list)
	case "subject":
		m.Subject = text
	case "thread_id":
		m.ThreadID = text
	case "in_reply_to":
		m.InReplyTo = bareID(text)
	case "references":
		for _, ids := range list {
			for one := range strings.FieldsSeq(ids) {
				m.References = append(m.References, bareID(one))
			}
		}
	case "importance":
		if ValidImportance(strings.ToLower(text)) {
			m.Importance = strings.ToLower(text)
		}
	case "date":
		m.made = cmp.Or(m.made, text)
	case "created":
		m.made = text
	}
}

// foreignText returns a scalar as text. It returns "" for any other value.
func foreignText(v any) string {
	switch v.(type) {
	case []any, map[string]any:
		return ""
	}
	return fmt.Sprint(v)
}

// foreignList returns the strings in a list. A scalar counts as a list with one element.
func foreignList(v any) (list []string) {
	items, ok := v.([]any)
	if !ok {
		items = []any{v}
	}
	for _, item := range items {
		if text := foreignText(item); text != "" {
			list = append(list, text)
		}
	}
	return list
}

// bareID returns a Message-ID without < and >.
func bareID(s string) string { return strings.Trim(strings.TrimSpace(s), "<>") }

// foreignAddress returns the address in text such as "Ann <ann@example.org>".
func foreignAddress(s string) string {
	if a, err := mail.ParseAddress(s); err == nil {
		return a.Address
	}
	if _, address, ok := strings.Cut(s, "<"); ok && strings.HasSuffix(address, ">") {
		s = address[strings.LastIndex(address, "<")+1 : len(address)-1]
	}
	return strings.TrimSpace(s)
}

// foreignAddresses returns the addresses in a list of strings, each of which may contain several addresses.
func foreignAddresses(list []string) (all []string) {
	for _, s := range list {
		if many, err := mail.ParseAddressList(s); err == nil {
			for _, a := range many {
				all = append(all, a.Address)
			}
			continue
		}
		for _, one := range plainItems(s) {
			all = append(all, foreignAddress(one))
		}
	}
	return all
}

// foreignTime parses a time in RFC 3339 format, or in email format with a numeric offset.
func foreignTime(s string) (time.Time, error) {
	t, err := ParseTime(s)
	if err == nil {
		return t, nil
	}
	sent, bad := mail.ParseDate(s)
	if zone, offset := sent.Zone(); bad != nil || offset == 0 && zone != "" && zone != "UTC" && zone != "GMT" && zone != "UT" {
		return time.Time{}, err
	}
	return ParseTime(FormatTime(sent))
}
