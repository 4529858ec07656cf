package tool

import (
	"context"
	"unicode/utf8"

	"mailtree/maildir/format"
	"mailtree/maildir/index"
	"mailtree/maildir/refusal"
)

// Budget is the maximum size in bytes of what a tool or a resource returns, including everything around it in the
// serialized response. 0 means DefaultBudget.
type Budget int

// The default budget and the minimum budget. With a smaller budget, a message to 500 recipients might not fit.
const (
	DefaultBudget Budget = 1 << 20
	LeastBudget   Budget = 256 << 10
)

// envelope is the number of bytes reserved for everything around a response: JSON-RPC, the SDK's fields, and a URI of
// the maximum length.
const envelope = 16 << 10

// aroundList is the number of bytes reserved for the fields of a response that depend on its list, such as cursors and
// counts.
const aroundList = 2 << 10

// aroundRow is the number of bytes reserved for the fields of a message that are not part of its head: the fields of a
// truncated body, the marks of a delivery, and a comma.
const aroundRow = 800

// unreserved is the maximum size in bytes of a response that needs no memory reservation. The server always has enough
// memory for the maximum number of requests, each with a response of that size.
const unreserved = 32 << 10

// copies is the number of copies of a response that are in memory while the server creates it: as values, as JSON, as
// text, in the SDK's result, message and buffer, and after merging. TestFaultMemory in cmd/mailtree measures this.
const copies = 8

func (b Budget) bytes() int {
	if b == 0 {
		b = DefaultBudget
	}
	return int(b) - envelope
}

// Encoding is the form in which a response is sent. It determines how many bytes the content takes up in the response.
type Encoding int

// The encodings.
const (
	InTool     Encoding = iota // structured content, and its JSON as text; a bare POST also repeats the keys in the result
	InText                     // the response of a tool whose text is not JSON
	InResource                 // a resource, whose JSON is sent as text
)

// repeats returns how many times a response contains its content as plain JSON, and how many times as a JSON string.
func (f Encoding) repeats() (plain, quoted int) {
	switch f {
	case InTool:
		return 2, 1
	case InText:
		return 3, 0
	}
	return 0, 1
}

// fit returns the length n of the longest prefix of text that takes up no more than most bytes in a response, and the
// size of that prefix in the response (see maildir.Room). It measures in steps, so up to a tenth of most may remain
// unused.
func (f Encoding) fit(text string, most int) (n, size int) {
	step := most/256 + utf8.UTFMax // one byte of text takes up to 19 bytes in a response
	for n < len(text) {
		part := format.Cut(text[n:], step)
		if part == "" { // the text is not UTF-8
			part = text[n : n+step]
		}
		more := f.Size(part) - f.Size("")
		if size+more > most {
			break
		}
		n, size = n+len(part), size+more
	}
	return n, size
}

// Size returns the number of bytes that v takes up in a response.
func (f Encoding) Size(v any) int { return f.ofJSON(Encode(v)) }

// ofJSON returns the number of bytes that the given JSON takes up in a response.
func (f Encoding) ofJSON(data []byte) (size int) {
	plain, quoted := f.repeats()
	for _, c := range data {
		switch c {
		case '<', '>', '&':
			size += 6*plain + 6*quoted
		case '"', '\\':
			size += plain + 2*quoted
		default:
			size += plain + quoted
		}
	}
	return size
}

// Room returns the space available for messages in a response that also contains rest. The function shape must return a
// message as it appears in the response, but without its body and its marks.
func (b Budget) Room(ctx context.Context, form Encoding, rest any, shape func(m *index.MessageRow) any) *index.Room {
	h, beside := HoldOf(ctx), form.Size(rest)
	return &index.Room{
		Small:   unreserved - beside,
		Large:   b.bytes() - aroundList - beside,
		Row:     func(m *index.MessageRow) int { return form.Size(shape(m)) + aroundRow },
		Fit:     form.fit,
		Reserve: func(ctx context.Context, more int64) error { return h.Reserve(ctx, b.reserved()+more) },
		Release: h.Release,
	}
}

// reserved returns the number of bytes of memory that the server needs to create a large response.
func (b Budget) reserved() int64 { return copies * int64(b.bytes()) }

// Listing is a list of items, other than messages, in a response. It contains as many items as fit. It is not safe for
// concurrent use.
type Listing struct {
	ctx  context.Context
	b    Budget
	form Encoding
	left int
	err  error
}

// Listing starts a list in a response that also contains rest.
func (b Budget) Listing(ctx context.Context, form Encoding, rest any) *Listing {
	return &Listing{
		ctx:  ctx,
		b:    b,
		form: form,
		left: b.bytes() - aroundList - form.Size(rest),
	}
}

// Add reserves space for one more item, and reports whether the item fits. If the item does not fit, the list must end
// before it. A long list reserves memory. If no memory is available, no more items fit and Err returns the reason.
func (l *Listing) Add(item any) bool {
	size := l.form.Size(item) + l.form.ofJSON([]byte(","))
	if size > l.left || l.err != nil {
		return false
	}
	if l.left -= size; l.b.bytes()-l.left > unreserved {
		l.err = HoldOf(l.ctx).Reserve(l.ctx, l.b.reserved())
	}
	return l.err == nil
}

// Err returns the error that ended the list. If the list ended only because the response was full, Err returns nil.
func (l *Listing) Err() error { return l.err }

// Fit returns how many items, starting with the first, fit in a response that also contains rest. The only error that
// it returns is ErrUnavailable.
func Fit[T any](ctx context.Context, b Budget, form Encoding, rest any, items []T) (n int, err error) {
	l := b.Listing(ctx, form, rest)
	for n < len(items) && l.Add(items[n]) {
		n++
	}
	return n, l.Err()
}

// Resource returns the text of a resource. If the text exceeds the budget, it returns ErrTooLarge.
func (b Budget) Resource(v any) (text string, err error) {
	data := Encode(v)
	if size, most := InResource.ofJSON(data), b.bytes(); size > most {
		return "", Refused(refusal.ErrTooLarge, "The resource is %d bytes long, over the limit of %d: request a smaller part.", size, most)
	}
	return string(data), nil
}

// Blob returns the maximum number of bytes of a file that fit in a resource as base64, and reserves memory for them.
// The only error that it returns is ErrUnavailable.
func (b Budget) Blob(ctx context.Context) (most int64, err error) {
	return int64(b.bytes()) / 4 * 3, HoldOf(ctx).Reserve(ctx, b.reserved())
}

// Fits reports whether v is within the budget.
func (b Budget) Fits(form Encoding, v any) bool { return form.Size(v) <= b.bytes() }

// Page returns as many items, starting at offset, as fit in a tool's response. It also returns the offset of the next
// page, or 0 if there is none. The only error that it returns is ErrUnavailable.
func Page[T any](ctx context.Context, b Budget, items []T, offset int) (page []T, next int, err error) {
	page = items[min(offset, len(items)):]
	n, err := Fit(ctx, b, InTool, "", page)
	if n < len(page) {
		next = offset + n
	}
	return page[:n], next, err
}
