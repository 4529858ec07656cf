package aimx

import (
	"context"
	"io"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mailtree/maildir"
	"mailtree/maildir/refusal"
	"mailtree/mcp/tool"
)

// attachmentURI is the prefix of the URIs of email attachments. Package mcp/mail uses the same URIs for callers who may
// read every attachment.
const (
	attachmentURI      = "resource://attachment/"
	attachmentTemplate = attachmentURI + "{sha1}{?project,offset}"
)

// uriOf returns the URI of an attachment in a project.
func uriOf(sum, project string) string { return attachmentURI + sum + "?project=" + project }

// sniffed is the number of bytes of a file that are used to detect its type.
const sniffed = 4 << 10

type uriKey struct{}

// addAttachments adds a resource template for email attachments.
func (t *toolset) addAttachments(set *tool.Set) {
	set.Server().AddResourceTemplate(&mcp.ResourceTemplate{
		URITemplate: attachmentTemplate,
		Name:        "attachment",
		Title:       "Attachment",
		Description: "A file attached to an email in one of your mailboxes, at the URI that email_read returns. A large file " +
			"comes in pieces: pass next_offset from _meta as offset.",
	}, func(ctx context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		uri, ok := ctx.Value(uriKey{}).(string)
		if !ok {
			uri = r.Params.URI
		}
		return t.readAttachment(ctx, uri)
	})
	// The SDK matches URIs strictly against the template, so ?offset=1&project=/abs/path would not match. The handler
	// therefore gets the requested URI from ctx.
	set.Server().AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			r, ok := req.(*mcp.ReadResourceRequest)
			if !ok || r.Params == nil || !strings.HasPrefix(r.Params.URI, attachmentURI) {
				return next(ctx, method, req)
			}
			uri, params, asked := r.Params.URI, *r.Params, *r
			params.URI, asked.Params = attachmentURI+"-", &params
			res, err := next(context.WithValue(ctx, uriKey{}, uri), method, &asked)
			if err != nil {
				err = set.ResourceError(ctx, &words, uri, r.ProtocolVersion(), err)
			}
			return res, err
		}
	})
}

// attachmentRef is the parsed URI of an attachment.
type attachmentRef struct {
	sum     string
	project string // key or slug; "" means the caller's project
	offset  int64
}

// parseAttachment parses the URI of an attachment. It returns ErrInvalid if the URI is malformed.
func parseAttachment(uri string) (r attachmentRef, err error) {
	sum, query, _ := strings.Cut(strings.TrimPrefix(uri, attachmentURI), "?")
	r.sum = sum
	for pair := range strings.SplitSeq(query, "&") {
		k, v, _ := strings.Cut(pair, "=")
		text, err := url.PathUnescape(v)
		switch {
		case pair == "":
			continue
		case err == nil && k == "project":
			r.project = text
			continue
		case err == nil && k == "offset":
			r.offset, err = strconv.ParseInt(text, 10, 64)
		default:
			err = strconv.ErrSyntax
		}
		if err != nil || r.offset < 0 {
			return r, tool.Invalid("%q is not valid: use %s, with the previous response's next_offset as offset.",
				tool.Clip(pair), attachmentTemplate)
		}
	}
	return r, nil
}

// readAttachment returns the whole file if it is text and fits in one response. Otherwise it returns a part of the
// file's bytes, starting at the offset. If no email in the caller's mailboxes has this attachment, readAttachment
// returns ErrNotFound.
func (t *toolset) readAttachment(ctx context.Context, uri string) (*mcp.ReadResourceResult, error) {
	c := tool.CallerOf(ctx)
	if c.UID < 0 {
		return nil, notAuthorized()
	}
	r, err := parseAttachment(uri)
	if err != nil {
		return nil, err
	}
	key := c.ProjectKey()
	if r.project != "" {
		key = r.project
	}
	if c.Root {
		t.log.Info("aimx: root is reading an attachment, and can access every attachment", "sha1", tool.Clip(r.sum), "project", key)
	}
	v, err := t.store.As(c.User(), c.Origin).Project(ctx, key)
	if err != nil {
		return nil, err
	}
	most, err := t.budget.Blob(ctx)
	if err != nil {
		return nil, err
	}
	return t.piece(ctx, v, uri, r, most)
}

// piece reads up to most bytes of an attachment.
func (t *toolset) piece(
	ctx context.Context, v *maildir.View, uri string, r attachmentRef, most int64,
) (*mcp.ReadResourceResult, error) {
	a, err := v.OpenAttachment(ctx, r.sum)
	if err != nil {
		return nil, err
	}
	defer a.Close()
	if r.offset > a.Size {
		return nil, &maildir.Error{What: refusal.OffsetBeyond, Field: refusal.FileOffset, Counts: []int{int(r.offset)}, Limit: int(a.Size)}
	}
	start := make([]byte, min(r.offset, sniffed))
	data := make([]byte, min(a.Size-r.offset, most))
	_, err = io.ReadFull(a, start)
	if err == nil {
		_, err = io.CopyN(io.Discard, a, r.offset-int64(len(start)))
	}
	if err == nil {
		_, err = io.ReadFull(a, data)
	}
	if err != nil {
		return nil, refusal.Disk(err)
	}
	kind := a.MediaType(append(start, data[:min(len(data), sniffed)]...))
	content := &mcp.ResourceContents{URI: uri, MIMEType: kind, Blob: data}
	next := r.offset + int64(len(data))
	switch whole := r.offset == 0 && next == a.Size; {
	case whole:
		if text := string(data); isText(text) && t.budget.Fits(tool.InResource, text) {
			content.Blob, content.Text = nil, text
		}
	case next < a.Size:
		content.Meta = mcp.Meta{"bytes": a.Size, "next_offset": next}
	default:
		content.Meta = mcp.Meta{"bytes": a.Size}
	}
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{content}}, nil
}

// isText reports whether the file is text that JSON can represent. It returns false for an empty file.
func isText(file string) bool {
	return file != "" && utf8.ValidString(file) && !strings.Contains(file, "\x00")
}
