package message

import (
	"bytes"
	"strings"

	"mailtree/maildir/format"
)

// Bounce is the content of a delivery status report. Before trusting a report, the caller must also check that it comes
// from the null sender. Spec: RFC 3464.
type Bounce struct {
	MessageID  string      // id of the original message, without < and >; "" if not given
	Recipients []Recipient // in the order in which the report lists them
}

// Recipient is the outcome of the delivery to one address, as reported by the remote server.
type Recipient struct {
	Address    string // local@domain, as written in the report
	Action     string // failed, delayed, delivered, relayed or expanded
	Status     string // such as 5.1.1
	Diagnostic string // diagnostic text, on one line
}

// bounce fills in m.Bounce from one part of a delivery status report.
func (m *Message) bounce(kind string, data []byte) {
	if kindOfReport, params := m.parameters(value(m.Header, "Content-Type")); kindOfReport != "multipart/report" ||
		!strings.EqualFold(params["report-type"], "delivery-status") {
		return
	}
	if m.Bounce == nil {
		m.Bounce = &Bounce{}
	}
	switch kind {
	case "message/delivery-status", "message/global-delivery-status":
		m.Bounce.Recipients = append(m.Bounce.Recipients, m.recipients(data)...)
	case "message/rfc822", "message/global", "text/rfc822-headers", "message/rfc822-headers":
		head, _ := splitHeader(data)
		original := Message{Header: new(Message).fields(head[:min(len(head), MaxHeader)])}
		if m.Bounce.MessageID == "" {
			m.Bounce.MessageID = last(original.ids("Message-ID", 1))
		}
	}
}

// recipients parses the groups of fields in a report. The first group describes the message, and each of the others
// describes one recipient.
func (m *Message) recipients(data []byte) (all []Recipient) {
	for len(data) > 0 && len(all) < maxAddresses {
		var group []byte
		group, data = splitHeader(bytes.TrimLeft(data, "\r\n"))
		fields := m.fields(group)
		to := value(fields, "Final-Recipient")
		if to == "" {
			to = value(fields, "Original-Recipient")
		}
		if to == "" {
			continue
		}
		all = append(all, Recipient{
			Address:    behindType(to),
			Action:     keyword(value(fields, "Action")),
			Status:     strings.TrimSpace(keyword(value(fields, "Status"))),
			Diagnostic: format.Cut(oneLine(behindType(value(fields, "Diagnostic-Code"))), maxSubject),
		})
	}
	return all
}

// behindType removes the type at the beginning of a value. For example, it converts "rfc822; a@example.org" to
// "a@example.org".
func behindType(value string) string {
	if _, text, ok := strings.Cut(value, ";"); ok {
		value = text
	}
	return strings.Trim(strings.TrimSpace(strings.ToValidUTF8(value, "\ufffd")), "<>")
}
