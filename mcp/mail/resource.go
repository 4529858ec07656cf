package mail

import (
	"context"
	"crypto/sha1"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mailtree/maildir"
	"mailtree/maildir/format"
	"mailtree/maildir/history"
	"mailtree/maildir/index"
	"mailtree/maildir/refusal"
	"mailtree/mcp/tool"
)

// The URI templates in docs/reference/tools.md, "Resources". Only the skill has a fixed URI (skill.go). The method
// listRecent lists other resources.
const (
	inboxTemplate      = "resource://inbox/{agent}{?project,since_ts,urgent_only,include_bodies,limit,cursor,as_of}"
	historyTemplate    = "resource://history/{id}{?project}"
	messageTemplate    = "resource://message/{id}{?project,body_offset}"
	threadTemplate     = "resource://thread/{thread_id}{?project,include_bodies,cursor}"
	attachmentTemplate = "resource://attachment/{sha1}{?project}"
	claimsTemplate     = "resource://claims/{project}{?cursor}"
)

// jsonType is the media type of all resources except attachments, which have media types of their own.
const jsonType = "application/json"

func (t *Toolset) addResources() {
	for _, r := range []struct{ uri, name, title, about, mediaType string }{
		{
			uri:   inboxTemplate,
			name:  "inbox",
			title: "Inbox",
			about: "An agent's inbox, newest first, as check_my_messages returns it. as_of, a time or a commit, shows " +
				"an earlier state.",
			mediaType: jsonType,
		},
		{
			uri:       messageTemplate,
			name:      "message",
			title:     "Message",
			about:     "One message with its body.",
			mediaType: jsonType,
		},
		{
			uri:       historyTemplate,
			name:      "history",
			title:     "History",
			about:     "The history of a message in Git, newest first: who did what, and when.",
			mediaType: jsonType,
		},
		{
			uri:       threadTemplate,
			name:      "thread",
			title:     "Thread",
			about:     "The messages of a thread, oldest first.",
			mediaType: jsonType,
		},
		{
			uri:   attachmentTemplate,
			name:  "attachment",
			title: "Attachment",
			about: "A file attached to a message, identified by the sha1 in the message.",
		},
		{
			uri:       claimsTemplate,
			name:      "claims",
			title:     "Claims",
			about:     "The file claims of a project, oldest first. Specify the project by its slug or its percent-encoded path.",
			mediaType: jsonType,
		},
	} {
		t.Server().AddResourceTemplate(&mcp.ResourceTemplate{
			URITemplate: r.uri,
			Name:        r.name,
			Title:       r.title,
			Description: r.about,
			MIMEType:    r.mediaType,
		}, t.read)
	}
	t.addSkill()
	t.Server().AddReceivingMiddleware(t.anyURI)
}

// ref is a parsed resource URI.
type ref struct {
	of      string      // the kind of resource: inbox, message and so on
	kind    format.Kind // the kind of file that name identifies, for Store.ProjectOf (see refKinds)
	name    string      // agent, message id, thread id, SHA-1 or project
	project string      // key or slug; "" if not specified
	query   index.InboxQuery
	offset  int64           // offset in a message's body
	asOf    *history.Moment // nil means now
}

var refKinds = map[string]format.Kind{
	"inbox":      format.KindProfile,
	"message":    format.KindCanonical,
	"history":    format.KindCanonical,
	"thread":     format.KindOther,
	"attachment": format.KindAttachment,
	"claims":     format.KindClaim,
}

var refParams = map[string]string{
	"inbox":      "project since_ts urgent_only include_bodies limit cursor as_of",
	"message":    "project body_offset",
	"thread":     "project include_bodies cursor",
	"attachment": "project",
	"claims":     "cursor",
	"history":    "project",
}

// maxURI is the maximum size of a URI in bytes. The limit is needed because the server stores the URIs of
// subscriptions.
const maxURI = 4096

// parseRef parses a resource URI. It accepts every URI that matches a template (RFC 6570). In the project parameter, it
// also accepts unescaped slashes, because people write them. A '+' is a plus sign, not a space.
func parseRef(uri string) (ref, error) {
	rest, ok := strings.CutPrefix(uri, "resource://")
	path, query, _ := strings.Cut(rest, "?")
	kind, name, named := strings.Cut(path, "/")
	r := ref{of: kind, kind: refKinds[kind], query: index.InboxQuery{Limit: maildir.DefaultPage}}
	if !ok || r.kind == 0 || !named || name == "" || len(uri) > maxURI {
		return r, tool.Refused(refusal.ErrNotFound, "There is no resource %q: use %s, %s, %s, %s, %s, %s or %s.",
			tool.Clip(uri), inboxTemplate, messageTemplate, historyTemplate, threadTemplate, attachmentTemplate, claimsTemplate, skillURI)
	}
	var err error
	if r.name, err = url.PathUnescape(name); err != nil {
		return r, tool.Invalid("%q is not valid percent-encoding: encode %% as %%25.", tool.Clip(name))
	}
	if r.kind == format.KindClaim {
		r.project = r.name
	}
	for pair := range strings.SplitSeq(query, "&") {
		if pair == "" {
			continue
		}
		k, v, _ := strings.Cut(pair, "=")
		if v, err = url.PathUnescape(v); err != nil {
			return r, tool.Invalid("%s=%s is not valid percent-encoding: encode %% as %%25.", tool.Clip(k), tool.Clip(v))
		}
		if err := r.set(k, v); err != nil {
			return r, err
		}
	}
	r.query.Agent = r.name
	return r, nil
}

// set applies a parameter of the URI to r.
func (r *ref) set(k, v string) (err error) {
	known := strings.Fields(refParams[r.of])
	if !strings.Contains(" "+refParams[r.of]+" ", " "+k+" ") {
		return tool.Invalid("Unknown parameter %q: this resource takes %s.", tool.Clip(k), strings.Join(known, ", "))
	}
	switch k {
	case "project":
		r.project = v
	case "since_ts":
		r.query.Since, err = tool.ParseWhen(v)
	case "urgent_only":
		r.query.UrgentOnly, err = parseFlag(v)
	case "include_bodies":
		r.query.Bodies, err = parseFlag(v)
	case "limit":
		r.query.Limit, err = parseLimit(v)
	case "cursor":
		r.query.Before, err = parseNumber(v)
	case "body_offset":
		r.offset, err = parseNumber(v)
	case "as_of":
		r.asOf, err = parseMoment(v)
	}
	if err != nil {
		hint := "true or false"
		switch k {
		case "since_ts":
			hint = "seconds since 1970, or a time such as 2025-10-23T15:22:14Z"
		case "as_of":
			hint = "a time such as 2025-10-23T15:22:14Z, or the first four or more characters of a commit hash"
		case "limit":
			hint = "a number from 1 to " + strconv.Itoa(maildir.MaxPage)
		case "cursor", "body_offset":
			hint = "the previous response's next_" + strings.TrimPrefix(k, "body_")
		}
		return tool.Invalid("%s=%s is not valid: use %s.", k, tool.Clip(v), hint)
	}
	return nil
}

func parseFlag(v string) (bool, error) { return strconv.ParseBool(strings.ToLower(v)) }

func parseNumber(v string) (int64, error) {
	n, err := strconv.ParseInt(v, 10, 64)
	if err == nil && n < 0 {
		err = strconv.ErrRange
	}
	return n, err
}

func parseLimit(v string) (int, error) {
	n, err := strconv.Atoi(v)
	if err == nil && n < 1 {
		err = strconv.ErrRange
	}
	return min(n, maildir.MaxPage), err
}

// parseMoment parses a time, a commit hash, or a prefix of a commit hash. A string of digits is a time, unless it is as
// long as a full hash.
func parseMoment(v string) (*history.Moment, error) {
	name := strings.ToLower(v)
	hex := strings.Trim(name, "0123456789abcdef") == ""
	if len(name) == 2*sha1.Size && hex || len(name) >= 4 && hex && strings.ContainsAny(name, "abcdef") {
		return &history.Moment{Commit: name}, nil
	}
	at, err := tool.ParseWhen(v)
	return &history.Moment{At: at}, err
}

type (
	uriKey struct{}

	// MessageResource is the content of resource://message.
	MessageResource struct {
		Project string `json:"project"`
		Message
	}
	// ThreadResource is the content of resource://thread.
	ThreadResource struct {
		Project  string    `json:"project"`
		ThreadID string    `json:"thread_id"`
		Messages []Message `json:"messages"`
		Next     string    `json:"next_cursor,omitempty"`
		Note     string    `json:"note,omitempty"`
	}
	// ClaimsResource is the content of resource://claims.
	ClaimsResource struct {
		Project string      `json:"project"`
		Claims  []heldClaim `json:"claims"`
		Next    string      `json:"next_cursor,omitempty"`
	}
	heldClaim struct {
		Agent string `json:"agent"`
		claimShape
	}
)

// anyURI passes every URI to the handler of resources/read, which gets the requested URI from ctx. The SDK would match
// the URI strictly against the templates. It would reject a URI that a user has written by hand, such as one with
// ?project=/abs/path/backend. Errors get the code that the protocol era requires.
func (t *Toolset) anyURI(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if method == "resources/list" {
			return t.listRecent(ctx, next, req)
		}
		r, ok := req.(*mcp.ReadResourceRequest)
		if !ok || r.Params == nil {
			return next(ctx, method, req)
		}
		uri, params, asked := r.Params.URI, *r.Params, *r
		params.URI, asked.Params = "resource://inbox/-", &params
		res, err := next(context.WithValue(ctx, uriKey{}, uri), method, &asked)
		if err != nil {
			err = t.resourceError(ctx, uri, r.ProtocolVersion(), err)
		}
		return res, err
	}
}

// maxRecent is the maximum number of inboxes, and of threads, in resources/list.
const maxRecent = 20

// listRecent serves resources/list. It lists the skill, the inboxes of the most recently active agents and the newest
// threads, because a list of all inboxes and threads would be too long for clients.
func (t *Toolset) listRecent(ctx context.Context, next mcp.MethodHandler, req mcp.Request) (mcp.Result, error) {
	res, err := next(ctx, "resources/list", req)
	list, ok := res.(*mcp.ListResourcesResult)
	if err != nil || !ok || t.store == nil {
		return res, err
	}
	recent, err := t.store.Recent(ctx, maxRecent)
	if err != nil {
		return nil, t.resourceError(ctx, "", "", err)
	}
	add := func(kind, name, title string, p *maildir.Project) {
		list.Resources = append(list.Resources, &mcp.Resource{
			URI:      "resource://" + kind + "/" + url.PathEscape(name) + "?project=" + p.Slug,
			Name:     kind + " " + name,
			Title:    title,
			MIMEType: "application/json",
		})
	}
	for _, a := range recent.Agents {
		add("inbox", a.Name, "Inbox of "+a.Name, a.Project)
	}
	for _, r := range recent.Threads {
		add("thread", r.ID, tool.Clip(r.Subject), r.Project)
	}
	return list, nil
}

// resourceError converts an error from reading a resource to a protocol error.
func (t *Toolset) resourceError(ctx context.Context, uri, version string, err error) error {
	return t.ResourceError(ctx, &resourceWords, uri, version, err)
}

// read handles resources/read for all resources.
func (t *Toolset) read(ctx context.Context, _ *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	uri, _ := ctx.Value(uriKey{}).(string)
	if uri == skillURI {
		return readSkill(), nil
	}
	r, err := parseRef(uri)
	if err != nil {
		return nil, err
	}
	p, err := t.locate(ctx, &r)
	if err != nil {
		return nil, err
	}
	var out any
	switch r.kind {
	case format.KindAttachment:
		return t.readAttachment(ctx, p, uri, r.name)
	case format.KindProfile:
		out, err = t.readInbox(ctx, p, r)
	case format.KindCanonical:
		read := t.readMessage
		if r.of == "history" {
			read = t.readHistory
		}
		out, err = read(ctx, p, r)
	case format.KindClaim:
		out, err = t.readClaims(ctx, p, r)
	default:
		out, err = t.readThread(ctx, p, r)
	}
	if err != nil {
		return nil, err
	}
	text, err := t.budget.Resource(out)
	if err != nil {
		return nil, err
	}
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: uri, MIMEType: jsonType, Text: text}}}, nil
}

// locate returns the project that the URI specifies. If the URI does not specify one, Store.ProjectOf finds the
// project. If the URI contains a shortened message id, locate replaces it in r with the full id.
func (t *Toolset) locate(ctx context.Context, r *ref) (p *maildir.Project, err error) {
	if r.project != "" {
		p, err = t.store.Project(ctx, r.project)
	} else {
		p, err = t.store.ProjectOf(ctx, r.kind, r.name)
	}
	if err == nil && r.kind == format.KindProfile {
		r.name, err = p.Agents.Named(ctx, r.name)
		r.query.Agent = r.name
	}
	if err == nil && (r.kind == format.KindCanonical || r.kind == format.KindOther) {
		r.name, err = p.FullID(ctx, r.name)
	}
	return p, err
}

func (t *Toolset) readInbox(ctx context.Context, p *maildir.Project, r ref) (any, error) {
	v := t.viewOf(ctx, p, "")
	r.query.Peek, r.query.Room = true, v.inboxRoom(ctx, tool.InResource, r.name)
	var page *maildir.InboxPage
	var err error
	if r.asOf != nil {
		page, err = tool.Box(ctx, p, r.query.Agent).InboxAsOf(ctx, r.query, *r.asOf)
	} else {
		const markRead = false
		page, err = tool.Box(ctx, p, r.query.Agent).Inbox(ctx, r.query, markRead, maildir.Waiting{})
	}
	if err != nil {
		return nil, err
	}
	return v.shapeInbox(r.name, page, r.query.Bodies), nil
}

func (t *Toolset) readMessage(ctx context.Context, p *maildir.Project, r ref) (any, error) {
	v := t.viewOf(ctx, p, "")
	room := v.room(ctx, tool.InResource, MessageResource{Project: p.Slug})
	room.Offset = r.offset
	m, err := p.MessageWithin(ctx, r.name, room)
	if err != nil {
		return nil, err
	}
	s := v.shapeHead(m)
	s.addBody(m)
	return MessageResource{p.Slug, s}, nil
}

func (t *Toolset) readThread(ctx context.Context, p *maildir.Project, r ref) (any, error) {
	v := t.viewOf(ctx, p, "")
	q := index.ThreadQuery{
		Thread: r.name,
		Bodies: r.query.Bodies,
		After:  r.query.Before,
		Room:   v.room(ctx, tool.InResource, ThreadResource{Project: p.Slug, ThreadID: r.name}),
	}
	page, err := p.ThreadPage(ctx, q)
	if err != nil {
		return nil, err
	}
	out := ThreadResource{
		Project:  p.Slug,
		ThreadID: page.Thread,
		Messages: make([]Message, len(page.Messages)),
		Next:     cursor(page.Next),
		Note:     say(page.Note),
	}
	for i := range page.Messages {
		out.Messages[i] = v.shapeMessage(&page.Messages[i], r.query.Bodies)
	}
	return out, nil
}

// readAttachment returns a text file as text and any other file as bytes. It returns an empty file as empty bytes,
// because the SDK would omit an empty string.
func (t *Toolset) readAttachment(ctx context.Context, p *maildir.Project, uri, sum string) (*mcp.ReadResourceResult, error) {
	most, err := t.budget.Blob(ctx)
	if err != nil {
		return nil, err
	}
	a, err := p.Attachment(sum, most)
	if err != nil {
		return nil, err
	}
	c := &mcp.ResourceContents{URI: uri, MIMEType: a.MediaType, Blob: a.Data}
	text := string(a.Data)
	switch {
	case text == "":
		c.Blob = []byte{} // must not be nil
	case utf8.Valid(a.Data) && !strings.Contains(text, "\x00") && t.budget.Fits(tool.InResource, text):
		c.Blob, c.Text = nil, text
	}
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{c}}, nil
}

// readClaims reads the live claims. Its cursor is the number of claims on earlier pages.
func (t *Toolset) readClaims(ctx context.Context, p *maildir.Project, r ref) (any, error) {
	const all = false
	live, err := p.Claims.List(ctx, all)
	if err != nil {
		return nil, err
	}
	before := int(min(r.query.Before, int64(len(live))))
	live = live[before:]
	out := ClaimsResource{Project: p.Slug, Claims: make([]heldClaim, len(live))}
	for i, c := range shapeClaims(live) {
		out.Claims[i] = heldClaim{live[i].Agent, c}
	}
	rest := ClaimsResource{Project: p.Slug}
	n, err := tool.Fit(ctx, t.budget, tool.InResource, rest, out.Claims)
	if n < len(live) {
		out.Claims, out.Next = out.Claims[:n], cursor(int64(before+n))
	}
	return out, err
}
