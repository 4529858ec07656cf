package format

import (
	"bytes"
	"encoding/json"
	"slices"
)

// Canonical writes a message file as the server would: the header's keys in their order, one a line,
// times in UTC, exactly one line end behind the body. A byte order mark and CRLF line ends, which
// make a file a problem, are taken out. Keys that we do not know stay, behind the others. Two kinds
// of files are returned as they are: one that is sealed, because the seal covers its bytes, and one
// whose attachments have keys that we do not know. The error is a *tree.FormatError.
// See docs/tree.md, "A message".
func Canonical(id string, data []byte) ([]byte, error) {
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

// keepsAttachments reports whether the attachments of a header have only keys that we know.
func keepsAttachments(o *object) bool {
	raw := o.value("attachments")
	if raw == nil {
		return true
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	return d.Decode(new([]Attachment)) == nil
}

// withUnknown puts keys of a header that FormatMessage does not write behind those that it does.
func withUnknown(file []byte, o *object) []byte {
	var more []byte
	for _, m := range o.keys {
		if !slices.Contains(messageKeys, m.key) {
			more = append(more, ",\n  "+string(compact(m.key))+": "+string(m.val)...)
		}
	}
	end := bytes.Index(file, []byte("\n}\n"+fenceClose+"\n"))
	return slices.Concat(file[:end], more, file[end:])
}

// messageKeys are the keys that ParseMessage reads.
var messageKeys = []string{
	"id", "thread_id", "project", "from", "to", "cc", "bcc", "subject", "created", "importance", "ack_required", "in_reply_to",
	"references", "message_id", "media_type", "attachments", "html", "key", "auth", "door", "terminal", "seal",
}

// IDOf is the id that the header of a message file says; "" where it says none that can be read.
func IDOf(data []byte) string {
	_, header, _ := bytes.Cut(data, []byte("\n"))
	var id struct{ ID string }
	_ = json.NewDecoder(bytes.NewReader(header)).Decode(&id) // ParseMessage tells what is wrong
	return id.ID
}
