package format

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"mailtree/maildir/tree"
)

// Canonical rewrites a message file in the server's form: the header's keys in their fixed order, one per line, times
// in UTC, and exactly one line ending after the body. It removes a byte order mark and CRLF line endings, which would
// make the file invalid. Unknown keys are moved to the end. Canonical returns three kinds of files unchanged: sealed
// files (because the seal covers their bytes), files whose attachments have unknown keys, and mail from other systems.
// The error is a *tree.FormatError. See docs/reference/tree.md, "A message".
func Canonical(id string, data []byte) ([]byte, error) {
	if IsForeign(data) {
		_, err := ParseMessage(id, data)
		return data, err
	}
	plain := bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	if first, _, _ := bytes.Cut(plain, []byte("\n")); bytes.HasSuffix(first, []byte("\r")) {
		plain = bytes.ReplaceAll(plain, []byte("\r\n"), []byte("\n"))
	}
	m, err := ParseMessage(id, plain)
	if err != nil {
		return nil, err
	}
	if m.Seal != "" {
		return data, nil
	}
	o, _, err := parseHeader(plain)
	if err != nil {
		return nil, err
	}
	if !keepsAttachments(o) {
		return data, nil
	}
	return withUnknown(FormatMessage(m), o), nil
}

// keepsAttachments reports whether FormatMessage would write all attachments in a header unchanged, because they have
// no unknown keys.
func keepsAttachments(o *object) bool {
	raw := o.value("attachments")
	if raw == nil {
		return true
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	return d.Decode(new([]Attachment)) == nil
}

// withUnknown adds the unknown keys of the header o to a file that FormatMessage has written, after the known keys.
func withUnknown(file []byte, o *object) []byte {
	end := bytes.Index(file, []byte("\n}\n"+fenceClose+"\n"))
	return slices.Concat(file[:end], o.unknown(), file[end:])
}

// unknown returns the members of o whose keys mailtree does not use.
func (o *object) unknown() lines {
	var more lines
	for _, m := range o.keys {
		if fieldOf(m.key) == nil {
			more.put(m.key, m.val)
		}
	}
	return more
}

// extra returns the unknown members of a draft's header, for Message.Extra. It rejects a key that looks like a typo. A
// recipient listed under such a key would not get the message, and all other recipients would see the recipient's name.
func (o *object) extra() (string, *tree.FormatError) {
	var more lines
	for _, m := range o.keys {
		if fieldOf(m.key) != nil || kindOf(m.key) != nil {
			continue
		}
		for _, key := range draftKeys() {
			if distance(underscored(m.key), key) <= 1 {
				return "", o.fault(m.at, "the key "+Quote(m.key)+" is unknown: did you mean "+Quote(key)+"? If not, "+
					"remove the key")
			}
		}
		more.put(m.key, m.val)
	}
	return string(more), nil
}

// draftKeys returns the keys that a sender may write.
func draftKeys() []string {
	keys := []string{attachmentsKey, repeatKey}
	for i := range fields {
		if fields[i].is(given) {
			keys = append(keys, fields[i].key)
		}
	}
	return keys
}

// header returns the fields for which wanted returns true, as a JSON object with one key per line.
func (m *Message) header(wanted func(f *field, empty bool) bool) []byte {
	var b lines
	for i := range fields {
		f := &fields[i]
		value := compact(f.of(m))
		if wanted(f, string(value) == `""` || string(value) == "[]" || string(value) == "false") {
			b.put(f.key, value)
		}
	}
	return b.object()
}

// lines contains members of a JSON object, one per line.
type lines []byte

func (l *lines) put(key string, value []byte) {
	*l = append(append(append(append(*l, ",\n  "...), compact(key)...), ": "...), value...)
}

// object returns the lines as a JSON object.
func (l lines) object() []byte {
	return slices.Concat([]byte("{"), bytes.TrimPrefix(l, []byte(",")), []byte("\n}"))
}

// Rest returns m's header as a JSON object. It omits empty values, and the keys that the argument but lists.
func (m *Message) Rest(but []string) string {
	return string(m.header(func(f *field, empty bool) bool { return !empty && !slices.Contains(but, f.key) }))
}

// SetRest sets the fields of m from the result of Rest. It does not change fields that are missing from rest.
func (m *Message) SetRest(rest string) error {
	o, err := parseObject([]byte(rest), 0)
	if err != nil {
		return err
	}
	m.readHeader(o, 0)
	return o.err
}

// compact returns v as JSON on one line, without HTML escapes and with a space after each comma in a list.
func compact(v any) []byte {
	switch p := v.(type) {
	case *string:
		return compact(*p)
	case string:
		if !strings.ContainsFunc(p, func(r rune) bool { return r < ' ' || r > '~' || r == '"' || r == '\\' }) {
			return []byte(`"` + p + `"`)
		}
	case *[]string:
		parts := make([]string, len(*p))
		for i, s := range *p {
			parts[i] = string(compact(s))
		}
		return []byte("[" + strings.Join(parts, ", ") + "]")
	case *[]Attachment:
		if len(*p) == 0 {
			return []byte("[]")
		}
	case *bool:
		return strconv.AppendBool(nil, *p)
	case *time.Time:
		if p.IsZero() {
			return []byte(`""`)
		}
		return compact(FormatTime(*p))
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err) // callers pass only values that JSON can represent
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// IDOf returns the id in the header of a message file, or "" if the id cannot be read.
func IDOf(data []byte) string {
	_, header, _ := bytes.Cut(data, []byte("\n"))
	var id struct{ ID string }
	_ = json.NewDecoder(bytes.NewReader(header)).Decode(&id) // ignore errors: ParseMessage reports them
	return id.ID
}
